"""Logging in and out over the protocol, whichever version it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from acp_agent.config.localization import Translator
from acp_agent.config.secrets import Secrets
from acp_agent.errors import AuthRequiredError, ConfigError, InvalidInputError, StoreError
from acp_agent.ids import SessionId
from acp_agent.models.endpoints import endpoint
from acp_agent.models.providers import Provider, credentials_in
from acp_agent.server.core import Core
from acp_agent.server.editor import ClientEditor
from acp_agent.server.initialize import CONFIGURED, LOGIN_PAGE
from acp_agent.server.link import ClientLink
from acp_agent.session.services import Services
from acp_agent.session.session import Session
from acp_agent.session.settings import Option
from protocol.jsonrpc.methods import Method

if TYPE_CHECKING:
    from acp_agent.server.core import Core
    from acp_agent.server.link import ClientLink


async def log_in(link: ClientLink, method_id: str, request: int | str | None = None) -> None:
    """Make a model usable by one of the methods that this client was offered.

    Args:
        link: the client's connection.
        method_id: the method.
        request: the id of the request for it.

    Raises:
        InvalidInputError: it was offered no such method, or one that runs in a terminal.
        AuthRequiredError: the method found no model that can be used, or the user gave no key.
    """
    methods: dict[str, dict[str, Any]] = {
        method.get("methodId") or method["id"]: method for method in link.handshake.auth_methods()
    }
    method = methods.get(method_id)
    if method is None:
        raise InvalidInputError(
            f"methodId: there is no method {method_id!r}; the methods are " + ", ".join(methods),
            field="methodId",
        )
    if method.get("type") == "terminal":
        raise InvalidInputError(
            f"methodId: {method_id!r} runs in a terminal, not over the protocol", field="methodId"
        )
    services = await link.core.services()
    async with link.core.auth.changing():
        if method_id == LOGIN_PAGE["id"]:
            if request is None:
                raise InvalidInputError("id: this login needs a request with an id", field="id")
            from acp_agent.server.login_page.flow import log_in_by_page  # noqa: PLC0415 - then only

            await log_in_by_page(link, request)
            method_id = CONFIGURED["id"]  # the key is found where it is kept now
        await services.account.authenticate(method_id)


async def log_out(link: ClientLink) -> None:
    """Forget the keys that a login kept; every session needs a login again."""
    services = await link.core.services()
    async with link.core.auth.changing():
        await services.account.log_out()


class KnownAccount(Struct, frozen=True):
    """Credentials that are there; `active` where sessions use them by default."""

    label: str
    active: bool


class AuthStatus(Struct, frozen=True):
    """Whether sessions can be started without a login, and with which credentials."""

    state: Literal["authenticated", "unauthenticated", "not_required", "unknown"]
    accounts: tuple[KnownAccount, ...] = ()


UNKNOWN = AuthStatus("unknown")

Json = dict[str, Any]

# The same in both versions, so that the messages are plain JSON here.
AUTH_STATUS_UPDATE: Final[Method[Json, None]] = Method("auth/status_update", dict)


class AuthWatch:
    """Tells the connections of a process when the status becomes another one.

    Args:
        core: what the connections share.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._last: AuthStatus | None = None
        self._telling: set[asyncio.Task[None]] = set()

    async def ask(self, link: ClientLink | None = None) -> AuthStatus:
        """The status now; a connection that asks has been told it."""
        try:
            services = await self._core.services()
        except (ConfigError, StoreError):
            status = UNKNOWN  # what is wrong is said by the requests that it makes fail
        else:
            status = await auth_status(services, self._core.secrets)
        self._last = status
        if link is not None:
            link.told_auth_status = status
        return status

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[None]:
        """Around what may make the status another one, and the sessions' options."""
        await self.ask()
        options = _options(self._core)
        try:
            yield
        finally:
            await self._tell()
            self._tell_options(options)

    def changed(self) -> None:
        """Something made the status another one."""
        task = asyncio.get_running_loop().create_task(self._tell())
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _tell(self) -> None:
        before = self._last
        now = await self.ask()
        for link in list(self._core.links):
            if link.handshake.done and now != (link.told_auth_status or before):
                link.connection.notify(AUTH_STATUS_UPDATE, to_json(now))
                link.told_auth_status = now

    def _tell_options(self, before: Mapping[SessionId, list[Option]]) -> None:
        for session in _sessions(self._core):
            editor, options = session.client.current, session.core.settings.options()
            # One that was opened meanwhile was opened with the options of now.
            changed = options != before.get(session.id, options)
            if changed and isinstance(editor, ClientEditor):
                editor.show_options(session.id, options)


