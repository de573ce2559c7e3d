"""The tool calls of a turn that have not ended, and how one of them is stopped alone."""

from __future__ import annotations

import asyncio

from acp_agent.ids import CallId


class OpenCalls:
    """What the user can stop in a turn without stopping the turn.

    A call is in here from the moment in which it is shown to the one in which its end is written.
    """

    def __init__(self) -> None:
        self._tasks: dict[CallId, asyncio.Task[None] | None] = {}
        self._commands: dict[CallId, asyncio.Event] = {}
        self._stopped: set[CallId] = set()
        self._by_user: set[CallId] = set()

    # -- for those who run the calls -----------------------------------------------------------

    def __len__(self) -> int:
        """How many calls have not ended."""
        return len(self._tasks)

    def add(self, call: CallId, *, by_user: bool = False) -> None:
        """A call is about to be shown; `by_user` where the user made it, and not the model."""
        self._tasks[call] = None
        if by_user:
            self._by_user.add(call)

    def is_by_user(self, call: CallId) -> bool:
        """Whether the user made the call."""
        return call in self._by_user

    def runs_in(self, call: CallId, task: asyncio.Task[None]) -> bool:
        """A call is worked on by `task` from now on. False: it was stopped before that."""
        self._tasks[call] = task
        return call not in self._stopped

    def has_command(self, call: CallId) -> asyncio.Event:
        """A call runs a command from now on; the event is set when the user stops the command."""
        return self._commands.setdefault(call, asyncio.Event())

    def was_stopped(self, call: CallId) -> bool:
        """Whether the user stopped the call."""
        return call in self._stopped

    def remove(self, call: CallId) -> bool:
        """A call's end is about to be written. False: it was already."""
        self._commands.pop(call, None)
        known = call in self._tasks
        self._tasks.pop(call, None)
        return known

    # -- for the user --------------------------------------------------------------------------

    def stop(self, call: CallId) -> bool:
        """Stop one call, wherever it is. False: there is no such call, or it has ended."""
        if call not in self._tasks:
            return False
        if call not in self._stopped:
            self._stopped.add(call)
            task = self._tasks[call]
            if task is not None:  # else it is stopped before it begins
                task.cancel()
        return True

    def stop_command(self, call: CallId) -> bool:
        """End the command that a call runs; the call ends with it, by itself. False: none runs."""
        command = self._commands.get(call)
        if command is None:
            return False
        command.set()
        return True
