"""Authorize requests to an MCP server, with tokens that are saved and refreshed.

Source: Model Context Protocol, Authorization. The `mcp` package implements the flow: metadata of
the resource and the authorization server, client id metadata documents, dynamic registration, PKCE,
the issuer in the response (RFC 9207). This module stores the results.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, Literal, TypeVar

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.utils import create_client_registration_request, union_scopes
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from msgspec import Struct
from msgspec.structs import replace
from pydantic import AnyUrl, BaseModel, PrivateAttr, ValidationError

from acp_agent.config.secrets import Secret
from acp_agent.extensions.mcp.config import HttpServer
from acp_agent.extensions.mcp.errors import missing_scope
from acp_agent.extensions.mcp.oauth.assertions import (
    PRIVATE_KEY_METHOD,
    assertion_fields,
    is_private_key,
)
from acp_agent.extensions.mcp.oauth.logins import Login, LoginStore

CLIENT_CREDENTIALS = "client_credentials"
NO_REDIRECT = "http://127.0.0.1/callback"  # for a provider that never opens a page
_EARLY_SECONDS = 30.0  # seconds before its expiry that a token is refreshed
_LOCK_SECONDS = 30.0  # longest time that another process may take for a refresh
_LOCK_STEP = 0.05  # seconds between two attempts

_SECRET_METHODS: tuple[Literal["client_secret_basic", "client_secret_post"], ...] = (
    "client_secret_basic",
    "client_secret_post",
)
_Model = TypeVar("_Model", bound=BaseModel)
Learn = Callable[[Sequence[str]], None]


class _RefreshedElsewhereError(Exception):
    """Another process, or another request of this one, has new tokens."""


class ClientSettings(Struct, frozen=True, kw_only=True):
    """The registration settings of this program; empty fields use the server's defaults."""

    client_id: str = ""
    client_secret: Secret | None = None
    without_user: bool = False  # the client logs in by itself, with its secret
    client_metadata_url: str = ""
    scopes: tuple[str, ...] = ()


class Person(Struct, frozen=True, kw_only=True):
    """The user who logs in: how to open a page, and how to receive its answer."""

    redirect_uri: str
    visit: Callable[[str], Awaitable[None]]
    answer: Callable[[], Awaitable[AuthorizationCodeResult]]


def saved_authorization(server: HttpServer, store: LoginStore, learn: Learn) -> Provider | None:
    """Return the authorization from a saved login, or None if there is none. Blocks.

    An Authorization header from the configuration or the client takes precedence over a login.

    Args:
        learn: receives values that must not be shown.

    Raises:
        ConfigError: the logins cannot be read.
    """
    if any(name.lower() == "authorization" for name, _ in server.headers):
        return None
    login = store.get(server.url)
    if login is None:
        return None
    return Provider(server, store, login, learn=learn)


