"""Logging in and out over the protocol, whichever version it is."""

from __future__ import annotations

from typing import Any

from acp_agent.errors import InvalidInputError
from acp_agent.server.link import ClientLink
from acp_agent.server.negotiation import CONFIGURED, LOGIN_PAGE


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
