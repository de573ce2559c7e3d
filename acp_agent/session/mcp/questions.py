"""Questions of MCP servers to the user of a session, and to models."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.content import JsonObject
from acp_agent.elicitation import Form, Page, Response
from acp_agent.errors import AcpAgentError
from acp_agent.ids import SessionId
from acp_agent.session.client import Client

if TYPE_CHECKING:
    import mcp_types as types

    from acp_agent.hooks.session_hooks import SessionHooks
    from acp_agent.session.mcp.sampling import Sampler

_log = logging.getLogger(__name__)


class McpAsker:
    """Asks the user for a server (`acp_agent.extensions.mcp.elicitation.Asker`).

    Args:
        server: its name, which starts every question so that the user knows who asks.
        tell: notifies the user about questions that were refused.
        lock: a lock shared by the servers of a session.
        hooks: returns the session's hooks, which may answer for the user.
        sampler: returns what asks models; None outside turns.
    """

    def __init__(
        self,
        server: str,
        session: SessionId,
        client: Client,
        tell: Callable[[str, str], Awaitable[None]],
        lock: asyncio.Lock,
        *,
        translate: Translator = ENGLISH,
        hooks: Callable[[], SessionHooks | None] = lambda: None,
        sampler: Callable[[], Sampler | None] = lambda: None,
    ) -> None:
        self._server = server
        self._session = session
        self._client = client
        self._tell = tell
        self._lock = lock
        self._translate = translate
        self._hooks = hooks
        self._sampler = sampler
        self._pages: dict[str, Page] = {}

    async def ask_form(self, form: Form) -> Response | None:
        """Ask the user to fill in a form. Return None if the client cannot show it."""
        labelled = msgspec.structs.replace(form, message=self._from_server(form.message))
        fields = {"mode": "form", "message": form.message, "requested_schema": form.schema}
        return await self._ask(lambda: self._client.ask_form(self._session, labelled), fields)

    async def ask_page(self, page: Page) -> Response | None:
        """Ask the user to visit a page. Return None if the client cannot show it."""
        fields = {"mode": "url", "message": page.message, "url": page.url}
        fields["elicitation_id"] = page.id
        page = msgspec.structs.replace(page, message=self._from_server(page.message))
        response = await self._ask(lambda: self._client.ask_page(self._session, page), fields)
        if response is not None and response.action == "accept":
            self._pages[page.id] = page
        return response

    async def sample(
        self, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """Ask a model, if the user agrees; return its answer or why there is none."""
        from acp_agent.extensions.mcp.server_messages import refusal  # noqa: PLC0415 - few servers ask

        sampler = self._sampler()
        if sampler is None:
            return refusal("no turn is running")
        async with self._lock:
            return await sampler.sample(self._server, params)

    def page_done(self, visit: str) -> None:
        """Report to the client that the visit of a page is complete."""
        page = self._pages.pop(visit, None)
        if page is not None:
            self._client.page_done(page)

    async def refused(self, reason: str) -> None:
        """Notify the user that a question was refused, and why."""
        await self._tell(
            f"A question of the MCP server {self._server!r} was refused.", f"{reason}."
        )

    def _from_server(self, message: str) -> str:
        return self._translate(
            "The MCP server {server} asks: {message}", server=repr(self._server), message=message
        )

    async def _ask(
        self, ask: Callable[[], Awaitable[Response | None]], fields: JsonObject
    ) -> Response | None:
        """Return the response of the hooks, else of the user; `fields` describe the question."""
        hooks = self._hooks()
        if hooks is None:
            return await self._ask_user(ask)
        fields = {"mcp_server_name": self._server, **fields}
        answer = await hooks.fire("Elicitation", fields, matched=self._server)
        response = Response(action="decline") if answer.blocked else answer.response
        if response is None:
            hooks.report_question(str(fields["message"]), "elicitation_dialog")
            response = await self._ask_user(ask)
        if response is None:
            return None
        fields = {"mcp_server_name": self._server, "mode": fields["mode"]}
        fields |= {"action": response.action, "content": response.content or {}}
        answer = await hooks.fire("ElicitationResult", fields, matched=self._server)
        if answer.blocked:
            return Response(action="decline")
        return answer.response or response

    async def _ask_user(self, ask: Callable[[], Awaitable[Response | None]]) -> Response | None:
        try:
            async with self._lock:
                return await ask()
        except AcpAgentError as error:
            _log.info("a question of an MCP server was not answered: %s", error)
        except Exception as error:  # noqa: BLE001 - no editor supports this form
            _log.warning("a question of an MCP server could not be asked: %s", error)
        return None
