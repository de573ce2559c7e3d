"""Authorization of requests to an MCP server, with tokens that are kept and refreshed.

Source: Model Context Protocol, Authorization. The `mcp` package has the flow: metadata of the
resource and the authorization server, client id metadata documents, dynamic registration, PKCE, the
issuer in the answer (RFC 9207). This module keeps what it gets.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from msgspec import Struct
from msgspec.structs import replace
from pydantic import AnyUrl, BaseModel, ValidationError

from acp_agent.extensions.mcp.config import HttpServer
from acp_agent.extensions.mcp.oauth.logins import Login, LoginStore

NO_REDIRECT = "http://127.0.0.1/callback"  # of a provider that never sends anybody to a page
_EARLY = 30.0  # seconds before its end that a token is refreshed
_LOCK_SECONDS = 30.0  # that another process may take to refresh it
_LOCK_STEP = 0.05  # seconds between two attempts

_Model = TypeVar("_Model", bound=BaseModel)
Learn = Callable[[Sequence[str]], None]


class _RefreshedElsewhereError(Exception):
    """Another process, or another request of this one, has new tokens."""


class ClientSettings(Struct, frozen=True, kw_only=True):
    """How this program introduces itself; empty: as the authorization server offers."""

    client_id: str = ""
    client_metadata_url: str = ""
    scopes: tuple[str, ...] = ()


class Person(Struct, frozen=True, kw_only=True):
    """The user who logs in: sent to a page, and what came back from it."""

    redirect_uri: str
    visit: Callable[[str], Awaitable[None]]
    answer: Callable[[], Awaitable[AuthorizationCodeResult]]


def saved_authorization(server: HttpServer, store: LoginStore, learn: Learn) -> Provider | None:
    """Return what authorizes requests with a kept login; None where there is none. Blocks.

    Headers that the configuration or the client gives win over a login.

    Args:
        server: where the requests go.
        store: the logins.
        learn: is given values that must not be shown.

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

    Args:
        server: where the requests go.
        store: where a login is kept.
        login: the login to begin with.
        settings: how this program introduces itself.
        person: the user, where they are there to log in.
        learn: is given values that must not be shown.
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
        self._lock: int | None = None  # the descriptor of the lock while tokens are refreshed
        metadata = client_metadata(settings, NO_REDIRECT if person is None else person.redirect_uri)
        super().__init__(
            server.url,
            metadata,
            self,
            self._nobody if person is None else person.visit,
            _no_answer if person is None else person.answer,
            client_metadata_url=settings.client_metadata_url or None,
        )
        learn(login.secrets)

    # -- what the package keeps its tokens in (`mcp.client.auth.TokenStorage`) -----------------

    async def get_tokens(self) -> OAuthToken | None:
        """Return the kept tokens."""
        return _valid(OAuthToken, self._login.tokens)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens, and what is needed to refresh them after a restart."""
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
        """Return the kept registration."""
        return _valid(OAuthClientInformationFull, self._login.client)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Do nothing: it is kept with the tokens."""

    # -- what the package leaves open ----------------------------------------------------------

    async def _initialize(self) -> None:
        await super()._initialize()
        context = self.context
        context.oauth_metadata = _valid(OAuthMetadata, self._login.metadata)
        expires = self._login.expires_at
        context.token_expiry_time = None if expires is None else expires - _EARLY

    async def _auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        renewed = False
        while True:
            flow = super()._auth_flow(request)
            try:
                sent = await anext(flow)
                while True:
                    response = yield sent
                    tokens = self.context.current_tokens
                    if (
                        sent is request
                        and response.status_code == 401
                        and not renewed
                        and tokens is not None
                        and tokens.refresh_token
                    ):  # the access token was withdrawn: new ones come before the user is needed
                        renewed = True
                        self.context.token_expiry_time = 1.0
                        break
                    sent = await flow.asend(response)
            except _RefreshedElsewhereError:
                continue
            except StopAsyncIteration:
                return
            finally:
                await flow.aclose()
                self._unlock()

    async def _refresh_token(self) -> httpx2.Request:
        # A refresh token is often valid only once: one process refreshes, the others wait and use
        # what it kept.
        deadline = time.monotonic() + _LOCK_SECONDS
        while self._lock is None and time.monotonic() < deadline:
            self._lock = await asyncio.to_thread(self._store.try_refreshing, self._server.url)
            if self._lock is None:
                await asyncio.sleep(_LOCK_STEP)
        kept = await asyncio.to_thread(self._store.get, self._server.url)
        tokens = None if kept is None else _valid(OAuthToken, kept.tokens)
        if kept is not None and tokens is not None and tokens.refresh_token:
            used = self.context.current_tokens
            self._login = kept
            self._learn(kept.secrets)
            await self._initialize()
            others = used is not None and used.access_token != tokens.access_token
            if others and self.context.is_token_valid():
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

    async def _nobody(self, address: str) -> None:
        del address
        raise OAuthFlowError(
            f"it wants you to log in again: acp-agent mcp login {self._server.name}"
        )


async def _no_answer() -> AuthorizationCodeResult:
    raise OAuthFlowError("nobody is there to log in")


def client_metadata(settings: ClientSettings, redirect_uri: str) -> OAuthClientMetadata:
    """Return what this program registers itself with."""
    return OAuthClientMetadata(
        client_name="acp-agent",
        redirect_uris=[AnyUrl(redirect_uri)],
        token_endpoint_auth_method="none",  # noqa: S106 - a method without a secret
        grant_types=["authorization_code", "refresh_token"],
        scope=" ".join(settings.scopes) or None,
    )


def configured_client(settings: ClientSettings, redirect_uri: str) -> dict[str, Any]:
    """Return the registration that the user made; empty where there is none."""
    if not settings.client_id:
        return {}
    return {
        "client_id": settings.client_id,
        "redirect_uris": [redirect_uri],
        "token_endpoint_auth_method": "none",
    }


def _plain(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude_none=True)


def _valid(kind: type[_Model], values: dict[str, Any]) -> _Model | None:
    try:
        return kind.model_validate(values) if values else None
    except ValidationError:
        return None
