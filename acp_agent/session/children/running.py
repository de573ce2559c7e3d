"""The child sessions that run in a session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from acp_agent.events import AnyEvent, ChildWorked
from acp_agent.ids import CallId, SessionId

if TYPE_CHECKING:
    from acp_agent.session.children.child import ChildHost


class Children:
    """Passes on to each child what is in the journal of it, and finds its calls."""

    def __init__(self) -> None:
        self._running: dict[SessionId, ChildHost] = {}

    @contextmanager
    def running(self, host: ChildHost) -> Iterator[None]:
        """A child works for as long as this lasts."""
        self._running[host.session] = host
        try:
            yield
        finally:
            del self._running[host.session]

    def take(self, events: Sequence[AnyEvent]) -> None:
        """Events are in the journal."""
        if not self._running:
            return
        for event in events:
            if isinstance(event, ChildWorked) and event.session in self._running:
                self._running[event.session].took(event.did)

    def call_of(self, child: SessionId) -> CallId | None:
        """The call that a child works for; None where it does not run here."""
        host = self._running.get(child)
        return None if host is None else host.call

    def stop(self, call: CallId) -> bool:
        """Stop one call of a child's. False: there is no such call, or it has ended."""
        return any(host.open_calls.stop(call) for host in self._running.values())

    def stop_command(self, call: CallId) -> bool:
        """End the command that a call of a child's runs. False: none runs."""
        return any(host.open_calls.stop_command(call) for host in self._running.values())
