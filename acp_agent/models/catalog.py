"""The catalog of models: the entries of `catalog.json`, with the user's changes and additions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct, structs

from acp_agent.config.model_types import ModelConfig, PriceConfig
from acp_agent.errors import ConfigError
from acp_agent.events import Usage
from acp_agent.models.base import (
    RESERVED_OUTPUT,
    ModelInfo,
    Price,
    ReasoningControl,
    ThoughtLevel,
    ToolDialect,
    WebSearch,
    price_on,
    today,
)
from acp_agent.models.providers import canonical
from acp_agent.platform.decoding import decode_json


class _Entry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    ref: str
    name: str
    window: int
    max_output: int
    vision: bool = False
    reasoning: ReasoningControl = "none"
    thought_levels: tuple[ThoughtLevel, ...] = ()
    default_thought: ThoughtLevel | None = None
    tools: bool = True
    tool_dialect: ToolDialect | None = None
    price: Price | None = None
    later: dict[str, Price] = {}


class _CatalogFile(Struct, frozen=True, kw_only=True):
    as_of: str
    unlisted_see: tuple[str, ...]
    like: dict[str, str]
    small: dict[str, str]
    search: dict[str, dict[str, WebSearch]]
    free: tuple[str, ...]
    models: tuple[_Entry, ...]
    bundled: tuple[_Entry, ...]


class Catalog:
    """The known models by `provider/id`, in the order in which they are offered."""

    def __init__(self, changes: Mapping[str, ModelConfig]) -> None:
        models = {info.ref: info for info in _listed_models()}
        for ref, change in changes.items():
            provider, _, model = ref.partition("/")
            if not provider or not model:
                raise ConfigError(f'models."{ref}" must be named as "provider/model".')
            full_ref = f"{canonical(provider)}/{model}"
            base = models.get(full_ref) or _bundled(full_ref) or unknown(canonical(provider), model)
            models[full_ref] = _apply_change(base, change)
        self._models = models

    def get(self, provider: str, model: str) -> ModelInfo:
        """Return the properties of a model; for an unknown model, safe assumptions."""
        ref = f"{provider}/{model}"
        info = self._models.get(ref) or _bundled(ref)
        return info or self._like(provider, model) or unknown(provider, model)

    def _like(self, provider: str, model: str) -> ModelInfo | None:
        """Return a vendor's model under the name that a cloud gives it, without the price."""
        vendor = _file().like.get(provider)
        candidates = (
            [info for info in self.for_provider(vendor) if info.id in model] if vendor else []
        )
        if not candidates:
            return None
        vendor_model = max(candidates, key=lambda info: len(info.id))
        search = _search(provider, vendor_model.id)
        return structs.replace(
            vendor_model, provider=provider, id=model, price=None, later=(), search=search
        )

    def cost_now(self, ref: str, usage: Usage) -> float | None:
        """Return the cost of a request at today's price in US dollars, or None if unknown.

        This is for requests whose cost was unknown, or not stored, when they were sent.
        """
        provider, _, model = ref.partition("/")
        return self.get(provider, model).cost(usage)

    def priced_by_length(self) -> list[str]:
        """Return the names of the models whose price depends on the length of a request."""
        return [
            ref
            for ref, info in self._models.items()
            if info.price is not None and info.price.long_above is not None
        ]

    def small(self, provider: str) -> ModelInfo | None:
        """Return the provider's model for side requests, if one is known."""
        name = _file().small.get(provider)
        return None if name is None else self.get(provider, name)

    def for_provider(self, provider: str) -> list[ModelInfo]:
        """Return the known models of a provider."""
        return [info for info in self._models.values() if info.provider == provider]


def unknown(provider: str, model: str) -> ModelInfo:
    """Return the assumed properties of a model that is not in the catalog.

    If nearly all models of the provider have vision, the model is assumed to have it too: an error
    from the provider is better than a wrong refusal by this program.
    """
    has_vision = provider in _file().unlisted_see
    price = Price(input=0, output=0) if provider in _file().free else None
    return ModelInfo(
        provider=provider,
        id=model,
        name=model,
        vision=has_vision,
        price=price,
        max_output=RESERVED_OUTPUT,
        limit_known=False,
        search=_search(provider, model),
    )


def _search(provider: str, model: str) -> WebSearch | None:
    """Return the provider's web search for a model; the first matching prefix of its id counts."""
    searches = _file().search.get(provider, {})
    return next((search for prefix, search in searches.items() if model.startswith(prefix)), None)


@cache
def _file() -> _CatalogFile:
    data = (Path(__file__).parent / "catalog.json").read_bytes()
    return decode_json(data, _CatalogFile)


@cache
def _listed_models() -> tuple[ModelInfo, ...]:
    day = today()
    return tuple(_info(entry, day) for entry in _file().models)


def _bundled(ref: str) -> ModelInfo | None:
    """Return a model that an extra installs, or None. It is offered only if it is installed."""
    return next((_info(entry, "") for entry in _file().bundled if entry.ref == ref), None)


def _info(entry: _Entry, day: str) -> ModelInfo:
    later = tuple(entry.later.items())
    return ModelInfo(
        provider=entry.ref.partition("/")[0],
        id=entry.ref.partition("/")[2],
        name=entry.name,
        window=entry.window,
        max_output=entry.max_output,
        vision=entry.vision,
        tools=entry.tools,
        thought_levels=entry.thought_levels,
        default_thought=entry.default_thought,
        reasoning=entry.reasoning,
        price=price_on(day, later) or entry.price,
        later=later,
        tool_dialect=entry.tool_dialect,
        search=_search(*entry.ref.split("/", 1)),
    )


def _apply_change(info: ModelInfo, change: ModelConfig) -> ModelInfo:
    levels = info.thought_levels
    if change.thought_levels is not None:
        levels = tuple(change.thought_levels)
    reasoning = info.reasoning
    if levels and reasoning == "none":
        # For a model that the user configured: the control that most services support.
        reasoning = "adaptive" if info.provider == "anthropic" else "effort"
    return structs.replace(
        info,
        name=change.name or info.name,
        window=change.context_window or info.window,
        max_output=change.max_output_tokens or info.max_output,
        limit_known=info.limit_known or change.max_output_tokens is not None,
        vision=info.vision if change.vision is None else change.vision,
        tools=info.tools if change.tools is None else change.tools,
        tool_dialect=_dialect(info, change),
        thought_levels=levels,
        default_thought=info.default_thought if info.default_thought in levels else None,
        reasoning=reasoning,
        price=info.price if change.price is None else _price(change.price),
        later=info.later if change.price is None else (),
        temperature=change.temperature,
    )


def _dialect(info: ModelInfo, change: ModelConfig) -> ToolDialect | None:
    """Return the form in which the model writes calls; it needs one if the API has no tools."""
    dialect = change.tool_dialect or info.tool_dialect
    if dialect is None and change.tools is False:
        return "fenced"
    return dialect


def _price(config: PriceConfig) -> Price:
    return Price(
        input=config.input,
        output=config.output,
        cache_read=config.cache_read,
        cache_write=config.cache_write,
    )
