"""Which models do the side work of a session: summaries and titles, and looking at pictures."""

from __future__ import annotations

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


def _usable(models: Models, ref: str | None) -> ModelInfo | None:
    if ref is None:
        return None
    try:
        info = models.resolve(ref)
        models.require(info)
    except (InvalidInputError, AuthRequiredError, ConfigError):
        return None
    return info
