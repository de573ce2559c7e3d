"""The child sessions that run in a session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from acp_agent.agent.tool_calls import OpenCalls
from acp_agent.events import AnyEvent, ChildWorked, UserMessage
from acp_agent.ids import CallId, SessionId


class RunningChild(Protocol):
    """A child session that runs; `call` is the call that it works for."""

    id: SessionId
    call: CallId
    open_calls: OpenCalls

    def apply(self, event: AnyEvent) -> None:
        """Apply an event of the child that is in the journal."""
        ...

    async def emit(self, *events: AnyEvent) -> None:
        """Write events of the child to the journal."""
        ...


class RunningChildren:
    """Passes the events of child sessions on to them, and finds their calls."""

    def __init__(self) -> None:
        self._running: dict[SessionId, RunningChild] = {}

    @contextmanager
    def running(self, child: RunningChild) -> Iterator[None]:
        """Count a child as running inside the `with` block."""
        self._running[child.id] = child
        try:
            yield
        finally:
            del self._running[child.id]

    def apply(self, events: Sequence[AnyEvent]) -> None:
        """Apply events that are in the journal."""
        if not self._running:
            return
        for event in events:
            if isinstance(event, ChildWorked) and event.session in self._running:
                self._running[event.session].apply(event.did)

    def call_of(self, child: SessionId) -> CallId | None:
        """Return the call that a child works for; None where it is not running."""
        found = self._running.get(child)
        return None if found is None else found.call

    async def tell(self, child: SessionId, message: UserMessage) -> None:
        """Add a message of the user's to a child's conversation. Does nothing if it has ended."""
        found = self._running.get(child)
        if found is not None:
            await found.emit(message)

    def stop(self, call: CallId) -> bool:
        """Stop one call of a child's. False: there is no such call, or it has ended."""
        return any(child.open_calls.stop(call) for child in self._running.values())

    def stop_command(self, call: CallId) -> bool:
        """End the command that a call of a child's runs. False: none runs."""
        return any(child.open_calls.stop_command(call) for child in self._running.values())
