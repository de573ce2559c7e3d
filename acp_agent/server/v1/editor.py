"""The connected client as the sessions see it (`acp_agent.session.client.Editor`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from acp_agent.events import (
    AnyEvent,
    BackgroundCommandChanged,
    ConfigChanged,
    NoticeShown,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    of_a_child,
)
from acp_agent.ids import CallId, SessionId
from acp_agent.server.conversion import raw_input
from acp_agent.server.editor import ClientEditor
from acp_agent.server.v1.conversion import config_options, places, shown
from acp_agent.server.v1.merging import whole_texts
from acp_agent.session.store.event_codec import merge_adjacent
from protocol.v1 import types as acp
from protocol.v1.methods import REQUEST_PERMISSION, SESSION_UPDATE

if TYPE_CHECKING:
    from acp_agent.agent.resources import PermissionRequest
    from acp_agent.content import JsonObject
    from acp_agent.elicitation import Form, Page, Response
    from acp_agent.permissions.access import Ask
    from acp_agent.server.link import ClientLink
    from acp_agent.server.session_tree import Family, Place
    from acp_agent.session.commands.command import Command
    from acp_agent.session.settings import Option
    from acp_agent.workspace.editor_files import EditorBuffers
    from acp_agent.workspace.processes import EditorTerminals


class Editor(ClientEditor):
    """Shows events as version 1 does, and asks as it does.

    Args:
        link: the connection.
    """

    def __init__(self, link: ClientLink) -> None:
        super().__init__(link)
        self._families: dict[SessionId, Family[acp.SessionUpdate]] = {}
        self._in_turn: set[SessionId] = set()
        self._held: dict[SessionId, list[NoticeShown]] = {}

    def forget(self, session: SessionId) -> None:
        """The session is closed."""
        super().forget(session)
        self._families.pop(session, None)
        self._in_turn.discard(session)
        self._held.pop(session, None)

    def buffers(self, session: SessionId) -> EditorBuffers | None:
        """The editor's files; None where it offers none."""
        if not (self.client.reads_files or self.client.writes_files):
            return None
        from acp_agent.server.v1.editor_files import ClientBuffers  # noqa: PLC0415 - for prompts only

        return ClientBuffers(
            self.asks(session), session, self.client, secrets=self.link.core.secrets.values
        )

    def terminals(self, session: SessionId) -> EditorTerminals | None:
        """The editor's terminals; None where it offers none or the user did not opt in."""
        if not (self.client.terminals and self.link.core.use_terminals):
            return None
        from acp_agent.server.v1.editor_terminals import ClientTerminals  # noqa: PLC0415 - on opt-in only

        def place() -> SessionId:
            """A child's calls are its parent's to a client that knows of no child sessions."""
            return session if self.client.subagents else self.parent_of(session) or session

        return ClientTerminals(self.asks(session), place, secrets=self.link.core.secrets.values)

    async def show(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Send what shows the events; waits while the client reads too slowly."""
        family = self._family(session)
        self.note_children(session, events)
        for event in self._due(session, merge_adjacent(events, output=False)):
            if isinstance(event, ConfigChanged):
                if event.option == "mode":
                    self.update(session, acp.CurrentModeUpdate(current_mode_id=event.value))
                self.options_changed(session)
                continue
            for of, update in family.updates(event):
                self.update(of, update)
        await self.connection.drain()

    def _leave(self, session: SessionId, left: Sequence[AnyEvent]) -> None:
        """Send what shows the last events of a session that moves away."""
        family = self._families.get(session)
        if family is not None:
            for event in left:
                for of, update in family.updates(event):
                    self.update(of, update)

    def _family(self, session: SessionId) -> Family[acp.SessionUpdate]:
        family = self._families.get(session)
        return self._begin(session) if family is None else family

    def _begin(self, session: SessionId) -> Family[acp.SessionUpdate]:
        family = self._families[session] = self._new_family(session, replay=False)
        return family

    def _new_family(self, session: SessionId, *, replay: bool) -> Family[acp.SessionUpdate]:
        from acp_agent.server.v1.projection import family_of  # noqa: PLC0415 - not to open a session

        return family_of(session, self.client, replay=replay, translate=self.link.core.translate)

    def _due(self, session: SessionId, events: Sequence[AnyEvent]) -> Iterator[AnyEvent]:
        """The events in the order in which they are to be shown.

        For a client without notices a notice is written as a thought, and thoughts belong to a
        turn: one that comes between two turns is held back until the next begins. The end of a
        background command is told as a notice where no turn runs, in which the model would say it.
        """
        for event in self._with_background_ends(session, events):
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

    def _with_background_ends(
        self, session: SessionId, events: Sequence[AnyEvent]
    ) -> Iterator[AnyEvent]:
        for event in events:
            yield event
            change = of_a_child(event)
            if not isinstance(change, BackgroundCommandChanged) or change.status == "running":
                continue
            if session not in self._in_turn:
                from acp_agent.server.notices import ended  # noqa: PLC0415 - rare

                yield ended(change, self.link.core.translate)

    async def replay(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Send the whole conversation again."""
        events = merge_adjacent(self._own(session, events), output=False)
        family = self._new_family(session, replay=True)
        updates = (update for event in events for update in family.updates(event))
        for index, (of, update) in enumerate(whole_texts(updates)):
            self.update(of, update)
            if index % 256 == 0:
                await self.connection.drain()

    def catch_up(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Take in what was shown to others, so that what comes now is understood."""
        family = self._begin(session)
        for event in self._own(session, events):
            for _ in family.updates(event):
                pass
            match event:
                case TurnStarted():
                    self._in_turn.add(session)
                case TurnEnded() | TurnInterrupted():
                    self._in_turn.discard(session)
                case _:
                    pass

    def announce_children(self, session: SessionId) -> None:
        """Send what a client has to know of the children at work whose beginning it missed."""
        for of, update in self._family(session).announced():
            self.update(of, update)

    def update(self, session: SessionId, update: acp.SessionUpdate) -> None:
        """Send one update."""
        self.connection.notify(
            SESSION_UPDATE, acp.SessionNotification(session_id=session, update=update)
        )

    def offer_commands(self, session: SessionId, commands: Sequence[Command]) -> None:
        """Say which slash commands there are now (Slash Commands)."""
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
        """Say which options there are now, with their values (Session Config Options)."""
        self.update(session, acp.ConfigOptionUpdate(config_options=config_options(options)))

    async def _chosen_option(
        self, session: SessionId, asking: PermissionRequest, ask: Ask
    ) -> tuple[str | None, JsonObject | None]:
        """See `ClientEditor`."""
        from acp_agent.server.session_tree import in_child  # noqa: PLC0415 - for prompts only
        from acp_agent.session.localize import localized_title  # noqa: PLC0415 - likewise

        place = self._place(session, asking.call)
        request = acp.RequestPermissionRequest(
            session_id=place.session,
            tool_call=acp.ToolCallUpdate(
                tool_call_id=asking.call,
                title=in_child(place.of, localized_title(asking.title, self.link.core.translate)),
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
        response = await self.asks(session).request(REQUEST_PERMISSION, request)
        if not isinstance(response.outcome, acp.SelectedPermissionOutcome):
            return None, response.meta
        return response.outcome.option_id, response.meta

    def _place(self, session: SessionId, call: CallId | None) -> Place:
        """Where the user is asked about a call of a session, or of a child of its."""
        return self._family(self.parent_of(session) or session).place(call)

    async def ask_form(
        self, session: SessionId, form: Form, *, call: CallId | None = None
    ) -> Response | None:
        """Let the user fill in a form. None: the client shows no forms, or failed to."""
        if not self.client.forms:
            return None
        from acp_agent.server.v1.elicitation import elicit, form_request  # noqa: PLC0415 - rare

        place = self._place(session, call)
        return await elicit(self.asks(session), form_request(form, place.session, place.call))

    async def ask_page(
        self, session: SessionId, page: Page, *, call: CallId | None = None
    ) -> Response | None:
        """Send the user to a page. None: the client opens no pages, or failed to."""
        if not self.client.pages:
            return None
        from acp_agent.server.v1.elicitation import elicit, page_request  # noqa: PLC0415 - rare

        place = self._place(session, call)
        return await elicit(self.asks(session), page_request(page, place.session, place.call))

    def page_done(self, page: Page) -> None:
        """Say that what the user was sent to a page for is done."""
        from acp_agent.server.v1.elicitation import page_done  # noqa: PLC0415 - rare

        page_done(self.connection, page)
