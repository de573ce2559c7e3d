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

TITLE = 60  # characters of a child's title in front of its call's
_QUESTION = "ask_user"  # the tool that asks the user by itself


class AskedCalls:
    """Shows calls of children as the parent's. Needs every event about children.

    Args:
        projector: shows the calls.
        translate: translates texts for the user.
    """

    def __init__(self, projector: Projector, translate: Translator = ENGLISH) -> None:
        self._projector = projector
        self._translate = translate
        self._titles: dict[SessionId, str] = {}
        # Open calls that are hidden, with the events that show them until they run.
        self._hidden: dict[CallId, list[ToolCalled | ToolShown]] = {}
        self._shown: dict[CallId, SessionId] = {}  # open calls that are shown, with their sessions

    def project(
        self, parent: SessionId, event: ParentEvent | ChildWorked
    ) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        """Return the updates that show `event`, each with its session."""
        if isinstance(event, SubagentChanged) and event.title is not None:
            self._titles[event.session] = event.title
        if not isinstance(event, ChildWorked):
            return
        for one in self._due(event.session, event.did):
            for update in self._projector.project(self._titled(event.session, one)):
                yield parent, update
        if isinstance(event.did, TurnInterrupted):
            for call in event.did.calls:
                if self._shown.pop(call, None) is not None:
                    yield parent, self._projector.cut(call)

    def target(self, parent: SessionId, call: CallId) -> Target:
        """Return where the user is asked about a call."""
        if call in self._hidden:
            return Target(parent, None)
        child = self._shown.get(call)
        return Target(parent, call, "" if child is None else self._title(child))

    def announced(self, parent: SessionId) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        """Return nothing: such a client does not see children."""
        del parent
        yield from ()

    def turn_over(self, parent: SessionId) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        """Cut off the open calls, as the parent's turn ended."""
        for call in self._shown:
            yield parent, self._projector.cut(call)
        self._hidden.clear()
        self._shown.clear()

    def _due(self, child: SessionId, did: AnyEvent) -> Iterator[AnyEvent]:
        """Return the events to show now."""
        match did:
            case ToolCalled() if did.name == _QUESTION:
                self._shown[did.call] = child
                yield did
            case ToolCalled():
                self._hidden[did.call] = [did]
            case PermissionAsked() if did.call in self._hidden:
                self._shown[did.call] = child
                yield from self._hidden.pop(did.call)
            case ToolStarted() | ToolShown() | ToolOutput() | ToolEnded():
                if did.call in self._shown:
                    yield did
                else:
                    self._keep(did)
                if isinstance(did, ToolEnded):
                    self._shown.pop(did.call, None)
            case _:
                pass

    def _keep(self, did: ToolStarted | ToolShown | ToolOutput | ToolEnded) -> None:
        """Keep an event of a hidden call for the start of its card."""
        match did:
            case ToolShown() if self._hidden.get(did.call):
                self._hidden[did.call].append(did)
            case ToolStarted() if did.call in self._hidden:
                self._hidden[did.call].clear()  # the user is no longer asked about it
            case ToolEnded():
                self._hidden.pop(did.call, None)
            case _:
                pass

    def _titled(self, child: SessionId, event: AnyEvent) -> AnyEvent:
        """Return an event of a call with the child's title in the call's title."""
        event = localize(event, self._translate)
        if isinstance(event, ToolCalled | ToolShown) and event.title is not None:
            return replace(event, title=child_call_title(self._title(child), event.title))
        return event

    def _title(self, child: SessionId) -> str:
        title = self._titles.get(child, "")
        return title if len(title) <= TITLE else f"{title[: TITLE - 1]}…"
