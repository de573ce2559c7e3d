"""The beginning of a connection: versions, who is who, capabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import field

from protocol.codec.marks import Lenient, LenientItems
from protocol.v2.auth import AuthMethod
from protocol.v2.base import UInt16, Wire
from protocol.v2.capabilities import AgentCapabilities, ClientCapabilities

ProtocolVersion: TypeAlias = UInt16


class Implementation(Wire, frozen=True, kw_only=True):
    """A program's name, its version, and its title for people."""

    name: str
    version: str
    title: Lenient[str | None] = None


class InitializeRequest(Wire, frozen=True, kw_only=True):
    """The client's first request: the newest version it speaks, what it is, what it can do."""

    protocol_version: ProtocolVersion
    info: Implementation
    capabilities: Lenient[ClientCapabilities] = field(default_factory=ClientCapabilities)


class InitializeResponse(Wire, frozen=True, kw_only=True):
    """The version that both will speak, what the agent is, and what it can do."""

    protocol_version: ProtocolVersion
    info: Implementation
    capabilities: Lenient[AgentCapabilities] = field(default_factory=AgentCapabilities)
    auth_methods: LenientItems[Sequence[AuthMethod]] = ()
