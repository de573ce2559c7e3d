"""The journal of an open session: events are written, applied and shown in one order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from acp_agent.errors import SessionNotFoundError
from acp_agent.events import AgentText, AgentThought, AnyEvent, ToolOutput
from acp_agent.ids import SessionId
from acp_agent.platform.decoding import convert
from acp_agent.session.store.event_codec import (
    merge_adjacent,
    readable_events,
    recovered_events,
    replace_all_surrogates,
)
from acp_agent.session.store.records import UnknownEvent
from acp_agent.session.store.store import Store

Apply = Callable[[Sequence[AnyEvent]], None]
Show = Callable[[Sequence[AnyEvent]], Awaitable[None]]


class JournalWriter:
    """Writes a session's events to the store, then applies and shows them.

    All queued events are written in one transaction, so a fast stream costs one write per burst.
    The applied and shown events equal the stored ones.

    Args:
        apply: applies stored events to the session's state.
        show: shows applied events to the client.
    """

    def __init__(self, session: SessionId, store: Store, *, apply: Apply, show: Show) -> None:
        self._session = session
        self._store = store
        self._apply = apply
        self._show = show
        self._waiting: deque[_Batch | _Barrier] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._cached_history: Sequence[AnyEvent] | None = None
        self._closed = False

    def cache_history(self, events: Sequence[AnyEvent]) -> None:
        """Store the journal that was just read, for the first call of `history`."""
        self._cached_history = events

    def drop_cached_history(self) -> None:
        """Free the events that `cache_history` stored; `history` then reads the journal again."""
        self._cached_history = None

    async def history(self) -> Sequence[AnyEvent]:
        """Return every event so far."""
        if self._cached_history is not None:
            events, self._cached_history = self._cached_history, None
            return events
        return recovered_events(await self._store.read_all(self._session))

    async def dated_history(self) -> Sequence[tuple[int, AnyEvent]]:
        """Return every event so far with its time, in milliseconds since 1970 (UTC)."""
        stored = readable_events(await self._store.read_all(self._session))
        return [
            (record.at, record.event)
            for record in stored
            if not isinstance(record.event, UnknownEvent)
        ]

    def write(self, events: tuple[AnyEvent, ...]) -> asyncio.Future[None]:
        """Queue events. They are written and shown whether or not the future is awaited.

        The future raises StoreError if the events cannot be written; then they are neither applied
        nor shown.

        Raises:
            SessionNotFoundError: it is closed; another process may have opened it.
        """
        if self._closed:
            raise SessionNotFoundError(self._session)
        self._cached_history = None
        return self._queue(_Batch(events))

    async def run_exclusively(self, action: Callable[[], Awaitable[None]]) -> None:
        """Run `action` after everything queued before it and before everything queued after it.

        This allows a conversation to be replayed during a turn. If the caller is cancelled,
        `action` is skipped, or cancelled if it runs.
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
        """Wait until everything queued is written and shown."""
        while (worker := self._worker) is not None:
            await asyncio.wait([worker])

    def close(self) -> None:
        """Refuse further events."""
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
                    error = await _catch_error(self._write_and_show(events))
                    for batch in batches:
                        batch.settle(error)
                elif isinstance(item := self._waiting.popleft(), _Barrier) and not item.done.done():
                    item.settle(await _catch_error(item.run()))
        finally:
            self._worker = None

    async def _write_and_show(self, events: Sequence[AnyEvent]) -> None:
        events = encodable(events)
        await self._store.append(self._session, events)
        self._apply(events)
        await self._show(events)


class _Item:
    def __init__(self) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(self, error: Exception | None) -> None:
        if self.done.done():  # the caller was cancelled
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
        """Run the action in a separate task, so that `stop` does not cancel the writer."""
        self._task = asyncio.ensure_future(_call(self._action))
        await asyncio.wait([self._task])
        if self._task.cancelled():
            self.done.cancel()
        else:
            self._task.result()

    def stop(self) -> None:
        """Cancel the action."""
        if self._task is not None:
            self._task.cancel()


async def _call(action: Callable[[], Awaitable[None]]) -> None:
    await action()


async def _catch_error(work: Awaitable[None]) -> Exception | None:
    try:
        await work
    except Exception as error:  # noqa: BLE001 - raised to every caller that awaits this work
        return error
    return None


def encodable(events: Sequence[AnyEvent]) -> Sequence[AnyEvent]:
    """Return the events without lone surrogates, which UTF-8 cannot encode.

    A model can send half of a surrogate pair as an escape (RFC 8259, section 8.2). Halves of one
    character in adjacent pieces of a text are joined.
    """
    if not any(map(_is_broken, events)):
        return events
    return [_repair(event) if _is_broken(event) else event for event in merge_adjacent(events)]


def _is_broken(event: AnyEvent) -> bool:
    try:
        if isinstance(event, AgentText | AgentThought | ToolOutput):  # the fast path: most events
            if not event.text.isascii():
                event.text.encode()
        else:
            msgspec.json.encode(event)
    except UnicodeEncodeError:
        return True
    except (TypeError, ValueError, RecursionError):
        return False  # the store reports the error
    return False


def _repair(event: AnyEvent) -> AnyEvent:
    values = replace_all_surrogates(msgspec.to_builtins(event))
    return convert(values, type(event))
