"""The beginning of a connection: versions, capabilities, authentication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import field

from protocol.codec.marks import Lenient, LenientItems, NullAsDefault
from protocol.codec.open_union import OpenUnion
from protocol.v1.base import AuthMethodId, UInt16, Wire
from protocol.v1.capabilities import AgentCapabilities, ClientCapabilities

ProtocolVersion: TypeAlias = UInt16


class Implementation(Wire, frozen=True, kw_only=True):
    """A program's name, its version, and its title for people."""

    name: str
    version: str
    title: Lenient[str | None] = None


class AuthMethod(OpenUnion):
    """A way to authenticate: `AuthMethodTerminal` or `AuthMethodAgent`."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its type; every type but `terminal` is the agent's own business."""
        return AuthMethodTerminal if value.get("type") == "terminal" else AuthMethodAgent


class AuthMethodTerminal(
    Wire, AuthMethod, frozen=True, kw_only=True, tag_field="type", tag="terminal"
):
    """The client runs the agent in a terminal, with these arguments and variables added."""

    id: AuthMethodId
    name: str
    description: Lenient[str | None] = None
    args: NullAsDefault[Sequence[str]] = ()
    env: NullAsDefault[Mapping[str, str]] = field(default_factory=dict)


class AuthMethodAgent(Wire, AuthMethod, frozen=True, kw_only=True):
    """The agent authenticates by itself when it is asked to. No `type` means `agent`."""

    id: AuthMethodId
    name: str
    description: Lenient[str | None] = None
    type: str | None = None


class InitializeRequest(Wire, frozen=True, kw_only=True):
    """The client's first request: the newest version it speaks, and what it can do."""

    protocol_version: ProtocolVersion
    client_capabilities: Lenient[ClientCapabilities] = field(default_factory=ClientCapabilities)
    client_info: Lenient[Implementation | None] = None


class InitializeResponse(Wire, frozen=True, kw_only=True):
    """The version that both will speak, and what the agent can do."""

    protocol_version: ProtocolVersion
    agent_capabilities: Lenient[AgentCapabilities] = field(default_factory=AgentCapabilities)
    auth_methods: LenientItems[Sequence[AuthMethod]] = ()
    agent_info: Lenient[Implementation | None] = None


class AuthenticateRequest(Wire, frozen=True, kw_only=True):
    """Authenticate with one of the agent's methods."""

    method_id: AuthMethodId


class AuthenticateResponse(Wire, frozen=True, kw_only=True):
    """The user is authenticated."""


class LogoutRequest(Wire, frozen=True, kw_only=True):
    """Forget the authentication."""


class LogoutResponse(Wire, frozen=True, kw_only=True):
    """It is forgotten."""
