"""Log in to an MCP server's authorization server from another device (RFC 8628)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    issuers_match,
)
from mcp.shared.auth_utils import resource_url_from_server_url

from acp_agent.errors import ConfigError
from acp_agent.extensions.mcp.oauth.logins import Login
from acp_agent.extensions.mcp.oauth.provider import ClientSettings

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_LONGEST = 1_800.0  # most seconds for the user to log in
_SLOWER = 5.0  # seconds, from RFC 8628
_LARGEST = 1_000_000  # bytes of a response

Document = dict[str, Any]  # JSON of the authorization server; values are checked on use


async def device_login(
    url: str,
    http: httpx2.AsyncClient,
    settings: ClientSettings,
    show: Callable[[str, str], None],
) -> Login:
    """Log in with another device, and return the server's response as a login.

    Args:
        url: the address of the MCP server.
        http: the HTTP client for all requests.
        settings: the registration settings of this program.
        show: shows the address to visit and the code to enter there.

    Raises:
        ConfigError: the login failed, or the user refused it; the message says why.
    """
    resource = await _first(http, build_protected_resource_metadata_discovery_urls(None, url))
    servers = resource.get("authorization_servers")
    issuer = servers[0] if isinstance(servers, list) and servers else None
    addresses = build_oauth_authorization_server_metadata_discovery_urls(issuer, url)
    metadata = await _first(http, addresses)
    if issuer is not None and not issuers_match(str(metadata.get("issuer")), str(issuer)):
        raise ConfigError("the authorization server says that it is another one")
    endpoint = _endpoint(metadata, "device_authorization_endpoint")
    client = await _client(http, metadata, settings)
    about = {"client_id": str(client["client_id"]), "resource": resource_url_from_server_url(url)}
    if settings.scopes:
        about["scope"] = " ".join(settings.scopes)
    begun = await _post(http, endpoint, about)
    address = begun.get("verification_uri_complete") or begun.get("verification_uri")
    if "error" in begun or not isinstance(address, str):
        raise ConfigError(f"the authorization server refused: {_why(begun)}")
    show(address, str(begun.get("user_code", "")))
    tokens = await _poll(http, _endpoint(metadata, "token_endpoint"), begun, about)
    lasts = tokens.get("expires_in")
    return Login(
        tokens=tokens,
        client=client,
        metadata=metadata,
        expires_at=time.time() + lasts if isinstance(lasts, int | float) else None,
    )


async def _poll(
    http: httpx2.AsyncClient, endpoint: str, begun: Document, about: dict[str, str]
) -> Document:
    pause = _number(begun.get("interval"), 5.0)
    deadline = time.monotonic() + min(_number(begun.get("expires_in"), 600.0), _LONGEST)
    while time.monotonic() < deadline:
        await asyncio.sleep(pause)
        form = about | {"grant_type": GRANT, "device_code": str(begun.get("device_code"))}
        answer = await _post(http, endpoint, form)
        match answer.get("error"):
            case None if isinstance(answer.get("access_token"), str):
                return answer
            case "authorization_pending":
                continue
            case "slow_down":
                pause += _SLOWER
            case _:
                raise ConfigError(f"the authorization server refused: {_why(answer)}")
    raise ConfigError("nobody logged in in time; try again")


async def _client(
    http: httpx2.AsyncClient, metadata: Document, settings: ClientSettings
) -> Document:
    """Return the client registration: configured, from a metadata document, or a new one."""
    if settings.client_id:
        return {"client_id": settings.client_id, "token_endpoint_auth_method": "none"}
    if settings.client_metadata_url and metadata.get("client_id_metadata_document_supported"):
        return {"client_id": settings.client_metadata_url, "token_endpoint_auth_method": "none"}
    wanted = {
        "client_name": "acp-agent",
        "grant_types": [GRANT, "refresh_token"],
        "token_endpoint_auth_method": "none",
    }
    endpoint = _endpoint(metadata, "registration_endpoint")
    client = _document(await http.post(endpoint, json=wanted))
    if not isinstance(client.get("client_id"), str):
        raise ConfigError(f"the authorization server registers nobody: {_why(client)}")
    return client


async def _first(http: httpx2.AsyncClient, urls: list[str]) -> Document:
    for url in urls:
        response = await http.get(url)
        if response.status_code == 200:
            return _document(response)
    return {}


async def _post(http: httpx2.AsyncClient, url: str, form: dict[str, str]) -> Document:
    return _document(await http.post(url, data=form))


def _document(response: httpx2.Response) -> Document:
    if len(response.content) > _LARGEST:
        raise ConfigError("the authorization server's answer is too long")
    try:
        return msgspec.json.decode(response.content, type=dict[str, Any])
    except (ValueError, RecursionError):  # not UTF-8, or not JSON
        raise ConfigError(
            f"the authorization server answered with HTTP {response.status_code} and no JSON"
        ) from None


def _endpoint(metadata: Document, name: str) -> str:
    url = metadata.get(name)
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or not parts.hostname:
        raise ConfigError(f"the authorization server has no {name}; log in without --device")
    if parts.scheme != "https" and parts.hostname not in {"127.0.0.1", "localhost", "::1"}:
        raise ConfigError(f"the authorization server's {name} is not safe: it is not https")
    return parts.geturl()


def _number(value: object, default: float) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return float(value) if good and isinstance(value, int | float) else default


def _why(answer: Document) -> str:
    return str(answer.get("error_description") or answer.get("error") or "no reason")[:200]
