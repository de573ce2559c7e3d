"""What turns events into updates, of whichever version of the protocol: the contracts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from acp_agent.events import (
    AnyEvent,
    ChildWorked,
    SessionMessageSent,
    SessionMessageText,
    SubagentChanged,
)
from acp_agent.ids import CallId, SessionId
from acp_agent.server.place import Place

UpdateT_co = TypeVar("UpdateT_co", covariant=True)

OfParent = (
    SubagentChanged | SessionMessageSent | SessionMessageText
)  # what a parent has of children


class ShowsSession(Protocol[UpdateT_co]):
    """What turns the events of one session into updates."""

    def project(self, event: AnyEvent) -> Sequence[UpdateT_co]:
        """The updates that show `event`."""
        ...

    def cut_off(self) -> Sequence[UpdateT_co]:
        """The updates that end what was shown as under way."""
        ...


class ShowsChildren(Protocol[UpdateT_co]):
    """What turns the events of a session's children into updates, each with its session."""

    def project(
        self, parent: SessionId, event: OfParent | ChildWorked
    ) -> Iterable[tuple[SessionId, UpdateT_co]]:
        """The updates that show `event`."""
        ...

    def place(self, parent: SessionId, call: CallId) -> Place:
        """Where the user is asked about a call, of the parent or of a child."""
        ...

    def announced(self, parent: SessionId) -> Iterable[tuple[SessionId, UpdateT_co]]:
        """What a client that missed the beginning has to know of the children at work."""
        ...

    def turn_over(self, parent: SessionId) -> Iterable[tuple[SessionId, UpdateT_co]]:
        """The parent's turn ended: what is open still is what could not be written."""
        ...
