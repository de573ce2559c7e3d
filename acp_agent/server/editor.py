"""The connected client as the sessions see it, in either version of the protocol."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from acp_agent.content import JsonObject
from acp_agent.errors import EditorFailedError
from acp_agent.events import AnyEvent, ConfigChanged, SubagentChanged
from acp_agent.ids import CallId, SessionId
from acp_agent.server.core import Core
from acp_agent.server.handshake import ClientProfile, Handshake
from acp_agent.session.store.event_codec import merge_adjacent
from protocol.jsonrpc.connection import Connection

if TYPE_CHECKING:
    from acp_agent.agent.resources import PermissionRequest
    from acp_agent.elicitation import Form, Page, Response
    from acp_agent.permissions.access import Ask, Choice, Decision
    from acp_agent.server.session_requests import SessionRequests
    from acp_agent.server.session_tree import SessionTree, Target
    from acp_agent.server.trace_context import TraceContext
    from acp_agent.session.commands.command import Command
    from acp_agent.session.settings import Option
    from acp_agent.tools.base import Answer, Question
    from acp_agent.workspace.editor_files import EditorBuffers
    from acp_agent.workspace.processes import EditorTerminals

_log = logging.getLogger(__name__)

_MAX_NAME = 100  # characters of a flag

TreeT = TypeVar("TreeT", bound="SessionTree[Any]")


class ClientEditor(ABC, Generic[TreeT]):
    """Shows events to a client and asks its user, as far as the client's capabilities go.

    It is the `acp_agent.session.client.Client` of every session that the connection has. The
    versions of the protocol differ in the messages that show and ask.

    Args:
        on_child: called with a child session and its parent before the child is first shown.
    """

    def __init__(
        self,
        connection: Connection,
        handshake: Handshake,
        core: Core,
        on_child: Callable[[SessionId, SessionId], None],
    ) -> None:
        self._connection = connection
        self._handshake = handshake
        self._core = core
        self._on_child = on_child
        self._trees: dict[SessionId, TreeT] = {}
        self._traces: dict[SessionId, TraceContext] = {}
        self._parents: dict[SessionId, SessionId] = {}  # of the children that were shown

    @property
    def client(self) -> ClientProfile:
        """What the client can do."""
        return self._handshake.client

    @property
    def asks_outside_turns(self) -> bool:
        """Whether the client shows forms also while no turn runs; version 2 has them in turns."""
        return self.client.forms and self._handshake.version == 1

    def requests(self, session: SessionId) -> SessionRequests:
        """Return what sends a session's requests to the client, in this turn and later ones."""
        from acp_agent.server.session_requests import SessionRequests  # noqa: PLC0415 - for prompts

        return SessionRequests(
            self._connection, lambda: self._traces.get(self._parents.get(session, session))
        )

    def trace_turn(self, session: SessionId, meta: JsonObject | None) -> None:
        """Take over the trace from the `_meta` of the request that began a session's turn."""
        self._traces.pop(session, None)
        if meta is None or "traceparent" not in meta:
            return
        from acp_agent.server.trace_context import trace_context  # noqa: PLC0415 - few clients do

        context = trace_context(meta)
        if context is not None:
            self._traces[session] = context

    def trace(self, session: SessionId) -> JsonObject:
        """Return the trace of the session's turn as a `_meta` for others than the client."""
        context = self._traces.get(session)
        return {} if context is None else context.parent

    def find_parent(self, session: SessionId) -> SessionId | None:
        """Return the session that a child session belongs to; None for any other session."""
        return self._parents.get(session)

    def register_children(self, session: SessionId, events: Iterable[AnyEvent]) -> None:
        """Remember the children that events of a session mention."""
        for event in events:
            if isinstance(event, SubagentChanged) and event.session not in self._parents:
                self._parents[event.session] = session
                self._on_child(event.session, session)

    def _own_events(self, session: SessionId, events: Sequence[AnyEvent]) -> Sequence[AnyEvent]:
        """Return a session's journal without the children that it inherited from a fork."""
        if SubagentChanged not in map(type, events):
            return events
        from acp_agent.server.child_sessions import without_inherited  # noqa: PLC0415 - rare

        remaining = without_inherited(events)
        self.register_children(session, remaining)
        return remaining if self.client.subagents else events

    def forget(self, session: SessionId) -> None:
        """Drop what is known of a closed session."""
        self._trees.pop(session, None)
        for child in [child for child, parent in self._parents.items() if parent == session]:
            del self._parents[child]

    @abstractmethod
    def _new_tree(self, session: SessionId) -> TreeT:
        """Return what turns the events of a session into the version's updates."""

    def _tree(self, session: SessionId) -> TreeT:
        tree = self._trees.get(session)
        return self._create_tree(session) if tree is None else tree

    def _create_tree(self, session: SessionId) -> TreeT:
        tree = self._trees[session] = self._new_tree(session)
        return tree

    async def show(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Send the updates that show events; wait while the client reads too slowly."""
        tree = self._tree(session)
        self.register_children(session, events)
        for event in self._display_order(session, merge_adjacent(events, output=False)):
            if isinstance(event, ConfigChanged):
                self._option_changed(session, event)
            else:
                self._send(tree.updates(event))
        await self._connection.drain()

    def _display_order(self, _session: SessionId, events: Sequence[AnyEvent]) -> Iterable[AnyEvent]:
        """Return the events in the order in which they are shown."""
        return events

    def _option_changed(self, session: SessionId, _event: ConfigChanged) -> None:
        """Show that an option has another value."""
        self.options_changed(session)

    @abstractmethod
    async def replay(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Send the whole conversation again."""

    async def _send_replay(self, updates: Iterable[tuple[SessionId, Any]]) -> None:
        """Send the updates of a replay; wait while the client reads too slowly."""
        for index, (session, update) in enumerate(updates):
            self.update(session, update)
            if index % 256 == 0:
                await self._connection.drain()

    def catch_up(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Take in events that were shown to other clients, without sending them."""
        tree = self._create_tree(session)
        for event in self._own_events(session, events):
            for _ in tree.updates(event):
                pass

    def announce_work(self, session: SessionId) -> None:
        """Send what the client must know of work whose start it did not see."""
        self._send(self._tree(session).missed_updates())

    def _send(self, updates: Iterable[tuple[SessionId, Any]]) -> None:
        for session, update in updates:
            self.update(session, update)

    @abstractmethod
    def update(self, session: SessionId, update: Any) -> None:
        """Send one update of the version."""

    @abstractmethod
    def show_options(self, session: SessionId, options: Sequence[Option]) -> None:
        """Send the options of a session with their values."""

    def options_changed(self, session: SessionId) -> None:
        """Send a session's options if the session is open here and is not being closed."""
        open_session = (
            None if self._core.active_manager is None else self._core.active_manager.find(session)
        )
        if open_session is not None and open_session.client.current is self:
            self.show_options(session, open_session.core.settings.options())

    @abstractmethod
    def offer_commands(self, session: SessionId, commands: Sequence[Command]) -> None:
        """Send the slash commands of a session."""

    def replaced(self, session: SessionId, last_events: Sequence[AnyEvent]) -> None:
        """Show `last_events`, the last ones here: another client opened the session."""
        self._show_last(session, last_events)
        self.forget(session)

    def _show_last(self, session: SessionId, last_events: Sequence[AnyEvent]) -> None:
        """Send the updates for the last events of a session that moves to another client."""
        tree = self._trees.get(session)
        if tree is not None:
            for event in last_events:
                self._send(tree.updates(event))

    def buffers(self, session: SessionId) -> EditorBuffers | None:
        """Return the client's files; None if it offers none."""
        del session
        return None

    def terminals(self, session: SessionId) -> EditorTerminals | None:
        """Return the client's terminals; None if it offers none or the user did not opt in."""
        del session
        return None

    async def ask_permission(
        self, session: SessionId, call_request: PermissionRequest, ask: Ask
    ) -> Decision:
        """Ask the user to decide about a call; wait as long as the turn runs.

        An answer that names an unknown option counts as a refusal. Raises as `await_user_answer`
        does.
        """
        from acp_agent.server.session_requests import await_user_answer  # noqa: PLC0415 - for prompts

        try:
            option_id, meta = await await_user_answer(
                self._request_option(session, call_request, ask)
            )
        except EditorFailedError as error:
            _log.warning("the editor did not ask for permission as it should: %s", error)
            raise
        refusal = next((choice for choice in ask.choices if choice.kind == "reject_once"), None)
        choice_ = next((choice for choice in ask.choices if choice.id == option_id), refusal)
        return _decision(None if option_id is None else choice_, meta)

    @abstractmethod
    async def _request_option(
        self, session: SessionId, call_request: PermissionRequest, ask: Ask
    ) -> tuple[str | None, JsonObject | None]:
        """Return the id of the option that the user chose, and the `_meta` of the answer.

        The id is None if the user dismissed the question.

        Raises:
            RpcError: the client could not ask.
            EditorFailedError: the client's answer makes no sense.
            ConnectionError: the client left.
        """

    async def ask_question(
        self, session: SessionId, call: CallId, question: Question
    ) -> Answer | None:
        """Ask the user with a form. None: this client shows no forms, or failed to."""
        if not self.client.forms:
            return None
        from acp_agent.server.questions import build_answer, build_form  # noqa: PLC0415 - where forms are

        response = await self.ask_form(
            session, build_form(question, self._core.translate), call=call
        )
        return None if response is None else build_answer(question, response)

    async def ask_form(
        self, session: SessionId, form: Form, *, call: CallId | None = None
    ) -> Response | None:
        """Ask the user to fill in a form. None: the client shows no forms, or failed to."""
        if not self.client.forms:
            return None
        from acp_agent.server.elicitation import ask_form  # noqa: PLC0415 - rare

        with self._waiting_for_user(session, call):
            requests, version = self.requests(session), self._handshake.version
            return await ask_form(requests, version, form, self._target(session, call))

    async def ask_page(
        self, session: SessionId, page: Page, *, call: CallId | None = None
    ) -> Response | None:
        """Send the user to a page. None: the client opens no pages, or failed to."""
        if not self.client.pages:
            return None
        from acp_agent.server.elicitation import ask_page  # noqa: PLC0415 - rare

        with self._waiting_for_user(session, call):
            requests, version = self.requests(session), self._handshake.version
            return await ask_page(requests, version, page, self._target(session, call))

    def page_done(self, page: Page) -> None:
        """Report that the user has finished on a page."""
        from acp_agent.server.elicitation import page_done  # noqa: PLC0415 - rare

        page_done(self._connection, self._handshake.version, page)

    def _target(self, session: SessionId, call: CallId | None) -> Target:
        """Return where the user is asked about a call of a session or of its child."""
        return self._tree(self.find_parent(session) or session).target(call)

    def _waiting_for_user(
        self, _session: SessionId, _call: CallId | None
    ) -> AbstractContextManager[None]:
        """Show that a call waits for the user, in a version that shows this."""
        return nullcontext()


def _decision(choice: Choice | None, meta: JsonObject | None) -> Decision:
    """Return the decision, with who made it by the `_meta` of the answer.

    Our own clients send that when they answer by themselves (docs/extensions.md). Consent cannot
    come from nobody.
    """
    from acp_agent.permissions.access import Decision  # noqa: PLC0415 - for prompts

    if not meta:
        return Decision(choice=choice)
    from acp_agent.server.extensions.meta import marker  # noqa: PLC0415 - likewise

    match marker(meta, "acp-agent", "decidedBy"):
        case {"by": "flag", "name": str(name)} if 0 < len(name) <= _MAX_NAME:
            return Decision(choice=choice, by="flag", name=name)
        case {"by": "nobody"} if choice is None or choice.kind.startswith("reject"):
            return Decision(choice=choice, by="nobody")
        case _:
            return Decision(choice=choice)
