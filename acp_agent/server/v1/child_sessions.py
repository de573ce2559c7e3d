"""Children of a session, for clients of version 1 with child sessions and without.

A client without child sessions sees a child's work in the card of the parent's call. A question
needs a card of its own: the child's call gets one among the parent's when the user is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.events import (
    AnyEvent,
    ChildWorked,
    PermissionAsked,
    SubagentChanged,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    ToolShown,
    ToolStarted,
    TurnInterrupted,
)
from acp_agent.ids import CallId, SessionId
from acp_agent.server.child_sessions import ChildUpdates
from acp_agent.server.session_tree import ParentEvent, Target, child_call_title
from acp_agent.server.v1.conversion import to_acp
from acp_agent.session.localize import localize
from protocol.v1 import types as acp, unstable_subagents as unstable

if TYPE_CHECKING:
    from acp_agent.server.v1.projection import Projector


CHILD_UPDATES = ChildUpdates(
    subagent=acp.SubagentUpdate,
    can_cancel=acp.SubagentSessionCapabilities(cancel=acp.SessionCancelCapabilities()),
    running=unstable.RunningStateUpdate,
    requires_action=unstable.RequiresActionStateUpdate,
    idle=unstable.IdleStateUpdate,
    failed=unstable.ErrorIdleStateUpdate,
    unknown=unstable.UnknownStateUpdate,
    message=acp.SessionMessage,
    chunk=acp.SessionMessageChunk,
    content=to_acp,
)

MAX_TITLE_LENGTH = 60  # characters of a child's title in front of its call's
_QUESTION = "ask_user"  # the tool that asks the user by itself


class ChildCallCards:
    """Shows calls of children as the parent's. Needs every event about children."""

    def __init__(self, projector: Projector, translate: Translator = ENGLISH) -> None:
        self._projector = projector
        self._translate = translate
        self._titles: dict[SessionId, str] = {}
        # Open calls that are hidden, with the events that show them until they run.
        self._hidden: dict[CallId, list[ToolCalled | ToolShown]] = {}
        self._visible: dict[
            CallId, SessionId
        ] = {}  # open calls that are shown, with their sessions

    def project(
        self, parent: SessionId, event: ParentEvent | ChildWorked
    ) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        """Return the updates that show `event`, each with its session."""
        if isinstance(event, SubagentChanged) and event.title is not None:
            self._titles[event.session] = event.title
        if not isinstance(event, ChildWorked):
            return
        for visible_event in self._visible_events(event.session, event.did):
            for update in self._projector.project(
                self._with_child_title(event.session, visible_event)
            ):
                yield parent, update
        if isinstance(event.did, TurnInterrupted):
            for call in event.did.calls:
                if self._visible.pop(call, None) is not None:
                    yield parent, self._projector.cut(call)

    def target(self, parent: SessionId, call: CallId) -> Target:
        """Return where the user is asked about a call."""
        if call in self._hidden:
            return Target(parent, None)
        child = self._visible.get(call)
        return Target(parent, call, "" if child is None else self._title(child))

    def missed_updates(self, parent: SessionId) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        """Return nothing: such a client does not see children."""
        del parent
        yield from ()

    def end_turn(self, parent: SessionId) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        """Cut off the open calls, as the parent's turn ended."""
        for call in self._visible:
            yield parent, self._projector.cut(call)
        self._hidden.clear()
        self._visible.clear()

    def _visible_events(self, child: SessionId, event: AnyEvent) -> Iterator[AnyEvent]:
        """Return the events to show now."""
        match event:
            case ToolCalled() if event.name == _QUESTION:
                self._visible[event.call] = child
                yield event
            case ToolCalled():
                self._hidden[event.call] = [event]
            case PermissionAsked() if event.call in self._hidden:
                self._visible[event.call] = child
                yield from self._hidden.pop(event.call)
            case ToolStarted() | ToolShown() | ToolOutput() | ToolEnded():
                if event.call in self._visible:
                    yield event
                else:
                    self._store_hidden(event)
                if isinstance(event, ToolEnded):
                    self._visible.pop(event.call, None)

    def _store_hidden(self, event: ToolStarted | ToolShown | ToolOutput | ToolEnded) -> None:
        """Keep an event of a hidden call for the start of its card."""
        match event:
            case ToolShown() if self._hidden.get(event.call):
                self._hidden[event.call].append(event)
            case ToolStarted() if event.call in self._hidden:
                self._hidden[event.call].clear()  # the user is no longer asked about it
            case ToolEnded():
                self._hidden.pop(event.call, None)

    def _with_child_title(self, child: SessionId, event: AnyEvent) -> AnyEvent:
        """Return an event of a call with the child's title in the call's title."""
        event = localize(event, self._translate)
        if isinstance(event, ToolCalled | ToolShown) and event.title is not None:
            return replace(event, title=child_call_title(self._title(child), event.title))
        return event

    def _title(self, child: SessionId) -> str:
        title = self._titles.get(child, "")
        return title if len(title) <= MAX_TITLE_LENGTH else f"{title[: MAX_TITLE_LENGTH - 1]}…"