def _options(core: Core) -> dict[SessionId, list[Option]]:
    return {session.id: session.core.settings.options() for session in _sessions(core)}


def _sessions(core: Core) -> list[Session]:
    return [] if core.opened is None else core.opened.open_sessions()


def to_json(status: AuthStatus) -> Json:
    """The fields of `AuthStatusResponse` and `AuthStatusUpdateNotification`."""
    accounts = [{"label": account.label, "active": account.active} for account in status.accounts]
    return {"state": status.state, "accounts": accounts}


async def auth_status(services: Services, secrets: Secrets) -> AuthStatus:
    """The status as far as it can be told without asking a provider."""
    try:
        model = await services.account.choose(None)
    except AuthRequiredError:
        active = None
        state: Literal["authenticated", "unauthenticated", "not_required"] = "unauthenticated"
    except InvalidInputError:
        return UNKNOWN  # the model that was named does not exist, which no login mends
    else:
        active = services.models.provider(model)
        state = "not_required"
        if active is not None and _has_credentials(active):
            refused = services.account.is_refused(active)
            state = "unauthenticated" if refused else "authenticated"
    accounts = [
        KnownAccount(_label(provider, secrets, services.translate), provider is active)
        for provider in services.models.configurable()
        if _has_credentials(provider) and not provider.disabled
    ]
    return AuthStatus(state, tuple(accounts))


def _has_credentials(provider: Provider) -> bool:
    given = provider.set_by_client and credentials_in(provider.headers)
    return provider.key is not None or bool(given)


def _label(provider: Provider, secrets: Secrets, translate: Translator) -> str:
    """What the credentials are, and where they come from; never a part of them."""
    if provider.key is None or "authorization" in map(str.lower, provider.headers):
        return translate("{provider} through the editor's endpoint", provider=provider.name)
    try:
        origin = secrets.origin(provider.id, provider.key_env)
    except ConfigError:
        origin = None
    match origin:
        case None:
            return translate("{provider} API key", provider=provider.name)
        case _ if origin.kind == "environment":
            return translate(
                "{provider} API key from {variable}",
                provider=provider.name,
                variable=origin.name,
            )
        case _ if origin.kind == "keyring":
            return translate("{provider} API key from the keyring", provider=provider.name)
        case _:
            return translate("{provider} API key from a login", provider=provider.name)


async def configurable(core: Core) -> list[Provider]:
    """Every provider that a client may configure; none is required, so each can be disabled."""
    return (await core.services()).models.configurable()


def is_told(provider: Provider) -> bool:
    """Whether a client is told where a provider is: one that is not used is nowhere."""
    return not (provider.disabled or provider.lacks)


async def set_endpoint(
    core: Core, provider_id: str, api_type: str, base_url: str, headers: Mapping[str, str]
) -> None:
    """Send a provider's requests elsewhere, from the next one of every session on.

    It is kept in memory only, and the headers count as secrets from here on, also when they turn
    out to be of no use.

    Raises:
        InvalidInputError: there is no such provider, or that is no usable endpoint.
    """
    services = await core.services()
    core.secrets.learn(credentials_in(headers))
    given = endpoint(api_type, base_url, headers)
    async with core.auth.changing():
        services.models.set_endpoint(provider_id, given)


async def disable(core: Core, provider_id: str) -> None:
    """Use a provider no longer; one that is not there is not used anyway."""
    services = await core.services()
    if any(provider_id == known.id for known in services.models.configurable()):
        async with core.auth.changing():
            services.models.set_endpoint(provider_id, None)
