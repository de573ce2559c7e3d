"""Handlers that few clients use, imported when one is first called: login, providers, unstable.

The two versions have the same JSON here, so responses are made as JSON.

Source: Agent Client Protocol v1 and v2, Authentication; unstable: session/archive and following,
auth/status, providers/* (RFD "Configurable LLM Providers").
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from acp_agent.errors import InvalidInputError
from acp_agent.ids import SessionId
from acp_agent.models.endpoints import API_TYPES, endpoint
from acp_agent.models.providers import Provider, credentials_in
from acp_agent.server.auth_status import to_json
from acp_agent.server.client_connection import ClientConnection
from acp_agent.server.initialize import CONFIGURED, LOGIN_PAGE
from acp_agent.server.operations import Operations
from protocol.jsonrpc.handlers import Call

if TYPE_CHECKING:
    from protocol.v1 import types as v1, unstable as v1_unstable
    from protocol.v2 import types as v2, unstable as v2_unstable

    Login = v1.AuthenticateRequest | v2.LoginAuthRequest
    Archive = v1_unstable.ArchiveSessionRequest | v2_unstable.ArchiveSessionRequest
    Unarchive = v1_unstable.UnarchiveSessionRequest | v2_unstable.UnarchiveSessionRequest
    Status = v1_unstable.SessionStatusRequest | v2_unstable.SessionStatusRequest
    SetTitle = v1_unstable.SetSessionTitleRequest | v2_unstable.SetSessionTitleRequest
    SetProvider = v1_unstable.SetProviderRequest | v2_unstable.SetProviderRequest
    DisableProvider = v1_unstable.DisableProviderRequest | v2_unstable.DisableProviderRequest

Json = dict[str, Any]


# -- accounts ------------------------------------------------------------------------------
Answer = Callable[[ClientConnection, Operations, Any, Call], Awaitable[Json]]


async def log_in(client: ClientConnection, _: Operations, request: Login, call: Call) -> Json:
    """Make a model usable by one of the methods that this client was offered (Authentication).

    Raises:
        InvalidInputError: it was not offered the method, or the method runs in a terminal.
        AuthRequiredError: the method found no usable model, or the user gave no key.
    """
    method_id = request.method_id
    methods: dict[str, Json] = {
        method.get("methodId") or method["id"]: method for method in client.handshake.auth_methods()
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
    services = await client.core.services()
    async with client.core.auth.publish_changes():
        if method_id == LOGIN_PAGE["id"]:
            if call.id is None:
                raise InvalidInputError("id: this login needs a request with an id", field="id")
            from acp_agent.server.login_page.flow import log_in_by_page  # noqa: PLC0415 - then only

            await log_in_by_page(client, call.id)
            method_id = CONFIGURED["id"]  # finds the key that was just stored
        await services.account.authenticate(method_id)
    return {}


async def log_out(client: ClientConnection, _: Operations, _request: object, _call: Call) -> Json:
    """Forget the keys that a login stored; every session needs a login again (Authentication)."""
    services = await client.core.services()
    async with client.core.auth.publish_changes():
        await services.account.log_out()
    return {}


async def auth_status(
    client: ClientConnection, _: Operations, _request: object, _call: Call
) -> Json:
    """Return whether a login is needed."""
    return to_json(await client.auth_status())


# -- sessions ------------------------------------------------------------------------------


async def archive(
    client: ClientConnection, operations: Operations, request: Archive, _call: Call
) -> Json:
    """Close a session and leave it out of lists."""
    operations.refuse_child(request.session_id)
    operations.cancel(request.session_id)  # including the requests that wait in the queue
    async with operations.exclusive_access(request.session_id):
        session = SessionId(request.session_id)
        await (await client.core.manager()).archive(session)
        operations.editor.forget(session)
    return {}


async def unarchive(
    client: ClientConnection, operations: Operations, request: Unarchive, _call: Call
) -> Json:
    """Put a session into lists again."""
    async with operations.exclusive_access(request.session_id):
        await (await client.core.manager()).unarchive(SessionId(request.session_id))
    return {}


async def status(
    client: ClientConnection, operations: Operations, request: Status, _call: Call
) -> Json:
    """Return whether a session is open in this process."""
    operations.refuse_child(request.session_id)
    session = await (await client.core.manager()).look_up(SessionId(request.session_id))
    return {"status": "saved" if session is None else "open"}


async def set_title(
    client: ClientConnection, operations: Operations, request: SetTitle, _call: Call
) -> Json:
    """Name a session, and return the title as it is stored."""
    async with operations.exclusive_access(request.session_id):
        manager, session = await client.core.manager(), SessionId(request.session_id)
        return {"title": await manager.set_title(session, request.title)}


# -- providers -----------------------------------------------------------------------------


async def list_providers(
    client: ClientConnection, _: Operations, _request: object, _call: Call
) -> Json:
    """List the providers with their endpoints. None is required, so each can be disabled."""
    providers = (await client.core.services()).models.configurable()
    return {"providers": [_provider_info(provider) for provider in providers]}


async def set_provider(
    client: ClientConnection, _: Operations, request: SetProvider, _call: Call
) -> Json:
    """Send a provider's requests to another endpoint, from the next request of any session on.

    The endpoint is kept in memory only. Its headers count as secrets even if it is unusable.

    Raises:
        InvalidInputError: the provider does not exist, or the endpoint is unusable.
    """
    services = await client.core.services()
    client.core.secrets.learn(credentials_in(request.headers))
    provider_endpoint = endpoint(request.api_type, request.base_url, request.headers)
    async with client.core.auth.publish_changes():
        services.models.set_endpoint(request.provider_id, provider_endpoint)
    return {}


async def disable_provider(
    client: ClientConnection, _: Operations, request: DisableProvider, _call: Call
) -> Json:
    """Use a provider no longer. Does nothing if it does not exist."""
    models = (await client.core.services()).models
    if any(request.provider_id == provider.id for provider in models.configurable()):
        async with client.core.auth.publish_changes():
            models.set_endpoint(request.provider_id, None)
    return {}


def _provider_info(provider: Provider) -> Json:
    info: Json = {"providerId": provider.id, "supported": list(API_TYPES), "required": False}
    if not (provider.disabled or provider.lacks):  # an unused provider has no endpoint
        info["current"] = {"apiType": provider.api_type, "baseUrl": provider.address}
    return info


HANDLERS: dict[str, Answer] = {
    "authenticate": log_in,
    "logout": log_out,
    "auth/login": log_in,
    "auth/logout": log_out,
    "auth/status": auth_status,
    "session/archive": archive,
    "session/unarchive": unarchive,
    "session/status": status,
    "session/set_title": set_title,
    "providers/list": list_providers,
    "providers/set": set_provider,
    "providers/disable": disable_provider,
}
