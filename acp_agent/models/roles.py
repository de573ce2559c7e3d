"""Which models do the side work of a session, and whose provider searches the web."""

from __future__ import annotations

from msgspec import Struct

from acp_agent.config.types import Config
from acp_agent.errors import AuthRequiredError, ConfigError, InvalidInputError
from acp_agent.models.base import ModelInfo
from acp_agent.models.registry import Models


def small_model(models: Models, config: Config, main: ModelInfo) -> ModelInfo:
    """The model for side work beside `main`.

    The configured one; else the one that the catalog has for the same provider; else `main` itself.
    One that cannot be used is passed over: side work must not stop for a setting.
    """
    own = _usable(models, config.small_model) or models.small_of(main.provider)
    return main if own is None else own


def vision_model(models: Models, config: Config) -> ModelInfo | None:
    """The model that looks at pictures for those that cannot; None where none is configured.

    Raises:
        InvalidInputError: no such model exists.
        AuthRequiredError, ConfigError: it cannot be used.
    """
    if config.vision_model is None:
        return None
    info = models.resolve(config.vision_model)
    models.require(info)
    return info


class ProviderSearch(Struct, frozen=True, kw_only=True):
    """The search of the web by a model's own provider.

    `address` is where it is asked. It may be offered `beside_tools` in the same request. `chosen`
    where the configuration names it, so that the user need not be asked.
    """

    address: str
    beside_tools: bool
    chosen: bool


_SEARCHING = frozenset({"anthropic", "openai_responses", "gemini"})  # APIs


def provider_search(models: Models, config: Config, info: ModelInfo) -> ProviderSearch | None:
    """The search of a model's provider; None where it has none, or another is configured.

    What stands at another address than the provider's own may not know it, and refuse a request
    that has it: there it is asked by itself, unless the configuration names it.
    """
    settings, provider = config.web_search, models.provider(info)
    if provider is None or provider.api not in _SEARCHING:
        return None
    chosen = settings.service == "provider"
    if not chosen and (settings.service != "auto" or settings.base_url or info.search is None):
        return None
    beside = info.search is None or info.search.beside_tools
    return ProviderSearch(
        address=provider.base_url,
        beside_tools=beside and (chosen or not provider.moved),
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
