"""The connected client as the sessions see it, in version 2."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from acp_agent.agent.resources import PermissionRequest
from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.errors import EditorFailedError
from acp_agent.events import AnyEvent
from acp_agent.ids import CallId, SessionId
from acp_agent.permissions.access import Ask
from acp_agent.server.core import Core
from acp_agent.server.editor import ClientEditor
from acp_agent.server.handshake import Handshake
from acp_agent.server.v2.conversion import available_commands, config_options
from protocol.jsonrpc.connection import Connection
from protocol.v2 import types as acp
from protocol.v2.methods import REQUEST_PERMISSION, SESSION_UPDATE

if TYPE_CHECKING:
    from acp_agent.content import JsonObject
    from acp_agent.server.v2.session_tree import SessionTreeV2
    from acp_agent.session.commands.command import Command
    from acp_agent.session.settings import Option


class EditorV2(ClientEditor["SessionTreeV2"]):
    """Shows events and asks the user in the messages of version 2.

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
        self._open_forms: dict[SessionId, list[CallId]] = {}  # calls with a form or page open

    def _show_last(self, session: SessionId, last_events: Sequence[AnyEvent]) -> None:
        """See `ClientEditor`."""
        super()._show_last(session, last_events)
        if session in self._trees:
            self._send(self._trees[session].move_away())

    async def replay(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Send the whole conversation again."""
        from acp_agent.server.v2.replay import replay  # noqa: PLC0415 - a new session has none

        events = self._own_events(session, events)
        # In a thread: to put a long conversation together takes a while.
        updates = await asyncio.to_thread(replay, session, events, self._core.translate)
        await self._send_replay(updates)

    def catch_up(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Take in events that were shown to other clients, without sending them."""
        super().catch_up(session, events)
        tree = self._trees[session]
        for call in self._open_forms.get(session, ()):  # of which the journal says nothing
            for _ in tree.waiting_updates(call):
                pass

    def show_state(self, session: SessionId) -> None:
        """Send the current states (Session Setup, Current-State Synchronization)."""
        self._send(self._tree(session).states())

    def _new_tree(self, session: SessionId) -> SessionTreeV2:
        """See `ClientEditor`."""
        from acp_agent.server.v2.session_tree import SessionTreeV2  # noqa: PLC0415 - not to open a session

        return SessionTreeV2(session, self._core.translate)

    def update(self, session: SessionId, update: acp.SessionUpdate) -> None:
        """Send one update."""
        self._connection.notify(
            SESSION_UPDATE, acp.UpdateSessionNotification(session_id=session, update=update)
        )

    def offer_commands(self, session: SessionId, commands: Sequence[Command]) -> None:
        """Send the slash commands (Slash Commands)."""
        self.update(
            session, acp.AvailableCommandsUpdate(available_commands=available_commands(commands))
        )

    def show_options(self, session: SessionId, options: Sequence[Option]) -> None:
        """Send the options with their values (Session Config Options)."""
        self.update(session, acp.ConfigOptionUpdate(config_options=config_options(options)))

    async def _request_option(
        self, session: SessionId, call_request: PermissionRequest, ask: Ask
    ) -> tuple[str | None, JsonObject | None]:
        """See `ClientEditor`."""
        target = self._target(session, call_request.call)
        request = permission_request(target.session, call_request, ask, self._core.translate)
        response = await self.requests(session).request(REQUEST_PERMISSION, request)
        match response.outcome:
            case acp.SelectedPermissionOutcome():
                return response.outcome.option_id, response.meta
            case acp.CancelledPermissionOutcome():
                return None, response.meta
            case _:
                raise EditorFailedError("an outcome of a name that is not known", answered=True)

    @contextmanager
    def _waiting_for_user(self, session: SessionId, call: CallId | None) -> Iterator[None]:
        """Show that a call waits for the user, and afterwards that it continues."""
        if call is None:  # no part of the turn
            yield
            return
        session = self.find_parent(session) or session
        waiting = self._open_forms.setdefault(session, [])
        waiting.append(call)
        self._send(self._tree(session).waiting_updates(call))
        answered = False
        try:
            yield
            answered = True
        finally:
            waiting.remove(call)
            if not waiting:
                self._open_forms.pop(session, None)
            tree = self._trees.get(session)  # None if the session moved to another client
            if tree is not None:
                updates = list(tree.waiting_updates(call, answered=True))
                if answered:  # otherwise the end of the call follows
                    self._send(updates)


def permission_request(
    session: SessionId, call_request: PermissionRequest, ask: Ask, translate: Translator = ENGLISH
) -> acp.RequestPermissionRequest:
    """Return the question with its options. A warning is part of the question, not of the call."""
    from acp_agent.session.localize import localize_title  # noqa: PLC0415 - for prompts

    return acp.RequestPermissionRequest(
        session_id=session,
        title=localize_title(call_request.title, translate),
        description=ask.warning or None,
        subject=permission_subject(call_request),
        options=[
            acp.PermissionOption(option_id=choice.id, name=choice.label, kind=choice.kind)
            for choice in ask.choices
        ],
    )


def permission_subject(call_request: PermissionRequest) -> acp.RequestPermissionSubject:
    """Return the subject of the question: a command line, or the call that the client knows."""
    if call_request.command is not None and call_request.cwd is not None:
        return command_subject(call_request, call_request.command, call_request.cwd)
    return tool_call_subject(call_request)


def command_subject(
    call_request: PermissionRequest, command: str, cwd: str
) -> acp.CommandPermissionSubject:
    """Return a command line as the subject. Its terminal exists only once it runs."""
    return acp.CommandPermissionSubject(command=command, cwd=cwd, tool_call_id=call_request.call)


def tool_call_subject(call_request: PermissionRequest) -> acp.ToolCallPermissionSubject:
    """Return a call as the subject. Earlier updates have shown its content."""
    return acp.ToolCallPermissionSubject(
        tool_call=acp.ToolCallUpdate(tool_call_id=call_request.call)
    )
