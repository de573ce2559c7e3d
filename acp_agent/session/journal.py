"""The journal of one open session: events are written, then applied, then shown, in one order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from acp_agent.errors import SessionNotFoundError
from acp_agent.events import AgentText, AgentThought, AnyEvent, ToolOutput
from acp_agent.ids import SessionId
from acp_agent.platform.first_use import first_use
from acp_agent.session.store.event_codec import (
    known_events,
    merge_adjacent,
    readable_events,
    replace_surrogates,
)
from acp_agent.session.store.records import UnknownEvent
from acp_agent.session.store.store import Store

Apply = Callable[[Sequence[AnyEvent]], None]
Show = Callable[[Sequence[AnyEvent]], Awaitable[None]]


class JournalWriter:
    """Writes a session's events to the store, and passes them on once they are there.

    All that waits is written in one transaction, so a fast stream costs one write a burst. What is
    passed on equals what is in the store.

    Args:
        session: whose journal it is.
        store: where it is stored.
        apply: applies stored events to the session's state.
        show: then shows them to the client.
    """

    def __init__(self, session: SessionId, store: Store, *, apply: Apply, show: Show) -> None:
        self._session = session
        self._store = store
        self._apply = apply
        self._show = show
        self._waiting: deque[_Batch | _Barrier] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._just_read: Sequence[AnyEvent] | None = None
        self._closed = False

    def keep_history(self, events: Sequence[AnyEvent]) -> None:
        """Keep the journal, as it was just read, for the first caller of `history`."""
        self._just_read = events

    def drop_history(self) -> None:
        """Free what `keep_history` kept; `history` then reads it again."""
        self._just_read = None

    async def history(self) -> Sequence[AnyEvent]:
        """Return every event so far."""
        if self._just_read is not None:
            events, self._just_read = self._just_read, None
            return events
        return known_events(await self._store.read_all(self._session))

    async def dated_history(self) -> Sequence[tuple[int, AnyEvent]]:
        """Return every event so far with its time, in milliseconds since 1970 (UTC)."""
        stored = readable_events(await self._store.read_all(self._session))
        return [(one.at, one.event) for one in stored if not isinstance(one.event, UnknownEvent)]

    def write(self, events: tuple[AnyEvent, ...]) -> asyncio.Future[None]:
        """Queue events. They are written and shown whether or not anyone awaits the future.

        The future raises StoreError when the events could not be written; they are neither applied
        nor shown then.

        Raises:
            SessionNotFoundError: it is closed; another process may write it by now.
        """
        if self._closed:
            raise SessionNotFoundError(self._session)
        self._just_read = None
        return self._queue(_Batch(events))

    async def run_alone(self, action: Callable[[], Awaitable[None]]) -> None:
        """Run `action` once everything queued before it is shown, and before anything after it.

        A conversation can so be replayed in the middle of a turn. When the caller is cancelled,
        `action` is skipped, or stopped where it runs already.
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
                    error = await _outcome(self._write_and_show(events))
                    for batch in batches:
                        batch.settle(error)
                elif isinstance(item := self._waiting.popleft(), _Barrier) and not item.done.done():
                    item.settle(await _outcome(item.run()))
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
        """Run the action in a task of its own, so that it can be stopped without the writer."""
        self._task = asyncio.ensure_future(_done(self._action))
        await asyncio.wait([self._task])
        if self._task.cancelled():
            self.done.cancel()
        else:
            self._task.result()

    def stop(self) -> None:
        """Stop the action: nobody waits for it any more."""
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


def encodable(events: Sequence[AnyEvent]) -> Sequence[AnyEvent]:
    """Return the events without lone surrogates, which UTF-8 cannot encode.

    A model can send half of a character as an escape of its own (RFC 8259, section 8.2). Halves of
    one character that came in adjacent pieces of a text are joined.
    """
    if not any(map(_is_broken, events)):
        return events
    return [_repaired(event) if _is_broken(event) else event for event in merge_adjacent(events)]


def _is_broken(event: AnyEvent) -> bool:
    try:
        if isinstance(event, AgentText | AgentThought | ToolOutput):  # most events by far
            if not event.text.isascii():
                event.text.encode()
        else:
            msgspec.json.encode(event)
    except UnicodeEncodeError:
        return True
    except (TypeError, ValueError, RecursionError):
        return False  # the store says what is wrong with it
    return False


def _repaired(event: AnyEvent) -> AnyEvent:
    values = _repaired_value(msgspec.to_builtins(event))
    with first_use:
        return msgspec.convert(values, type(event))


def _repaired_value(value: Any) -> Any:  # JSON, of any kind
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {_repaired_value(key): _repaired_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_repaired_value(item) for item in value]
    return value