class Provider(OAuthClientProvider):
    """Authorizes requests to one server.

    Without a user it only uses and refreshes tokens: a request that the server refuses for another
    login stays refused, and the scopes that it lacks are saved for the next login.

    Args:
        store: where the login is saved.
        learn: receives values that must not be shown.
    """

    def __init__(
        self,
        server: HttpServer,
        store: LoginStore,
        login: Login,
        *,
        settings: ClientSettings | None = None,
        person: Person | None = None,
        learn: Learn = lambda _: None,
    ) -> None:
        settings = settings or ClientSettings()
        self._server = server
        self._store = store
        self._login = login
        self._learn = learn
        self._has_user = person is not None
        self._demands_login = False
        self._lock: int | None = None  # the descriptor of the lock during a refresh
        metadata = client_metadata(
            settings, NO_REDIRECT if person is None else person.redirect_uri, login.scope
        )
        super().__init__(
            server.url,
            metadata,
            self,
            None if person is None else person.visit,
            None if person is None else person.answer,
            client_metadata_url=settings.client_metadata_url or None,
        )
        learn(login.secrets)

    def demand_login(self) -> None:
        """Have the user log in at the next request, also if the server answers it without."""
        self._demands_login = True

    # -- token storage for the package (`mcp.client.auth.TokenStorage`) ---------------------------

    async def get_tokens(self) -> OAuthToken | None:
        """Return the saved tokens."""
        return _valid(OAuthToken, self._login.tokens)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Save tokens, and what is needed to refresh them after a restart."""
        metadata = self.context.oauth_metadata
        client = self.context.client_info
        self._login = replace(
            self._login,
            tokens=_plain(tokens),
            client={} if client is None else _plain(client),
            metadata={} if metadata is None else _plain(metadata),
            expires_at=None if tokens.expires_in is None else time.time() + tokens.expires_in,
        )
        self._learn(self._login.secrets)
        await asyncio.to_thread(self._store.set, self._server.url, self._login)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the saved registration."""
        return _valid(OAuthClientInformationFull, self._login.client)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Do nothing: the registration is saved with the tokens."""

    # -- additions to the package's flow ----------------------------------------------------------

    async def _initialize(self) -> None:
        await super()._initialize()
        context = self.context
        context.oauth_metadata = _valid(OAuthMetadata, self._login.metadata)
        expires = self._login.expires_at
        context.token_expiry_time = None if expires is None else expires - _EARLY_SECONDS

    async def _auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        has_refreshed = False
        while True:
            flow = super()._auth_flow(request)
            try:
                outgoing = await anext(flow)
                while True:
                    response = yield outgoing
                    tokens = self.context.current_tokens
                    if outgoing is request and self._demands_login:
                        self._demands_login = False
                        response = httpx2.Response(401, request=request)
                    if (
                        outgoing is request
                        and response.status_code == 401
                        and not has_refreshed
                        and tokens is not None
                        and tokens.refresh_token
                    ):  # the access token was revoked: refresh it before the user has to log in
                        has_refreshed = True
                        self.context.token_expiry_time = 1.0
                        break
                    if outgoing is request and not (self._has_user or self._is_without_user):
                        scope = union_scopes(self._login.scope, missing_scope(response)) or ""
                        if scope != self._login.scope:
                            self._login = replace(self._login, scope=scope)
                            await asyncio.to_thread(self._store.set, self._server.url, self._login)
                        return
                    outgoing = self._with_accepted_method(await flow.asend(response))
            except _RefreshedElsewhereError:
                continue
            except StopAsyncIteration:
                return
            finally:
                await flow.aclose()
                self._unlock()

    def _with_accepted_method(self, request: httpx2.Request) -> httpx2.Request:
        """Return a registration for a way to authenticate that the server accepts.

        Without a secret if possible: this program cannot keep one from its user.
        """
        server, client = self.context.oauth_metadata, self.context.client_metadata
        methods = None if server is None else server.token_endpoint_auth_methods_supported
        if (
            server is None
            or request.url != str(server.registration_endpoint)
            or not methods
            or "none" in methods
        ):
            return request
        supported_methods = [method for method in _SECRET_METHODS if method in methods]
        client.token_endpoint_auth_method = supported_methods[0] if supported_methods else "none"
        return create_client_registration_request(server, client, self.context.server_url)

    @property
    def _is_without_user(self) -> bool:
        """Return whether the client logs in by itself (RFC 6749, section 4.4)."""
        client = self.context.client_info
        return client is not None and CLIENT_CREDENTIALS in client.grant_types

    async def _perform_authorization(self) -> httpx2.Request:
        if not self._is_without_user:
            return await super()._perform_authorization()
        context = self.context
        known, current = _valid(OAuthMetadata, self._login.metadata), context.oauth_metadata
        if current is None:
            raise OAuthFlowError("the authorization server has no metadata")
        if known is not None and known.issuer != current.issuer:
            raise OAuthFlowError(
                f"the server names another authorization server, {current.issuer}; log in again"
            )
        self._choose_secret_method()
        data, headers = context.prepare_token_auth(
            {"grant_type": CLIENT_CREDENTIALS},
            {"Content-Type": "application/x-www-form-urlencoded"},
        )
        client = context.client_info
        if client is not None and is_private_key(client.client_secret or ""):
            key, issuer = client.client_secret or "", str(current.issuer)
            data |= await asyncio.to_thread(assertion_fields, client.client_id, key, issuer)
        if context.should_include_resource_param(context.protocol_version):
            data["resource"] = context.get_resource_url()
        if context.client_metadata.scope:
            data["scope"] = context.client_metadata.scope
        return httpx2.Request("POST", self._get_token_endpoint(), data=data, headers=headers)

    def _choose_secret_method(self) -> None:
        """Send the client's secret in a way that the server supports."""
        server, client = self.context.oauth_metadata, self.context.client_info
        methods = None if server is None else server.token_endpoint_auth_methods_supported
        if client is None or is_private_key(client.client_secret or ""):
            return
        if client.client_secret and methods:
            used = client.token_endpoint_auth_method
            supported_methods = [method for method in _SECRET_METHODS if method in methods]
            client.token_endpoint_auth_method = (
                used if used in supported_methods or not supported_methods else supported_methods[0]
            )

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        self._choose_secret_method()
        server = self.context.oauth_metadata
        if server is not None and "S256" not in (server.code_challenge_methods_supported or ()):
            raise OAuthFlowError("the authorization server does not support PKCE with S256")
        return await super()._perform_authorization_code_grant()

    async def _refresh_token(self) -> httpx2.Request:
        # A refresh token is often valid only once: one process refreshes, and the others wait and
        # use the tokens that it saved.
        deadline = time.monotonic() + _LOCK_SECONDS
        while self._lock is None and time.monotonic() < deadline:
            self._lock = await asyncio.to_thread(self._store.try_refreshing, self._server.url)
            if self._lock is None:
                await asyncio.sleep(_LOCK_STEP)
        saved = await asyncio.to_thread(self._store.get, self._server.url)
        tokens = None if saved is None else _valid(OAuthToken, saved.tokens)
        if saved is not None and tokens is not None and tokens.refresh_token:
            old_tokens = self.context.current_tokens
            self._login = saved
            self._learn(saved.secrets)
            await self._initialize()
            is_renewed = old_tokens is not None and old_tokens.access_token != tokens.access_token
            if is_renewed and self.context.is_token_valid():
                raise _RefreshedElsewhereError
        return await super()._refresh_token()

    async def _handle_refresh_response(self, response: httpx2.Response) -> bool:
        try:
            return await super()._handle_refresh_response(response)
        finally:
            self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class _ClientMetadata(OAuthClientMetadata):
    """Metadata whose scope does not only follow the server's suggestion.

    The package sets the scope that the server suggests. The user's configuration takes precedence,
    and scopes that an earlier request lacked are added.
    """

    _configured_scope: str = PrivateAttr("")
    _missing_scope: str = PrivateAttr("")

    def __setattr__(self, name: str, value: Any) -> None:  # as pydantic declares it
        """Set a field."""
        if name == "scope":
            value = union_scopes(self._configured_scope or value, self._missing_scope)
        super().__setattr__(name, value)

    def set_scopes(self, configured: str, missing: str) -> None:
        """Set the user's scopes, and those that an earlier request lacked."""
        self._configured_scope = configured
        self._missing_scope = missing
        self.scope = configured or None


