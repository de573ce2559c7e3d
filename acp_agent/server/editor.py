"""The connected client as the sessions see it, whichever version of the protocol it speaks."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from acp_agent.content import JsonObject
from acp_agent.errors import EditorFailedError
from acp_agent.events import AnyEvent, SubagentChanged
from acp_agent.ids import CallId, SessionId
from acp_agent.server.handshake import ClientProfile
from protocol.jsonrpc.connection import Connection

if TYPE_CHECKING:
    from acp_agent.agent.resources import PermissionRequest
    from acp_agent.elicitation import Form, Page, Response
    from acp_agent.permissions.access import Ask, Choice, Decision
    from acp_agent.server.link import ClientLink
    from acp_agent.server.session_requests import Requester
    from acp_agent.server.trace_context import TraceContext
    from acp_agent.session.commands.command import Command
    from acp_agent.session.settings import Option
    from acp_agent.tools.base import Answer, Question
    from acp_agent.workspace.editor_files import EditorBuffers
    from acp_agent.workspace.processes import EditorTerminals

_log = logging.getLogger(__name__)

_LONGEST_NAME = 100  # characters of a flag


class ClientEditor(ABC):
    """Shows events to the client and asks it, each only as it advertised.

    It is the `acp_agent.session.client.Editor` of every session that the connection has; the
    versions differ in how they show and ask.

    Args:
        link: the connection.
    """

    def __init__(self, link: ClientLink) -> None:
        self.link = link
        self._traces: dict[SessionId, TraceContext] = {}
        self._parents: dict[SessionId, SessionId] = {}  # of the children that were shown

    @property
    def client(self) -> ClientProfile:
        """What the client can do."""
        return self.link.handshake.client

    @property
    def connection(self) -> Connection:
        """The way to the client."""
        return self.link.connection

    def asks(self, session: SessionId) -> Requester:
        """The way to the client for what a session asks, in this turn and in later ones."""
        from acp_agent.server.session_requests import SessionRequests  # noqa: PLC0415 - for prompts

        return SessionRequests(
            self.connection, lambda: self._traces.get(self._parents.get(session, session))
        )

    def trace_turn(self, session: SessionId, meta: JsonObject | None) -> None:
        """A turn began by a request with this `_meta`: what it asks is part of the same trace."""
        self._traces.pop(session, None)
        if meta is None or "traceparent" not in meta:
            return
        from acp_agent.server.trace_context import trace_context  # noqa: PLC0415 - few clients do

        context = trace_context(meta)
        if context is not None:
            self._traces[session] = context

    def trace(self, session: SessionId) -> JsonObject:
        """Which trace the session's turn is part of, as a `_meta` for others than the client."""
        context = self._traces.get(session)
        return {} if context is None else context.parent

    def parent_of(self, session: SessionId) -> SessionId | None:
        """The session that a child session belongs to; None where it is no child."""
        return self._parents.get(session)

    def note_children(self, session: SessionId, events: Iterable[AnyEvent]) -> None:
        """Learn from events of a session which children it has."""
        for event in events:
            if isinstance(event, SubagentChanged) and event.session not in self._parents:
                self._parents[event.session] = session
                self.link.child_began(event.session, session)

    def _own(self, session: SessionId, events: Sequence[AnyEvent]) -> Sequence[AnyEvent]:
        """A session's journal as it is shown again, with the children that are its own."""
        if SubagentChanged not in map(type, events):
            return events
        from acp_agent.server.child_sessions import without_inherited  # noqa: PLC0415 - rare

        own = without_inherited(events)
        self.note_children(session, own)
        return own if self.client.subagents else events

    @abstractmethod
    def forget(self, session: SessionId) -> None:
        """The session is closed."""
        for child in [child for child, parent in self._parents.items() if parent == session]:
            del self._parents[child]

    @abstractmethod
    async def show(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Send what shows the events; waits while the client reads too slowly."""

    @abstractmethod
    async def replay(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Send the whole conversation again."""

    @abstractmethod
    def show_options(self, session: SessionId, options: Sequence[Option]) -> None:
        """Say which options there are now, with their values."""

    def options_changed(self, session: SessionId) -> None:
        """Say which options a session has now, while it is open here and not being closed."""
        manager = self.link.core.opened
        found = None if manager is None else manager.find(session)
        if found is not None and found.client.current is self:
            self.show_options(session, found.core.settings.options())

    @abstractmethod
    def offer_commands(self, session: SessionId, commands: Sequence[Command]) -> None:
        """Say which slash commands there are now."""

    def replaced(self, session: SessionId, left: Sequence[AnyEvent]) -> None:
        """Another connection opened the session; `left` is shown here, and nothing more of it."""
        self._leave(session, left)
        self.forget(session)

    @abstractmethod
    def _leave(self, session: SessionId, left: Sequence[AnyEvent]) -> None:
        """Send what shows the last events of a session that moves away."""

    def buffers(self, session: SessionId) -> EditorBuffers | None:
        """The editor's files; None where it offers none."""
        del session
        return None

    def terminals(self, session: SessionId) -> EditorTerminals | None:
        """The editor's terminals; None where it offers none or the user did not opt in."""
        del session
        return None

    async def ask_permission(
        self, session: SessionId, asking: PermissionRequest, ask: Ask
    ) -> Decision:
        """Let the user decide about a call; waits as long as the turn lives.

        An answer that names no button of ours counts as a refusal. Raises as `users_answer` does.
        """
        from acp_agent.server.session_requests import users_answer  # noqa: PLC0415 - for prompts

        try:
            chosen, meta = await users_answer(self._chosen_option(session, asking, ask))
        except EditorFailedError as error:
            _log.warning("the editor did not ask for permission as it should: %s", error)
            raise
        refusal = next((choice for choice in ask.choices if choice.kind == "reject_once"), None)
        found = next((choice for choice in ask.choices if choice.id == chosen), refusal)
        return _decision(None if chosen is None else found, meta)

    @abstractmethod
    async def _chosen_option(
        self, session: SessionId, asking: PermissionRequest, ask: Ask
    ) -> tuple[str | None, JsonObject | None]:
        """Return the id of the button that was pressed, and the `_meta` of the answer.

        There is no id where the question was dismissed.

        Raises:
            RpcError: the client could not ask.
            EditorFailedError: it answered what is neither.
            ConnectionError: it left.
        """

    async def ask_question(
        self, session: SessionId, call: CallId, question: Question
    ) -> Answer | None:
        """Ask the user with a form. None: this client shows no forms, or failed to."""
        if not self.client.forms:
            return None
        from acp_agent.server.questions import answer_of, form_of  # noqa: PLC0415 - where forms are

        response = await self.ask_form(
            session, form_of(question, self.link.core.translate), call=call
        )
        return None if response is None else answer_of(question, response)

    @abstractmethod
    async def ask_form(
        self, session: SessionId, form: Form, *, call: CallId | None = None
    ) -> Response | None:
        """Let the user fill in a form. None: the client shows no forms, or failed to."""

    @abstractmethod
    async def ask_page(
        self, session: SessionId, page: Page, *, call: CallId | None = None
    ) -> Response | None:
        """Send the user to a page. None: the client opens no pages, or failed to."""

    @abstractmethod
    def page_done(self, page: Page) -> None:
        """Say that what the user was sent to a page for is done."""


def _decision(choice: Choice | None, meta: JsonObject | None) -> Decision:
    """Return the user's decision, or whose it was by the `_meta` of the answer.

    Our own clients say so where they answer by themselves (docs/extensions.md). That nobody was
    there to ask can be no consent.
    """
    from acp_agent.permissions.access import Decision  # noqa: PLC0415 - for prompts
    from acp_agent.server.extensions.meta import marker  # noqa: PLC0415 - likewise

    match marker(meta, "acp-agent", "decidedBy"):
        case {"by": "flag", "name": str(name)} if 0 < len(name) <= _LONGEST_NAME:
            return Decision(choice=choice, by="flag", name=name)
        case {"by": "nobody"} if choice is None or choice.kind.startswith("reject"):
            return Decision(choice=choice, by="nobody")
        case _:
            return Decision(choice=choice)
