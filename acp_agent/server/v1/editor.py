"""The connected client as the sessions see it, in version 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.events import (
    AnyEvent,
    BackgroundCommandChanged,
    ConfigChanged,
    NoticeShown,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    unwrap_child_event,
)
from acp_agent.ids import SessionId
from acp_agent.server.conversion import join_texts, raw_input
from acp_agent.server.core import Core
from acp_agent.server.editor import ClientEditor
from acp_agent.server.handshake import ClientProfile, Handshake
from acp_agent.server.v1.conversion import config_options, to_call_content, to_locations
from acp_agent.session.store.event_codec import merge_adjacent
from protocol.jsonrpc.connection import Connection
from protocol.v1 import types as acp
from protocol.v1.methods import REQUEST_PERMISSION, SESSION_UPDATE

if TYPE_CHECKING:
    from acp_agent.agent.resources import PermissionRequest
    from acp_agent.content import JsonObject
    from acp_agent.permissions.access import Ask
    from acp_agent.server.session_tree import ChildrenProjector, SessionTree
    from acp_agent.server.v1.projection import Projector
    from acp_agent.session.commands.command import Command
    from acp_agent.session.settings import Option
    from acp_agent.workspace.editor_files import EditorBuffers
    from acp_agent.workspace.processes import EditorTerminals


class EditorV1(ClientEditor["SessionTree[acp.SessionUpdate]"]):
    """Shows events and asks the user in the messages of version 1.

    Its arguments are those of `ClientEditor`.
    """

    def __init__(
        self,
        connection: Connection,
        handshake: Handshake,
        core: Core,
        on_child: Callable[[SessionId, SessionId], None],
    ) -> None:
        super().__init__(connection, handshake, core, on_child)
        self._in_turn: set[SessionId] = set()
        self._pending_notices: dict[SessionId, list[NoticeShown]] = {}

    def forget(self, session: SessionId) -> None:
        """Drop what is known of a closed session."""
        super().forget(session)
        self._in_turn.discard(session)
        self._pending_notices.pop(session, None)

    def buffers(self, session: SessionId) -> EditorBuffers | None:
        """Return the client's files; None if it offers none."""
        if not (self.client.reads_files or self.client.writes_files):
            return None
        from acp_agent.server.v1.editor_files import ClientBuffers  # noqa: PLC0415 - for prompts only

        return ClientBuffers(
            self.requests(session), session, self.client, secrets=self._core.secrets.values
        )

    def terminals(self, session: SessionId) -> EditorTerminals | None:
        """Return the client's terminals; None if it offers none or the user did not opt in."""
        if not (self.client.terminals and self._core.use_terminals):
            return None
        from acp_agent.server.v1.editor_terminals import ClientTerminals  # noqa: PLC0415 - on opt-in only

        def display_session() -> SessionId:
            """Without child sessions, a child's calls are shown as its parent's."""
            return session if self.client.subagents else self.find_parent(session) or session

        return ClientTerminals(
            self.requests(session), display_session, secrets=self._core.secrets.values
        )

    def _new_tree(self, session: SessionId) -> SessionTree[acp.SessionUpdate]:
        """See `ClientEditor`."""
        return make_session_tree(session, self.client, replay=False, translate=self._core.translate)

    def _option_changed(self, session: SessionId, event: ConfigChanged) -> None:
        """See `ClientEditor`."""
        if event.option == "mode":
            self.update(session, acp.CurrentModeUpdate(current_mode_id=event.value))
        super()._option_changed(session, event)

    def _display_order(self, session: SessionId, events: Sequence[AnyEvent]) -> Iterator[AnyEvent]:
        """Return the events in the order in which they are shown.

        A client without notices is sent them as thoughts, which belong to a turn: a notice between
        turns waits for the next one. The end of a background command becomes a notice if no turn
        runs, as the model does not report it.
        """
        for event in self._add_background_end_notices(session, events):
            match event:
                case NoticeShown() if not (self.client.notices or session in self._in_turn):
                    self._pending_notices.setdefault(session, []).append(event)
                case TurnStarted():
                    self._in_turn.add(session)
                    yield event
                    yield from self._pending_notices.pop(session, ())
                case TurnEnded() | TurnInterrupted():
                    self._in_turn.discard(session)
                    yield event
                case _:
                    yield event

    def _add_background_end_notices(
        self, session: SessionId, events: Sequence[AnyEvent]
    ) -> Iterator[AnyEvent]:
        for event in events:
            yield event
            change = unwrap_child_event(event)
            if not isinstance(change, BackgroundCommandChanged) or change.status == "running":
                continue
            if session not in self._in_turn:
                from acp_agent.server.notices import background_end_notice  # noqa: PLC0415 - rare

                yield background_end_notice(change, self._core.translate)

    async def replay(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Send the whole conversation again."""
        events = merge_adjacent(self._own_events(session, events), output=False)
        tree = make_session_tree(session, self.client, replay=True, translate=self._core.translate)
        updates = (update for event in events for update in tree.updates(event))
        await self._send_replay(join_texts(updates))

    def catch_up(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Take in events that were shown to other clients, without sending them."""
        super().catch_up(session, events)
        for event in events:
            match event:
                case TurnStarted():
                    self._in_turn.add(session)
                case TurnEnded() | TurnInterrupted():
                    self._in_turn.discard(session)

    def update(self, session: SessionId, update: acp.SessionUpdate) -> None:
        """Send one update."""
        self._connection.notify(
            SESSION_UPDATE, acp.SessionNotification(session_id=session, update=update)
        )

    def offer_commands(self, session: SessionId, commands: Sequence[Command]) -> None:
        """Send the slash commands (Slash Commands)."""
        self.update(
            session,
            acp.AvailableCommandsUpdate(
                available_commands=[
                    acp.AvailableCommand(
                        name=command.name,
                        description=command.description,
                        input=None
                        if command.hint is None
                        else acp.UnstructuredCommandInput(hint=command.hint),
                    )
                    for command in commands
                ]
            ),
        )

    def show_options(self, session: SessionId, options: Sequence[Option]) -> None:
        """Send the options with their values (Session Config Options)."""
        self.update(session, acp.ConfigOptionUpdate(config_options=config_options(options)))

    async def _request_option(
        self, session: SessionId, call_request: PermissionRequest, ask: Ask
    ) -> tuple[str | None, JsonObject | None]:
        """See `ClientEditor`."""
        from acp_agent.server.session_tree import child_call_title  # noqa: PLC0415 - for prompts only
        from acp_agent.session.localize import localize_title  # noqa: PLC0415 - likewise

        target = self._target(session, call_request.call)
        title = localize_title(call_request.title, self._core.translate)
        request = acp.RequestPermissionRequest(
            session_id=target.session,
            tool_call=acp.ToolCallUpdate(
                tool_call_id=call_request.call,
                title=child_call_title(target.child_title, title),
                kind=call_request.kind,
                status="pending",
                content=to_call_content(call_request.content),
                locations=to_locations(call_request.locations),
                raw_input=raw_input(call_request.arguments),
            ),
            options=[
                acp.PermissionOption(option_id=choice.id, name=choice.label, kind=choice.kind)
                for choice in ask.choices
            ],
        )
        response = await self.requests(session).request(REQUEST_PERMISSION, request)
        if not isinstance(response.outcome, acp.SelectedPermissionOutcome):
            return None, response.meta
        return response.outcome.option_id, response.meta


def make_session_tree(
    session: SessionId, client: ClientProfile, *, replay: bool, translate: Translator = ENGLISH
) -> SessionTree[acp.SessionUpdate]:
    """Return what shows a session and its children to a client; `replay` is as in `Projector`."""
    from acp_agent.server.session_tree import SessionTree  # noqa: PLC0415 - not to open a session
    from acp_agent.server.v1.projection import Projector  # noqa: PLC0415 - likewise

    def projector() -> Projector:
        return Projector(client, replay=False, translate=translate)

    session_projector = Projector(client, replay=replay, translate=translate)

    def children() -> ChildrenProjector[acp.SessionUpdate]:
        if client.subagents:
            from acp_agent.server.child_sessions import ChildSessions  # noqa: PLC0415 - few have any
            from acp_agent.server.v1.child_sessions import CHILD_UPDATES  # noqa: PLC0415 - likewise

            return ChildSessions(CHILD_UPDATES, session_projector, projector, translate)
        from acp_agent.server.v1.child_sessions import ChildCallCards  # noqa: PLC0415 - likewise

        return ChildCallCards(projector(), translate)

    return SessionTree(session, session_projector, children)
