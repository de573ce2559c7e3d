"""The child sessions of a session: those that run, and the tasks that all were given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from msgspec import Struct

from acp_agent.agent.tool_calls import OpenCalls
from acp_agent.errors import ToolError
from acp_agent.events import (
    Activity,
    AnyEvent,
    ChildWorked,
    SessionForked,
    SubagentChanged,
    UserMessage,
)
from acp_agent.ids import CallId, SessionId


class TaskRecord(Struct):
    """The task of an agent, which has a child session.

    `agent` is who works there, "" where nobody can go on with it; `role` has the instructions of
    an agent that the model made for the session. `inherited` where another session, which this one
    was forked from, gave the task.
    """

    session: SessionId
    title: str = ""
    agent: str = ""
    role: str = ""
    state: Activity = "unknown"
    inherited: bool = False


class TaskRecords:
    """The tasks of a session. The journal is read when they are first needed.

    Args:
        history: returns every event of the session so far.
    """

    def __init__(self, history: Callable[[], Awaitable[Sequence[AnyEvent]]]) -> None:
        self._history = history
        self._found: dict[SessionId, TaskRecord] | None = None
        self._meanwhile: list[AnyEvent] = []

    def apply(self, events: Sequence[AnyEvent]) -> None:
        """Apply events that were written to the journal."""
        changes = [event for event in events if isinstance(event, SubagentChanged)]
        if self._found is None:
            self._meanwhile += changes
        else:
            _fold(self._found, changes)

    async def all(self) -> Mapping[str, TaskRecord]:
        """Return the tasks by their numbers, from 1."""
        if self._found is None:
            found: dict[SessionId, TaskRecord] = {}
            _fold(found, await self._history())
            if self._found is None:  # nobody else read it meanwhile
                _fold(found, self._meanwhile)
                self._found, self._meanwhile = found, []
        return {str(number): one for number, one in enumerate(self._found.values(), 1)}

    async def number(self, child: SessionId) -> str:
        """Return the number of a child's task."""
        found = (number for number, one in (await self.all()).items() if one.session == child)
        return next(found, "")

    async def ended(self, number: str) -> TaskRecord:
        """Return a task that an agent can go on with.

        Raises:
            ToolError: there is none of this number, or it cannot be gone on with.
        """
        one = (await self.all()).get(number)
        if one is None:
            raise ToolError(f"there is no agent #{number}", advice="start a new one")
        if one.inherited or not one.agent:
            raise ToolError(f"nobody can go on with agent #{number}", advice="start a new one")
        if one.state in {"running", "requires_action"}:
            raise ToolError(f"agent #{number} is still at work", advice="wait for its answer")
        return one

    async def agent_of(self, number: str) -> str:
        """Return the agent that can go on with a task; see `ended`."""
        return (await self.ended(number)).agent

    async def work_of(self, child: SessionId) -> Sequence[AnyEvent]:
        """Return every event of a child."""
        return [
            event.did
            for event in await self._history()
            if isinstance(event, ChildWorked) and event.session == child
        ]

    async def roles(self) -> Mapping[str, str]:
        """Return the agents that the model made, each with its instructions."""
        made: dict[str, str] = {}
        for one in (await self.all()).values():
            if one.role:
                made.setdefault(one.agent, one.role)
        return made


def _fold(found: dict[SessionId, TaskRecord], events: Sequence[AnyEvent]) -> None:
    """Apply events in their order; to apply them twice changes nothing."""
    for event in events:
        if isinstance(event, SubagentChanged):
            one = found.setdefault(event.session, TaskRecord(event.session))
            one.title = one.title or event.title or ""
            one.agent, one.role = one.agent or event.agent, one.role or event.role
            one.state = event.state or one.state
        elif isinstance(event, SessionForked):
            for one in found.values():
                one.inherited = True


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
    """Passes the events of child sessions on to them, and finds their calls.

    Args:
        records: the tasks of the session, those that have ended among them.
    """

    def __init__(self, records: TaskRecords) -> None:
        self.records = records
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
        self.records.apply(events)
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
