"""Authentication: the ways there are, logging in and out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from protocol.codec.marks import Lenient, NullAsDefault
from protocol.codec.open_union import OpenUnion, UnknownVariant, string_in
from protocol.v2.base import AuthMethodId, Wire
from protocol.v2.mcp_servers import EnvVariable


class AuthMethod(OpenUnion):
    """A way to authenticate: in a terminal, by the agent itself, or one not known yet."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its type; each has an id and a name."""
        match string_in(value, "type"):
            case "agent":
                return AuthMethodAgent
            case "terminal":
                return AuthMethodTerminal
            case _:
                string_in(value, "methodId")
                string_in(value, "name")
                return OtherAuthMethod


class AuthMethodTerminal(
    Wire, AuthMethod, frozen=True, kw_only=True, tag_field="type", tag="terminal"
):
    """The client runs the agent in a terminal, with these arguments and variables added."""

    method_id: AuthMethodId
    name: str
    description: Lenient[str | None] = None
    args: NullAsDefault[Sequence[str]] = ()
    env: NullAsDefault[Sequence[EnvVariable]] = ()


class AuthMethodAgent(Wire, AuthMethod, frozen=True, kw_only=True, tag_field="type", tag="agent"):
    """The agent authenticates by itself when it is asked to log in."""

    method_id: AuthMethodId
    name: str
    description: Lenient[str | None] = None


class OtherAuthMethod(UnknownVariant, AuthMethod):
    """A way not known yet."""

    __slots__ = ()


class LoginAuthRequest(Wire, frozen=True, kw_only=True):
    """Authenticate with one of the agent's methods."""

    method_id: AuthMethodId


class LoginAuthResponse(Wire, frozen=True, kw_only=True):
    """The user is authenticated."""


class LogoutAuthRequest(Wire, frozen=True, kw_only=True):
    """Forget the authentication."""


class LogoutAuthResponse(Wire, frozen=True, kw_only=True):
    """It is forgotten."""
