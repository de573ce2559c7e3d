"""The child sessions of a session: the running ones, and the tasks of all."""

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
    """The task of an agent in a child session.

    `agent` is the agent, "" if the task cannot be continued; `role` has the instructions of an
    agent that the model defined. `inherited` means that the session from which this one was forked
    gave the task.
    """

    session: SessionId
    title: str = ""
    agent: str = ""
    role: str = ""
    state: Activity = "unknown"
    inherited: bool = False


class TaskRecords:
    """The tasks of a session. Reads the journal on first use.

    Args:
        history: returns every event of the session.
    """

    def __init__(self, history: Callable[[], Awaitable[Sequence[AnyEvent]]]) -> None:
        self._history = history
        self._records: dict[SessionId, TaskRecord] | None = None
        self._early_changes: list[AnyEvent] = []

    def apply(self, events: Sequence[AnyEvent]) -> None:
        """Apply events that were written to the journal."""
        changes = [event for event in events if isinstance(event, SubagentChanged)]
        if self._records is None:
            self._early_changes += changes
        else:
            _apply_changes(self._records, changes)

    async def all(self) -> Mapping[str, TaskRecord]:
        """Return the tasks by their numbers, from 1."""
        if self._records is None:
            records: dict[SessionId, TaskRecord] = {}
            _apply_changes(records, await self._history())
            if self._records is None:  # no other caller read it meanwhile
                _apply_changes(records, self._early_changes)
                self._records, self._early_changes = records, []
        return {str(number): record for number, record in enumerate(self._records.values(), 1)}

    async def number(self, child: SessionId) -> str:
        """Return the number of a child's task."""
        numbers = (
            number for number, record in (await self.all()).items() if record.session == child
        )
        return next(numbers, "")

    async def find_resumable(self, number: str) -> TaskRecord:
        """Return a task that can be continued.

        Raises:
            ToolError: no task has this number, or it cannot be continued.
        """
        record = (await self.all()).get(number)
        if record is None:
            raise ToolError(f"there is no agent #{number}", advice="start a new one")
        if record.inherited or not record.agent:
            raise ToolError(f"nobody can go on with agent #{number}", advice="start a new one")
        if record.state in {"running", "requires_action"}:
            raise ToolError(f"agent #{number} is still at work", advice="wait for its answer")
        return record

    async def agent_for_task(self, number: str) -> str:
        """Return the agent of a task that can be continued; see `find_resumable`."""
        return (await self.find_resumable(number)).agent

    async def child_events(self, child: SessionId) -> Sequence[AnyEvent]:
        """Return every event of a child."""
        return [
            event.did
            for event in await self._history()
            if isinstance(event, ChildWorked) and event.session == child
        ]

    async def roles(self) -> Mapping[str, str]:
        """Return the agents that the model defined, with their instructions."""
        instructions: dict[str, str] = {}
        for record in (await self.all()).values():
            if record.role:
                instructions.setdefault(record.agent, record.role)
        return instructions


def _apply_changes(records: dict[SessionId, TaskRecord], events: Sequence[AnyEvent]) -> None:
    """Apply events in order; applying them twice changes nothing."""
    for event in events:
        if isinstance(event, SubagentChanged):
            record = records.setdefault(event.session, TaskRecord(event.session))
            record.title = record.title or event.title or ""
            record.agent, record.role = record.agent or event.agent, record.role or event.role
            record.state = event.state or record.state
        elif isinstance(event, SessionForked):
            for record in records.values():
                record.inherited = True


class RunningChild(Protocol):
    """A running child session; `call` is the call that it works for."""

    id: SessionId
    call: CallId
    open_calls: OpenCalls

    def apply(self, event: AnyEvent) -> None:
        """Apply an event of the child from the journal."""

    async def emit(self, *events: AnyEvent) -> None:
        """Write events of the child to the journal."""


class RunningChildren:
    """Passes journal events to the running children, and finds their calls.

    Args:
        records: the tasks of the session, including those that have ended.
    """

    def __init__(self, records: TaskRecords) -> None:
        self.records = records
        self._running: dict[SessionId, RunningChild] = {}

    @contextmanager
    def running(self, child: RunningChild) -> Iterator[None]:
        """Treat a child as running inside the `with` block."""
        self._running[child.id] = child
        try:
            yield
        finally:
            del self._running[child.id]

    def apply(self, events: Sequence[AnyEvent]) -> None:
        """Apply events from the journal."""
        self.records.apply(events)
        if not self._running:
            return
        for event in events:
            if isinstance(event, ChildWorked) and event.session in self._running:
                self._running[event.session].apply(event.did)

    def find_call(self, child: SessionId) -> CallId | None:
        """Return the call that a child works for; None if it is not running."""
        running_child = self._running.get(child)
        return None if running_child is None else running_child.call

    async def send(self, child: SessionId, message: UserMessage) -> None:
        """Add a user message to a child's conversation. Does nothing if the child has ended."""
        running_child = self._running.get(child)
        if running_child is not None:
            await running_child.emit(message)

    def stop(self, call: CallId) -> bool:
        """Stop a call of a child. Return false if there is no such call or it has ended."""
        return any(child.open_calls.stop(call) for child in self._running.values())

    def stop_command(self, call: CallId) -> bool:
        """Stop the command that a child's call runs. Return false if none runs."""
        return any(child.open_calls.stop_command(call) for child in self._running.values())
