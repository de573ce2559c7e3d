"""Tool calls as the model proposes them, and the calls of a turn that have not ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from msgspec import Struct

from acp_agent.events import ToolEnded
from acp_agent.ids import CallId

CANCELLED_RESULT = (
    "The user stopped the turn before this call ended; it may have taken effect in part."
)
STOPPED_RESULT = (
    "The user stopped this call before it ended; it may have taken effect in part. Do not make it "
    "again unless they ask for it."
)


class ProposedCall(Struct, frozen=True, kw_only=True):
    """A tool call that the model made, before validation.

    `safe_arguments` is `arguments` without secrets. Only the tool gets `arguments`.
    """

    call: CallId
    name: str
    arguments: str
    safe_arguments: str


class OpenCalls:
    """The calls of a turn that have not ended. The user can stop one without stopping the turn.

    A call is added before it is shown and removed before its end is written.
    """

    def __init__(self) -> None:
        self._tasks: dict[CallId, asyncio.Task[None] | None] = {}
        self._commands: dict[CallId, asyncio.Event] = {}
        self._stopped: set[CallId] = set()
        self._by_user: set[CallId] = set()

    def __len__(self) -> int:
        """Return the number of calls that have not ended."""
        return len(self._tasks)

    def add(self, call: CallId, *, by_user: bool = False) -> None:
        """Add a call before it is shown; `by_user` if the user made it instead of the model."""
        self._tasks[call] = None
        if by_user:
            self._by_user.add(call)

    def is_by_user(self, call: CallId) -> bool:
        """Return whether the user made the call."""
        return call in self._by_user

    def set_task(self, call: CallId, task: asyncio.Task[None]) -> bool:
        """Set the task that runs a call; return False if the user has stopped the call already."""
        self._tasks[call] = task
        return call not in self._stopped

    def add_command(self, call: CallId) -> asyncio.Event:
        """Register the command of a call; return an event that is set when the user stops it."""
        return self._commands.setdefault(call, asyncio.Event())

    def was_stopped(self, call: CallId) -> bool:
        """Return whether the user stopped the call."""
        return call in self._stopped

    def remove(self, call: CallId) -> bool:
        """Remove a call before its end is written; return False if it was removed already."""
        self._commands.pop(call, None)
        is_open = call in self._tasks
        self._tasks.pop(call, None)
        return is_open

    def stop(self, call: CallId) -> bool:
        """Stop one call for the user; return False if it is unknown or has ended."""
        if call not in self._tasks:
            return False
        if call not in self._stopped:
            self._stopped.add(call)
            task = self._tasks[call]
            if task is not None:  # without a task, `set_task` prevents the call from starting
                task.cancel()
        return True

    def stop_command(self, call: CallId) -> bool:
        """Stop the command of a call, which ends the call; return False if it has no command."""
        command = self._commands.get(call)
        if command is None:
            return False
        command.set()
        return True


def cancelled_ends(calls: Iterable[CallId]) -> list[ToolEnded]:
    """Return the ends of calls that were open when the turn was cancelled."""
    return [
        ToolEnded(call=call, failed=True, cancelled=True, result=CANCELLED_RESULT) for call in calls
    ]
