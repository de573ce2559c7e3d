"""The authentication status: whether a client must log in first, and who is notified of changes.

A change may also change which models are offered, so the sessions' clients are sent the options.

Source: Agent Client Protocol v1 and v2 (unstable), auth/status and auth/status_update.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from acp_agent.config.localization import Translator
from acp_agent.config.secrets import Secrets
from acp_agent.errors import AuthRequiredError, ConfigError, InvalidInputError, StoreError
from acp_agent.ids import SessionId
from acp_agent.models.providers import Provider, credentials_in
from acp_agent.session.services import Services
from acp_agent.session.session import Session
from protocol.jsonrpc.methods import Method

Json = dict[str, Any]
# The same in both versions, so that the messages are plain JSON here.
AUTH_STATUS_UPDATE: Final[Method[Json, None]] = Method("auth/status_update", dict)


class KnownAccount(Struct, frozen=True):
    """Credentials that are there; `active` where sessions use them by default."""

    label: str
    active: bool


class AuthStatus(Struct, frozen=True):
    """Whether a login is needed to start sessions, and the known credentials."""

    state: Literal["authenticated", "unauthenticated", "not_required", "unknown"]
    accounts: tuple[KnownAccount, ...] = ()


UNKNOWN = AuthStatus("unknown")


class Subscriber(Protocol):
    """Is notified of changes that concern every client of the process."""

    def auth_status_changed(self, before: AuthStatus | None, now: AuthStatus) -> None:
        """Handle a possible change of the status; `before` was computed last."""

    def options_changed(self, session: SessionId) -> None:
        """Handle a change of an open session's options."""


class AuthStatusWatch:
    """Computes the status and publishes its changes.

    Args:
        services: gives the parts that sessions are built on.
        sessions: gives the open sessions.
        subscribers: who is notified.
    """

    def __init__(
        self,
        services: Callable[[], Awaitable[Services]],
        secrets: Secrets,
        *,
        sessions: Callable[[], Iterable[Session]],
        subscribers: Collection[Subscriber],
    ) -> None:
        self._services = services
        self._secrets = secrets
        self._sessions = sessions
        self._subscribers = subscribers
        self._last: AuthStatus | None = None
        self._publishing: set[asyncio.Task[None]] = set()

    async def status(self) -> AuthStatus:
        """Return the status as it is now."""
        try:
            services = await self._services()
        except (ConfigError, StoreError):
            self._last = UNKNOWN  # the requests that fail for this reason report it
        else:
            self._last = await auth_status(services, self._secrets)
        return self._last

    @asynccontextmanager
    async def publish_changes(self) -> AsyncIterator[None]:
        """Publish afterwards how the body changed the status and the sessions' options."""
        await self.status()
        before = {session.id: session.core.settings.options() for session in self._sessions()}
        try:
            yield
        finally:
            await self._publish()
            for session in self._sessions():
                # A session opened in the meantime already has the new options.
                options = session.core.settings.options()
                if options != before.get(session.id, options):
                    for subscriber in tuple(self._subscribers):
                        subscriber.options_changed(session.id)

    def publish_soon(self) -> None:
        """Publish the status, which something changed."""
        task = asyncio.get_running_loop().create_task(self._publish())
        self._publishing.add(task)
        task.add_done_callback(self._publishing.discard)

    async def _publish(self) -> None:
        before = self._last
        now = await self.status()
        for subscriber in tuple(self._subscribers):
            subscriber.auth_status_changed(before, now)


def to_json(status: AuthStatus) -> Json:
    """Return the fields of `AuthStatusResponse` and `AuthStatusUpdateNotification`."""
    accounts = [{"label": account.label, "active": account.active} for account in status.accounts]
    return {"state": status.state, "accounts": accounts}


async def auth_status(services: Services, secrets: Secrets) -> AuthStatus:
    """Return the status as far as it is known without asking a provider."""
    try:
        model = await services.account.choose(None)
    except AuthRequiredError:
        active = None
        state: Literal["authenticated", "unauthenticated", "not_required"] = "unauthenticated"
    except InvalidInputError:
        return UNKNOWN  # the named model does not exist, which no login fixes
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
    header_credentials = provider.set_by_client and credentials_in(provider.headers)
    return provider.has_key or bool(header_credentials)


def _label(provider: Provider, secrets: Secrets, translate: Translator) -> str:
    """Return a label for the credentials and their origin, without any part of them."""
    if not provider.has_key or "authorization" in map(str.lower, provider.headers):
        return translate("{provider} over the editor's endpoint", provider=provider.name)
    if provider.key_command:
        return translate("{provider} key from its key_command", provider=provider.name)
    try:
        origin = secrets.origin(provider.id, provider.key_env)
    except ConfigError:
        origin = None
    match origin:
        case None:
            return translate("{provider} API key", provider=provider.name)
        case _ if origin.kind == "environment":
            return translate(
                "{provider} API key from {variable}", provider=provider.name, variable=origin.name
            )
        case _ if origin.kind == "keyring":
            return translate("{provider} API key from the keyring", provider=provider.name)
        case _:
            return translate("{provider} API key from a login", provider=provider.name)
