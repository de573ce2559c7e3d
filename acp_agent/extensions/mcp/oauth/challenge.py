"""The requests that show whether an MCP server wants a login."""

from __future__ import annotations

import httpx2
from mcp.client.auth.utils import build_protected_resource_metadata_discovery_urls

_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "acp-agent", "version": "1"},
    },
}
_INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
_LIST_TOOLS = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
_HEADERS = {"Accept": "application/json, text/event-stream"}
_SESSION = "mcp-session-id"


async def request_challenge(http: httpx2.AsyncClient, url: str) -> httpx2.Response:
    """Make the first requests of a client until one fails; return the last response.

    Some servers let anybody initialize, and want a login for the tools.

    Raises:
        httpx2.HTTPError: the server cannot be reached.
    """
    response = await http.post(url, json=_INITIALIZE, headers=_HEADERS)
    session = response.headers.get(_SESSION)
    headers = _HEADERS if session is None else {**_HEADERS, _SESSION: session}
    for message in (_INITIALIZED, _LIST_TOOLS):
        if response.is_success:
            response = await http.post(url, json=message, headers=headers)
    return response


async def has_authorization_server(http: httpx2.AsyncClient, url: str) -> bool:
    """Return whether an MCP server's metadata (RFC 9728) names an authorization server.

    Raises:
        httpx2.HTTPError: the server cannot be reached.
    """
    for address in build_protected_resource_metadata_discovery_urls(None, url):
        response = await http.get(address)
        if response.status_code == 200:
            return b'"authorization_servers"' in response.content
    return False