def client_metadata(
    settings: ClientSettings, redirect_uri: str, missing_scope: str = ""
) -> OAuthClientMetadata:
    """Return the metadata with which this program registers."""
    metadata = _ClientMetadata(
        client_name="acp-agent",
        redirect_uris=[AnyUrl(redirect_uri)],
        token_endpoint_auth_method="none",  # noqa: S106 - a method without a secret
        grant_types=["authorization_code", "refresh_token"],
    )
    metadata.set_scopes(" ".join(settings.scopes), missing_scope)
    return metadata


def configured_client(settings: ClientSettings, redirect_uri: str) -> dict[str, Any]:
    """Return the registration that the user configured, or {} if there is none."""
    if not settings.client_id:
        return {}
    client: dict[str, Any] = {"client_id": settings.client_id, "redirect_uris": [redirect_uri]}
    if settings.client_secret is None:
        return client | {"token_endpoint_auth_method": "none"}
    secret = settings.client_secret.reveal()
    if settings.without_user:
        client["grant_types"] = [CLIENT_CREDENTIALS]
    if is_private_key(secret):
        return client | {
            "client_secret": secret,
            "token_endpoint_auth_method": PRIVATE_KEY_METHOD,
        }
    # The default of RFC 8414; the grant follows the server's metadata.
    return client | {
        "client_secret": secret,
        "token_endpoint_auth_method": "client_secret_basic",
    }


def _plain(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude_none=True)


def _valid(kind: type[_Model], values: dict[str, Any]) -> _Model | None:
    try:
        return kind.model_validate(values) if values else None
    except ValidationError:
        return None
