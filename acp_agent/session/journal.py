"""The open journal of one session: written first, then taken in and shown, in one order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from acp_agent.errors import SessionNotFoundError
from acp_agent.events import AnyEvent
from acp_agent.ids import SessionId
from acp_agent.session.repair import repaired_events
from acp_agent.session.store.event_codec import known_events, readable_events
from acp_agent.session.store.records import UnknownEvent
from acp_agent.session.store.store import Store

Take = Callable[[Sequence[AnyEvent]], None]
Show = Callable[[Sequence[AnyEvent]], Awaitable[None]]


class Journal:
    """Writes a session's events to the store, and passes them on once they are there.

    All that waits is written in one transaction, so a fast stream costs one write a burst. What is
    passed on is what is in the store: never more, and with the same text.

    Args:
        session: whose journal it is.
        store: where it is kept.
        take: brings the session's state up to events that are in the store.
        show: shows them to the editor, after that.
    """

    def __init__(self, session: SessionId, store: Store, *, take: Take, show: Show) -> None:
        self._session = session
        self._store = store
        self._take = take
        self._show = show
        self._waiting: deque[_Batch | _Barrier] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._just_read: Sequence[AnyEvent] | None = None
        self._closed = False

    def was_read(self, events: Sequence[AnyEvent]) -> None:
        """Keep the whole journal, as it was just read, for the first who asks for its history."""
        self._just_read = events

    def let_go(self) -> None:
        """Keep nothing that was read any more; who asks for the history has it read again."""
        self._just_read = None

    async def history(self) -> Sequence[AnyEvent]:
        """Every event so far."""
        if self._just_read is not None:
            events, self._just_read = self._just_read, None
            return events
        return known_events(await self._store.read_all(self._session))

    async def dated_history(self) -> Sequence[tuple[int, AnyEvent]]:
        """Every event so far with its time, in milliseconds since 1970 (UTC)."""
        stored = readable_events(await self._store.read_all(self._session))
        return [(one.at, one.event) for one in stored if not isinstance(one.event, UnknownEvent)]

    def write(self, events: tuple[AnyEvent, ...]) -> asyncio.Future[None]:
        """Queue events. They are written and shown whether or not anyone awaits the future.

        The future raises StoreError when the events could not be written; they are neither taken
        in nor shown then.

        Raises:
            SessionNotFoundError: it is closed; another process may write it by now.
        """
        if self._closed:
            raise SessionNotFoundError(self._session)
        self._just_read = None
        return self._queue(_Batch(events))

    async def alone(self, action: Callable[[], Awaitable[None]]) -> None:
        """Run `action` when all before it is shown, and before anything after it is.

        It is left out when nobody waits for it any more by then, and stopped where it runs already.
        So a conversation can be replayed in the middle of a turn without mixing the two.
        """
        barrier = _Barrier(action)
        try:
            await self._queue(barrier)
        except asyncio.CancelledError:
            barrier.stop()
            raise

    def _queue(self, item: _Batch | _Barrier) -> asyncio.Future[None]:
        self._waiting.append(item)
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        return item.done

    async def flush(self) -> None:
        """Wait until all that was queued is written and shown."""
        while (worker := self._worker) is not None:
            await asyncio.wait([worker])

    def close(self) -> None:
        """Take no more events."""
        self._closed = True

    async def _work(self) -> None:
        try:
            while self._waiting:
                batches: list[_Batch] = []
                while self._waiting and isinstance(item := self._waiting[0], _Batch):
                    batches.append(item)
                    self._waiting.popleft()
                if batches:
                    events = [event for batch in batches for event in batch.events]
                    error = await _outcome(self._write_and_show(events))
                    for batch in batches:
                        batch.settle(error)
                elif isinstance(item := self._waiting.popleft(), _Barrier) and not item.done.done():
                    item.settle(await _outcome(item.run()))
        finally:
            self._worker = None

    async def _write_and_show(self, events: Sequence[AnyEvent]) -> None:
        events = repaired_events(events)
        await self._store.append(self._session, events)
        self._take(events)
        await self._show(events)


class _Item:
    def __init__(self) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(self, error: Exception | None) -> None:
        if self.done.done():  # whoever waited was cancelled
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)


class _Batch(_Item):
    def __init__(self, events: tuple[AnyEvent, ...]) -> None:
        super().__init__()
        self.events = events


class _Barrier(_Item):
    def __init__(self, action: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self._action = action
        self._task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Do it, in a task of its own, so that it can be stopped without whoever runs it."""
        self._task = asyncio.ensure_future(_done(self._action))
        await asyncio.wait([self._task])
        if self._task.cancelled():
            self.done.cancel()
        else:
            self._task.result()

    def stop(self) -> None:
        """Nobody waits for it any more."""
        if self._task is not None:
            self._task.cancel()


async def _done(action: Callable[[], Awaitable[None]]) -> None:
    await action()


async def _outcome(work: Awaitable[None]) -> Exception | None:
    try:
        await work
    except Exception as error:  # noqa: BLE001 - handed to everyone who waits for this work
        return error
    return None
