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
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    issuers_match,
    union_scopes,
)
from mcp.shared.auth_utils import resource_url_from_server_url

from acp_agent.errors import ConfigError
from acp_agent.extensions.mcp.oauth.challenge import request_challenge
from acp_agent.extensions.mcp.oauth.logins import Login
from acp_agent.extensions.mcp.oauth.provider import ClientSettings

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_MAX_LOGIN_SECONDS = 1_800.0  # most seconds for the user to log in
_SLOW_DOWN_SECONDS = 5.0  # seconds, from RFC 8628
_MAX_RESPONSE_SIZE = 1_000_000  # bytes of a response

Document = dict[str, Any]  # JSON of the authorization server; values are checked on use


async def device_login(
    url: str,
    http: httpx2.AsyncClient,
    settings: ClientSettings,
    show: Callable[[str, str], None],
    *,
    missing_scope: str = "",
) -> Login:
    """Log in with another device, and return the server's response as a login.

    Args:
        url: the address of the MCP server.
        show: shows the address to visit and the code to enter there.
        missing_scope: scopes that an earlier request lacked.

    Raises:
        ConfigError: the login failed, or the user refused it; the message says why.
    """
    challenge = await request_challenge(http, url)
    addresses = build_protected_resource_metadata_discovery_urls(
        extract_resource_metadata_from_www_auth(challenge), url
    )
    resource = await _fetch_first(http, addresses)
    servers = resource.get("authorization_servers")
    issuer = servers[0] if isinstance(servers, list) and servers else None
    addresses = build_oauth_authorization_server_metadata_discovery_urls(issuer, url)
    metadata = await _fetch_first(http, addresses)
    if issuer is not None and not issuers_match(str(metadata.get("issuer")), str(issuer)):
        raise ConfigError("the authorization server says that it is another one")
    endpoint = _endpoint(metadata, "device_authorization_endpoint")
    client = await _client(http, metadata, settings)
    parameters = {
        "client_id": str(client["client_id"]),
        "resource": resource_url_from_server_url(url),
    }
    if isinstance(client.get("client_secret"), str):
        parameters["client_secret"] = client["client_secret"]
    scopes = resource.get("scopes_supported")
    suggested = extract_scope_from_www_auth(challenge) or (
        " ".join(map(str, scopes)) if isinstance(scopes, list) else None
    )
    scope = union_scopes(" ".join(settings.scopes) or suggested, missing_scope)
    if scope:
        parameters["scope"] = scope
    grant = await _post(http, endpoint, parameters)
    address = grant.get("verification_uri_complete") or grant.get("verification_uri")
    if "error" in grant or not isinstance(address, str):
        raise ConfigError(f"the authorization server refused: {_why(grant)}")
    show(address, str(grant.get("user_code", "")))
    tokens = await _poll(http, _endpoint(metadata, "token_endpoint"), grant, parameters)
    lifetime = tokens.get("expires_in")
    return Login(
        tokens=tokens,
        client=client,
        metadata=metadata,
        expires_at=time.time() + lifetime if isinstance(lifetime, int | float) else None,
    )


async def _poll(
    http: httpx2.AsyncClient, endpoint: str, grant: Document, parameters: dict[str, str]
) -> Document:
    pause = _number(grant.get("interval"), 5.0)
    deadline = time.monotonic() + min(_number(grant.get("expires_in"), 600.0), _MAX_LOGIN_SECONDS)
    while time.monotonic() < deadline:
        await asyncio.sleep(pause)
        form = parameters | {"grant_type": GRANT, "device_code": str(grant.get("device_code"))}
        try:
            answer = await _post(http, endpoint, form)
        except httpx2.TransportError:  # RFC 8628, section 3.5
            pause += _SLOW_DOWN_SECONDS
            continue
        match answer.get("error"):
            case None if isinstance(answer.get("access_token"), str):
                return answer
            case "authorization_pending":
                continue
            case "slow_down":
                pause += _SLOW_DOWN_SECONDS
            case _:
                raise ConfigError(f"the authorization server refused: {_why(answer)}")
    raise ConfigError("nobody logged in in time; try again")


async def _client(
    http: httpx2.AsyncClient, metadata: Document, settings: ClientSettings
) -> Document:
    """Return the client registration: configured, from a metadata document, or a new one."""
    if settings.client_id and settings.client_secret is not None:
        return {
            "client_id": settings.client_id,
            "client_secret": settings.client_secret.reveal(),
            "token_endpoint_auth_method": "client_secret_post",
        }
    if settings.client_id:
        return {"client_id": settings.client_id, "token_endpoint_auth_method": "none"}
    if settings.client_metadata_url and metadata.get("client_id_metadata_document_supported"):
        return {"client_id": settings.client_metadata_url, "token_endpoint_auth_method": "none"}
    registration = {
        "client_name": "acp-agent",
        "grant_types": [GRANT, "refresh_token"],
        "token_endpoint_auth_method": "none",
    }
    endpoint = _endpoint(metadata, "registration_endpoint")
    client = _document(await http.post(endpoint, json=registration))
    if not isinstance(client.get("client_id"), str):
        raise ConfigError(f"the authorization server registers nobody: {_why(client)}")
    return client


async def _fetch_first(http: httpx2.AsyncClient, urls: list[str]) -> Document:
    for url in urls:
        response = await http.get(url)
        if response.status_code == 200:
            return _document(response)
    return {}


async def _post(http: httpx2.AsyncClient, url: str, form: dict[str, str]) -> Document:
    return _document(await http.post(url, data=form))


def _document(response: httpx2.Response) -> Document:
    if len(response.content) > _MAX_RESPONSE_SIZE:
        raise ConfigError("the authorization server's answer is too long")
    try:
        return msgspec.json.decode(response.content, type=dict[str, Any])
    except (ValueError, RecursionError):  # not UTF-8, or not JSON
        raise ConfigError(
            f"the authorization server answered with HTTP {response.status_code} and no JSON"
        ) from None


def _endpoint(metadata: Document, name: str) -> str:
    url = metadata.get(name)
    url_parts = urlsplit(url) if isinstance(url, str) else None
    if url_parts is None or not url_parts.hostname:
        raise ConfigError(f"the authorization server has no {name}; log in without --device")
    if url_parts.scheme != "https" and url_parts.hostname not in {"127.0.0.1", "localhost", "::1"}:
        raise ConfigError(f"the authorization server's {name} is not safe: it is not https")
    return url_parts.geturl()


def _number(value: object, default: float) -> float:
    is_positive = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return float(value) if is_positive and isinstance(value, int | float) else default


def _why(answer: Document) -> str:
    return str(answer.get("error_description") or answer.get("error") or "no reason")[:200]
