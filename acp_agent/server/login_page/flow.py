"""Log in with the page: the client sends the user there, and is notified at the end."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING

from acp_agent.config.secrets import Secrets
from acp_agent.elicitation import Page, Response
from acp_agent.errors import AuthRequiredError
from acp_agent.models.provider_check import Answer, check_provider
from acp_agent.models.providers import Provider
from acp_agent.server.elicitation import ask_page, page_done
from acp_agent.server.login_page.server import LoginPage, login_page

if TYPE_CHECKING:
    from acp_agent.server.client_connection import ClientConnection

USER_SECONDS = 600.0  # for the user to enter a key
CHECK_SECONDS = 10.0  # for the provider to check the key

_DECLINE_MESSAGES = {
    "decline": "the login was declined; nothing changed",
    "cancel": "the login was cancelled; nothing changed",
}


async def log_in_by_page(client: ClientConnection, request: int | str) -> Provider:
    """Ask the user for a key in a browser; return the provider whose key is saved.

    The page is closed when this returns, raises or is cancelled.

    Args:
        request: the ID of the client's request that is being answered.

    Raises:
        AuthRequiredError: the user declined, left, or took too long; nothing is changed.
        EditorGoneError: the client disconnected.
    """
    services = await client.core.services()
    providers = [
        provider
        for provider in services.models.providers()
        if provider.api != "demo" and provider.key_required
    ]
    try:
        async with (
            asyncio.timeout(USER_SECONDS),
            login_page(providers, SecretsKeyStore(client.core.secrets)) as page,
        ):
            return await _visit(client, request, page)
    except TimeoutError:
        raise AuthRequiredError(
            f"no key was entered within {USER_SECONDS / 60:.0f} minutes; log in again"
        ) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise AuthRequiredError(
            f"the login page cannot be shown ({reason}); run 'acp-agent login' in a terminal"
        ) from None


class SecretsKeyStore:
    """Checks and saves a key as `acp-agent login` does."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    async def check(self, provider: Provider, key: str) -> Answer:
        """Return whether the provider accepts the key."""
        return await asyncio.to_thread(check_provider, provider, key, timeout=CHECK_SECONDS)

    async def save(self, provider: Provider, key: str) -> None:
        """Save the key in the user's file, or in the keyring if the previous key was there."""
        origin = self._secrets.origin(provider.id, ())
        keyring = origin is not None and origin.kind == "keyring"
        await asyncio.to_thread(self._secrets.set, provider.id, key, keyring=keyring)


async def _visit(client: ClientConnection, request: int | str, page: LoginPage) -> Provider:
    """Send the user to the page and wait until they have finished.

    They may finish before the client reports that it opened the page.
    """
    message = client.core.translate(
        "Open this page of acp-agent on your own computer to enter the key of a model provider. "
        "The key does not pass through the editor."
    )
    visit = Page(message=message, url=page.url, id=uuid.uuid4().hex)
    connection, version = client.connection, client.handshake.version
    page_request = asyncio.ensure_future(ask_page(connection, version, visit, request))
    done = asyncio.ensure_future(page.done())
    try:
        await asyncio.wait([page_request, done], return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            _check_response(page_request.result())
        provider = await done
        page_done(connection, version, visit)
        return provider
    finally:
        page_request.cancel()
        done.cancel()
        await asyncio.gather(page_request, done, return_exceptions=True)


def _check_response(response: Response | None) -> None:
    if response is None:
        raise AuthRequiredError("the editor could not open the login page; nothing changed")
    if response.action != "accept":
        raise AuthRequiredError(_DECLINE_MESSAGES[response.action])
