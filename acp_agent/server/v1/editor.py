"""The connected client as the sessions see it (`acp_agent.session.editor.Editor`)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from acp_agent.events import (
    AnyEvent,
    ConfigChanged,
    NoticeShown,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
)
from acp_agent.ids import CallId, SessionId
from acp_agent.server.client import ClientProfile
from acp_agent.server.core import Core
from acp_agent.server.v1.conversion import places, raw_input, shown
from acp_agent.server.v1.options import config_options
from acp_agent.server.v1.projection import Projector
from protocol.jsonrpc.connection import Connection
from protocol.jsonrpc.errors import RpcError
from protocol.v1 import types as acp
from protocol.v1.methods import REQUEST_PERMISSION, SESSION_UPDATE

if TYPE_CHECKING:
    from acp_agent.agent.host import Asking
    from acp_agent.permissions.contract import Ask, Choice
    from acp_agent.tools.base import Answer, Question
    from acp_agent.workspace.contract import EditorBuffers, EditorTerminals

_log = logging.getLogger(__name__)


class ClientEditor:
    """Shows events to the client and asks it, each only as it advertised.

    Args:
        core: the sessions, for their options as they are now.
    """

    def __init__(self, core: Core) -> None:
        self.client = ClientProfile()
        self._core = core
        self._connected: Connection | None = None
        self._projectors: dict[SessionId, Projector] = {}
        self._in_turn: set[SessionId] = set()
        self._held: dict[SessionId, list[NoticeShown]] = {}

    def connect(self, connection: Connection) -> None:
        """Say which way the client is."""
        self._connected = connection

    @property
    def _connection(self) -> Connection:
        assert self._connected is not None, "connect comes first"
        return self._connected

    def forget(self, session: SessionId) -> None:
        """The session is closed."""
        self._projectors.pop(session, None)
        self._in_turn.discard(session)
        self._held.pop(session, None)

    def buffers(self, session: SessionId) -> EditorBuffers | None:
        """The editor's files; None where it offers none."""
        if not (self.client.reads_files or self.client.writes_files):
            return None
        from acp_agent.server.v1.buffers import ClientBuffers  # noqa: PLC0415 - for prompts only

        return ClientBuffers(self._connection, session, self.client)

    def terminals(self, session: SessionId) -> EditorTerminals | None:
        """The editor's terminals; None where it offers none or the user did not opt in."""
        if not (self.client.terminals and self._core.use_terminals):
            return None
        from acp_agent.server.v1.terminals import ClientTerminals  # noqa: PLC0415 - on opt-in only

        return ClientTerminals(self._connection, session)

    async def show(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Send what shows the events; waits while the client reads too slowly."""
        projector = self._projectors.get(session)
        if projector is None:
            projector = self._projectors[session] = Projector(self.client, replay=False)
        for event in self._due(session, events):
            if isinstance(event, ConfigChanged):
                self._show_options(session, event)
                continue
            for update in projector.project(event):
                self.update(session, update)
        await self._connection.drain()

    def _due(self, session: SessionId, events: Sequence[AnyEvent]) -> Iterator[AnyEvent]:
        """The events in the order in which they are to be shown.

        For a client without notices a notice is written as a thought, and thoughts belong to a
        turn: one that comes between two turns is held back until the next begins.
        """
        for event in events:
            match event:
                case NoticeShown() if not (self.client.notices or session in self._in_turn):
                    self._held.setdefault(session, []).append(event)
                case TurnStarted():
                    self._in_turn.add(session)
                    yield event
                    yield from self._held.pop(session, ())
                case TurnEnded() | TurnInterrupted():
                    self._in_turn.discard(session)
                    yield event
                case _:
                    yield event

    async def replay(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Send the whole conversation again."""
        projector = Projector(self.client, replay=True)
        for index, event in enumerate(events):
            for update in projector.project(event):
                self.update(session, update)
            if index % 256 == 0:
                await self._connection.drain()

    def update(self, session: SessionId, update: acp.SessionUpdate) -> None:
        """Send one update."""
        self._connection.notify(
            SESSION_UPDATE, acp.SessionNotification(session_id=session, update=update)
        )

    def _show_options(self, session: SessionId, event: ConfigChanged) -> None:
        if event.option == "mode":
            self.update(session, acp.CurrentModeUpdate(current_mode_id=event.value))
        if self._core.opened is not None:
            options = config_options(self._core.opened.get(session).settings.options())
            self.update(session, acp.ConfigOptionUpdate(config_options=options))

    async def ask_permission(self, session: SessionId, asking: Asking, ask: Ask) -> Choice | None:
        """Let the user decide; waits as long as the turn lives.

        An answer that names no button of ours counts as a refusal, as does an error.
        """
        request = acp.RequestPermissionRequest(
            session_id=session,
            tool_call=acp.ToolCallUpdate(
                tool_call_id=asking.call,
                title=asking.title,
                kind=asking.kind,
                status="pending",
                content=shown(asking.content),
                locations=places(asking.locations),
                raw_input=raw_input(asking.arguments),
            ),
            options=[
                acp.PermissionOption(option_id=choice.id, name=choice.label, kind=choice.kind)
                for choice in ask.choices
            ],
        )
        try:
            response = await self._connection.request(REQUEST_PERMISSION, request)
        except RpcError as error:
            _log.warning("the editor could not ask for permission: %s", error)
            return None
        except ConnectionError:
            self._core.cancel(session)  # the user left; the model must not go on without them
            return None
        if not isinstance(response.outcome, acp.SelectedPermissionOutcome):
            return None
        chosen = response.outcome.option_id
        refusal = next((choice for choice in ask.choices if choice.kind == "reject_once"), None)
        return next((choice for choice in ask.choices if choice.id == chosen), refusal)

    async def ask_question(
        self, session: SessionId, call: CallId, question: Question
    ) -> Answer | None:
        """Ask the user with a form. None: this client shows no forms."""
        if not self.client.forms:
            return None
        from acp_agent.server.v1.questions import ask_by_form  # noqa: PLC0415 - where forms are

        return await ask_by_form(self._connection, session, call, question)
