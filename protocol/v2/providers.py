"""UNSTABLE: the endpoints of model providers, which a client may configure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import field

from protocol.codec.marks import LenientItems
from protocol.v2.base import ProviderId, Wire

# "anthropic", "openai", "azure", "vertex", "bedrock", or a word that later versions add.
LlmProtocol: TypeAlias = str


class ProviderCurrentConfig(Wire, frozen=True, kw_only=True):
    """Where a provider is reached. Headers are never told: they may hold keys."""

    api_type: LlmProtocol
    base_url: str


class ProviderInfo(Wire, frozen=True, kw_only=True):
    """A provider; `current` None: it is disabled, which one that is `required` cannot be."""

    provider_id: ProviderId
    supported: LenientItems[Sequence[LlmProtocol]]
    required: bool
    current: ProviderCurrentConfig | None = None


class ListProvidersRequest(Wire, frozen=True, kw_only=True):
    """Which providers can be configured?"""


class ListProvidersResponse(Wire, frozen=True, kw_only=True):
    """All of them, as they are configured now."""

    providers: Sequence[ProviderInfo]


class SetProviderRequest(Wire, frozen=True, kw_only=True):
    """Configure a provider anew; `headers` go with each request and may hold keys."""

    provider_id: ProviderId
    api_type: LlmProtocol
    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict)


class SetProviderResponse(Wire, frozen=True, kw_only=True):
    """It is configured."""


class DisableProviderRequest(Wire, frozen=True, kw_only=True):
    """Use a provider no longer."""

    provider_id: ProviderId


class DisableProviderResponse(Wire, frozen=True, kw_only=True):
    """It is used no longer."""
