"""What an MCP server may ask the user, through the session's editor."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from acp_agent.config.words import ENGLISH, Words
from acp_agent.elicitation import Form, Page, Response
from acp_agent.errors import AcpAgentError
from acp_agent.ids import SessionId
from acp_agent.session.editor import Editor

_log = logging.getLogger(__name__)


class McpAsker:
    """Asks for one server (`acp_agent.extensions.mcp.elicitation.Asker`).

    Args:
        server: its name, which every question begins with: the user must know who asks.
        session: for whose user.
        editor: who shows the question.
        tell: lets the user know of questions that were not passed on.
        one_at_a_time: shared by the servers of a session.
        words: what is said to the user, in the user's language.
    """

    def __init__(
        self,
        server: str,
        session: SessionId,
        editor: Editor,
        tell: Callable[[str, str], Awaitable[None]],
        one_at_a_time: asyncio.Lock,
        *,
        words: Words = ENGLISH,
    ) -> None:
        self._server = server
        self._session = session
        self._editor = editor
        self._tell = tell
        self._lock = one_at_a_time
        self._words = words
        self._pages: dict[str, Page] = {}

    async def ask_form(self, form: Form) -> Response | None:
        """Let the user fill in a form. None: nobody can."""
        form = msgspec.structs.replace(form, message=self._from_server(form.message))
        return await self._asked(lambda: self._editor.ask_form(self._session, form))

    async def ask_page(self, page: Page) -> Response | None:
        """Send the user to a page. None: nobody can."""
        page = msgspec.structs.replace(page, message=self._from_server(page.message))
        response = await self._asked(lambda: self._editor.ask_page(self._session, page))
        if response is not None and response.action == "accept":
            self._pages[page.id] = page
        return response

    def page_done(self, visit: str) -> None:
        """What the user was sent to a page for is done."""
        page = self._pages.pop(visit, None)
        if page is not None:
            self._editor.page_done(page)

    async def refused(self, what: str) -> None:
        """A question was not passed on, for this reason."""
        await self._tell(f"A question of the MCP server {self._server!r} was refused.", f"{what}.")

    def _from_server(self, message: str) -> str:
        return self._words(
            "The MCP server {server} asks: {message}", server=repr(self._server), message=message
        )

    async def _asked(self, ask: Callable[[], Awaitable[Response | None]]) -> Response | None:
        try:
            async with self._lock:
                return await ask()
        except AcpAgentError as error:
            _log.info("a question of an MCP server was not answered: %s", error)
        except Exception as error:  # noqa: BLE001 - a form of a shape that no editor is shown
            _log.warning("a question of an MCP server could not be asked: %s", error)
        return None
