"""The MCP servers that a client gives to a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from protocol.codec.marks import NullAsDefault
from protocol.codec.open_union import OpenUnion, UnknownVariant, string_in
from protocol.v2.base import AbsolutePath, McpServerAcpId, Wire


class HttpHeader(Wire, frozen=True, kw_only=True):
    """A header to send with each HTTP request."""

    name: str
    value: str


class EnvVariable(Wire, frozen=True, kw_only=True):
    """An environment variable to set."""

    name: str
    value: str


class McpServer(OpenUnion):
    """An MCP server: a program, one behind HTTP, one of the client's own, or one not known yet."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its type."""
        return _MCP_SERVERS.get(string_in(value, "type"), OtherMcpServer)


class McpServerStdio(Wire, McpServer, frozen=True, kw_only=True, tag_field="type", tag="stdio"):
    """An MCP server that is a program to start."""

    name: str
    command: AbsolutePath
    args: NullAsDefault[Sequence[str]] = ()
    env: NullAsDefault[Sequence[EnvVariable]] = ()


class McpServerHttp(Wire, McpServer, frozen=True, kw_only=True, tag_field="type", tag="http"):
    """An MCP server behind streamable HTTP."""

    name: str
    url: str
    headers: NullAsDefault[Sequence[HttpHeader]] = ()


class McpServerAcp(Wire, McpServer, frozen=True, kw_only=True, tag_field="type", tag="acp"):
    """UNSTABLE. An MCP server of the client's, which is reached through `mcp/message`."""

    name: str
    server_id: McpServerAcpId


class OtherMcpServer(UnknownVariant, McpServer):
    """An MCP server behind a transport not known yet."""

    __slots__ = ()


_MCP_SERVERS: dict[str, type[McpServer]] = {
    "stdio": McpServerStdio,
    "http": McpServerHttp,
    "acp": McpServerAcp,
}
