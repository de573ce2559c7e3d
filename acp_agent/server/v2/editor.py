"""The client of a connection that speaks version 2, as the sessions see it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from acp_agent.agent.resources import PermissionRequest
from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.errors import EditorFailedError
from acp_agent.events import AnyEvent, ConfigChanged
from acp_agent.ids import CallId, SessionId
from acp_agent.permissions.access import Ask
from acp_agent.server.editor import ClientEditor
from acp_agent.server.v2.conversion import config_options
from acp_agent.session.store.event_codec import merge_adjacent
from protocol.v2 import types as acp
from protocol.v2.methods import REQUEST_PERMISSION, SESSION_UPDATE

if TYPE_CHECKING:
    from acp_agent.agent.resources import PermissionRequest
    from acp_agent.content import JsonObject
    from acp_agent.elicitation import Form, Page, Response
    from acp_agent.permissions.access import Ask
    from acp_agent.server.link import ClientLink
    from acp_agent.server.session_tree import Place
    from acp_agent.server.v2.projection import Addressed, SessionFamily
    from acp_agent.session.commands.command import Command
    from acp_agent.session.settings import Option


class Editor(ClientEditor):
    """Shows events as version 2 does, and asks as it does.

    Args:
        link: the connection.
    """

    def __init__(self, link: ClientLink) -> None:
        super().__init__(link)
        self._families: dict[SessionId, SessionFamily] = {}
        self._filling_in: dict[SessionId, list[CallId]] = {}  # calls with a form or page open

    def forget(self, session: SessionId) -> None:
        """The session is closed."""
        super().forget(session)
        self._families.pop(session, None)

    def _leave(self, session: SessionId, left: Sequence[AnyEvent]) -> None:
        """Send what shows the last events of a session that moves away, and that it does."""
        family = self._families.get(session)
        if family is not None:
            for event in left:
                self._send(family.updates(event))
            self._send(family.moved())

    async def show(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Send what shows the events; waits while the client reads too slowly."""
        family = self._family(session)
        self.note_children(session, events)
        for event in merge_adjacent(events, output=False):
            if isinstance(event, ConfigChanged):
                self.options_changed(session)
                continue
            self._send(family.updates(event))
        await self.connection.drain()

    async def replay(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Send the whole conversation again."""
        from acp_agent.server.v2.replay import replay  # noqa: PLC0415 - a new session has none

        events = self._own(session, events)
        # In a thread: to put a long conversation together takes a while.
        updates = await asyncio.to_thread(replay, session, events, self.link.core.translate)
        for index, (of, update) in enumerate(updates):
            self.update(of, update)
            if index % 256 == 0:
                await self.connection.drain()

    def catch_up(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Take in what was family to others, so that what comes now is understood."""
        family = self._begin(session)
        for event in self._own(session, events):
            for _ in family.updates(event):
                pass
        for call in self._filling_in.get(session, ()):  # of which the journal says nothing
            for _ in family.asks(call):
                pass

    def announce_work(self, session: SessionId) -> None:
        """Send what a client has to know of before a state can tell of it.

        That is the terminals of the background, and the children at work.
        """
        self._send(self._family(session).announced())

    def show_state(self, session: SessionId) -> None:
        """Send what the session is doing now (Session Setup, Current-State Synchronization)."""
        self._send(self._family(session).states())

    def _family(self, session: SessionId) -> SessionFamily:
        family = self._families.get(session)
        return self._begin(session) if family is None else family

    def _begin(self, session: SessionId) -> SessionFamily:
        from acp_agent.server.v2.projection import SessionFamily  # noqa: PLC0415 - not to open a session

        family = self._families[session] = SessionFamily(session, self.link.core.translate)
        return family

    def _send(self, updates: Addressed) -> None:
        for of, update in updates:
            self.update(of, update)

    def update(self, session: SessionId, update: acp.SessionUpdate) -> None:
        """Send one update."""
        self.connection.notify(
            SESSION_UPDATE, acp.UpdateSessionNotification(session_id=session, update=update)
        )

    def offer_commands(self, session: SessionId, commands: Sequence[Command]) -> None:
        """Say which slash commands there are now (Slash Commands)."""
        self.update(
            session,
            acp.AvailableCommandsUpdate(available_commands=available_commands(commands)),
        )

    def show_options(self, session: SessionId, options: Sequence[Option]) -> None:
        """Say which options there are now, with their values (Session Config Options)."""
        self.update(session, acp.ConfigOptionUpdate(config_options=config_options(options)))

    async def _chosen_option(
        self, session: SessionId, asking: PermissionRequest, ask: Ask
    ) -> tuple[str | None, JsonObject | None]:
        """See `ClientEditor`."""
        place = self._place(session, asking.call)
        request = permission_request(place.session, asking, ask, self.link.core.translate)
        response = await self.asks(session).request(REQUEST_PERMISSION, request)
        match response.outcome:
            case acp.SelectedPermissionOutcome():
                return response.outcome.option_id, response.meta
            case acp.CancelledPermissionOutcome():
                return None, response.meta
            case _:
                raise EditorFailedError("an outcome of a name that is not known", answered=True)

    def _place(self, session: SessionId, call: CallId | None) -> Place:
        """Where the user is asked about a call of a session, or of a child of its."""
        return self._family(self.parent_of(session) or session).place(call)

    async def ask_form(
        self, session: SessionId, form: Form, *, call: CallId | None = None
    ) -> Response | None:
        """Let the user fill in a form. None: the client shows no forms, or failed to."""
        if not self.client.forms:
            return None
        from acp_agent.server.v2.elicitation import elicit, form_request  # noqa: PLC0415 - rare

        with self._waiting_for_user(session, call):
            place = self._place(session, call)
            return await elicit(self.asks(session), form_request(form, place.session, place.call))

    async def ask_page(
        self, session: SessionId, page: Page, *, call: CallId | None = None
    ) -> Response | None:
        """Send the user to a page. None: the client opens no pages, or failed to."""
        if not self.client.pages:
            return None
        from acp_agent.server.v2.elicitation import elicit, page_request  # noqa: PLC0415 - rare

        with self._waiting_for_user(session, call):
            place = self._place(session, call)
            return await elicit(self.asks(session), page_request(page, place.session, place.call))

    def page_done(self, page: Page) -> None:
        """Say that what the user was sent to a page for is done."""
        from acp_agent.server.v2.elicitation import page_done  # noqa: PLC0415 - rare

        page_done(self.connection, page)

    @contextmanager
    def _waiting_for_user(self, session: SessionId, call: CallId | None) -> Iterator[None]:
        """Say that the work waits for the user, where it does, and that it goes on."""
        if call is None:  # no part of the turn
            yield
            return
        session = self.parent_of(session) or session
        waiting = self._filling_in.setdefault(session, [])
        waiting.append(call)
        self._send(self._family(session).asks(call))
        answered = False
        try:
            yield
            answered = True
        finally:
            waiting.remove(call)
            if not waiting:
                self._filling_in.pop(session, None)
            family = self._families.get(session)  # none: the session is another editor's now
            if family is not None:
                told = list(family.asks(call, answered=True))
                if answered:  # else the end of the call says what follows
                    self._send(told)


def available_commands(commands: Sequence[Command]) -> list[acp.AvailableCommand]:
    """The slash commands, as the protocol tells of them."""
    return [
        acp.Command(
            name=command.name,
            description=command.description,
            input=None if command.hint is None else acp.TextCommandInput(hint=command.hint),
        )
        for command in commands
    ]


def permission_request(
    session: SessionId, asking: PermissionRequest, ask: Ask, translate: Translator = ENGLISH
) -> acp.RequestPermissionRequest:
    """The question with its buttons. A warning is part of the question, and not of the call."""
    from acp_agent.session.localize import localized_title  # noqa: PLC0415 - for prompts

    return acp.RequestPermissionRequest(
        session_id=session,
        title=localized_title(asking.title, translate),
        description=ask.warning or None,
        subject=permission_subject(asking),
        options=[
            acp.PermissionOption(option_id=choice.id, name=choice.label, kind=choice.kind)
            for choice in ask.choices
        ],
    )


def permission_subject(asking: PermissionRequest) -> acp.RequestPermissionSubject:
    """What the question is about: a command line, or else the call, which the client knows."""
    if asking.command is not None and asking.cwd is not None:
        return command_subject(asking, asking.command, asking.cwd)
    return tool_call_subject(asking)


def command_subject(
    asking: PermissionRequest, command: str, cwd: str
) -> acp.CommandPermissionSubject:
    """A command line. Its terminal has the id of its call, but is not there before it runs."""
    return acp.CommandPermissionSubject(command=command, cwd=cwd, tool_call_id=asking.call)


def tool_call_subject(asking: PermissionRequest) -> acp.ToolCallPermissionSubject:
    """A call. All that it shows was told by updates before the question, and stays as it is."""
    return acp.ToolCallPermissionSubject(tool_call=acp.ToolCallUpdate(tool_call_id=asking.call))
