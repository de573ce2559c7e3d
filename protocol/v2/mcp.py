"""UNSTABLE: MCP servers on the client's side of the connection, reached through ACP itself.

An MCP request travels inside `mcp/message` to the client; what the server sends on its own comes
back as a notification of the same name.
"""

from __future__ import annotations

from typing import Any

from protocol.codec.open_union import OpenUnion, UnknownVariant, string_in
from protocol.v2.base import JsonObject, McpRequestId, McpServerAcpId, Wire


class MessageMcpRequest(Wire, frozen=True, kw_only=True):
    """A request to an MCP server; `request_id` names it in the server's own notifications."""

    server_id: McpServerAcpId
    request_id: McpRequestId
    method: str
    params: JsonObject | None = None


class MessageMcpNotification(Wire, frozen=True, kw_only=True):
    """What an MCP server sends while it works on a request."""

    server_id: McpServerAcpId
    request_id: McpRequestId
    method: str
    params: JsonObject | None = None


class MessageMcpResponse(OpenUnion):
    """How an MCP request ended: `MessageMcpResult` or `MessageMcpFailure`."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """A result where there is one, even null, and else an error."""
        if "result" not in value and "error" not in value:
            raise ValueError("result: is required where there is no error")
        return MessageMcpResult if "result" in value else MessageMcpFailure


class McpError(OpenUnion, UnknownVariant):
    """An error of an MCP server's: `code`, `message`, `data` and whatever else it holds."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """The only one there is; its code and message must be what they are called."""
        code = value.get("code")
        if not isinstance(code, int) or isinstance(code, bool) or not -(2**31) <= code < 2**31:
            raise ValueError("code: expected integer of 32 bits")
        string_in(value, "message")
        return McpError


class MessageMcpResult(Wire, MessageMcpResponse, frozen=True, kw_only=True):
    """The MCP server's result, which may be null."""

    result: Any


class MessageMcpFailure(Wire, MessageMcpResponse, frozen=True, kw_only=True):
    """The MCP server's error. What failed on the way to it is an error of JSON-RPC instead."""

    error: McpError
