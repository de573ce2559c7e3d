"""Select the models for side requests, and the web search of a provider."""

from __future__ import annotations

from msgspec import Struct

from acp_agent.config.types import Config
from acp_agent.errors import AuthRequiredError, ConfigError, InvalidInputError
from acp_agent.models.base import ModelInfo
from acp_agent.models.registry import Models

_SEARCHING = frozenset({"anthropic", "openai_responses", "gemini"})  # APIs


def small_model(models: Models, config: Config, main: ModelInfo) -> ModelInfo:
    """Return the model for side requests.

    This is the configured one, else the catalog's small model of the same provider, else `main`. A
    configured model that cannot be used is ignored: side requests must not fail due to a setting.
    """
    configured = _usable(models, config.small_model) or models.catalog_small_model(main.provider)
    return main if configured is None else configured


def vision_model(models: Models, config: Config) -> ModelInfo | None:
    """Return the model that describes pictures for models without vision, or None.

    Raises:
        InvalidInputError: the configured model does not exist.
        AuthRequiredError, ConfigError: the configured model cannot be used.
    """
    if config.vision_model is None:
        return None
    info = models.resolve(config.vision_model)
    models.require(info)
    return info


class ProviderSearch(Struct, frozen=True, kw_only=True):
    """The web search of a model's provider.

    `address` is the address of the API. `beside_tools` is true if a request may have tools too.
    `chosen` is true if the configuration names this search, so that the user need not be asked.
    """

    address: str
    beside_tools: bool
    chosen: bool


def provider_search(models: Models, config: Config, info: ModelInfo) -> ProviderSearch | None:
    """Return the search of a model's provider, or None if it has none or another is configured.

    A service at another address than the provider's may not support the search, and refuse a
    request with it. Therefore the search is then a separate request, unless the configuration names
    it.
    """
    settings, provider = config.web_search, models.provider(info)
    if provider is None or provider.api not in _SEARCHING:
        return None
    chosen = settings.service == "provider"
    if not chosen and (settings.service != "auto" or settings.base_url or info.search is None):
        return None
    beside_tools = info.search is None or info.search.beside_tools
    return ProviderSearch(
        address=provider.base_url,
        beside_tools=beside_tools and (chosen or not provider.moved),
        chosen=chosen,
    )


def _usable(models: Models, ref: str | None) -> ModelInfo | None:
    if ref is None:
        return None
    try:
        info = models.resolve(ref)
        models.require(info)
    except (InvalidInputError, AuthRequiredError, ConfigError):
        return None
    return info
