"""Sends a request over HTTP and decodes its streamed answer, for every driver.

Each read of the socket becomes one batch of events; a keep-alive becomes an empty batch. Nothing is
raised: a failure is the last event. Closing the iterator closes the connection at once; after a
complete answer the connection stays open for the next request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from acp_agent.events import Usage
from acp_agent.models import failures
from acp_agent.models.base import Failed, Finished, StreamEvent
from acp_agent.models.http.client import Body
from acp_agent.models.provider_errors import read_problem
from acp_agent.models.providers import Provider
from acp_agent.models.stream_events import EVENT_LIMIT, SseDecoder

_LAST_EVENTS = 5.0  # seconds of silence after which a complete answer needs no end mark
_STILL_THERE = 600.0  # seconds for which keep-alives alone count as work, as in the SDKs
_LAST_BYTES = 1.0  # seconds that the end of a complete answer's HTTP body may take


class Decoder(Protocol):
    """Turns the events of an API into ours, for one answer."""

    ended: bool  # the API's own last event was seen

    @property
    def answered(self) -> bool:
        """Whether the API has reported how the answer ended; only counts may follow."""
        ...

    @property
    def usage(self) -> Usage:
        """What the API has counted so far."""
        ...

    def feed(self, data: bytes, events: list[StreamEvent]) -> None:
        """Append the events that one event of the API means.

        Raises:
            msgspec.DecodeError: the event cannot be read.
        """
        ...

    def end(self) -> list[StreamEvent]:
        """Return the last events, the very last being `Finished` or `Failed`; called once."""
        ...


class Framing(Protocol):
    """Splits the bytes of an answer into the data of its events, like `SseDecoder`."""

    def feed(self, received: bytes) -> list[bytes]:
        """Take in bytes and return the data of every event that is complete now."""
        ...

    def end(self) -> list[bytes]:
        """Return the data of an event that lacks its end; called at the end of the stream."""
        ...


class Exchanges:
    """The requests of one driver."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._ending: dict[asyncio.Task[None], Body] = {}

    async def stream(
        self,
        send: Callable[[], Awaitable[Body]],
        decoder: Decoder,
        *,
        model: str,
        framing: Callable[[], Framing] = SseDecoder,
    ) -> AsyncGenerator[Sequence[StreamEvent]]:
        """Send the request and decode its answer; see the module."""
        begun = said = False  # bytes came; events with something in them came
        body: Body | None = None
        events: list[StreamEvent] = []  # decoded and not passed on yet
        clock = asyncio.get_running_loop().time
        told = clock()
        counts = _Counts(decoder)
        try:
            body = await send()
            frames = framing()
            received = await _next(body, decoder)
            if received is not None and _is_page(body, received):
                page = await _whole(body, received)
                if not _feed_page(decoder, page, events):
                    yield _as_answer([failures.from_page(self._provider, page, model=model)])
                    return
                received, said = None, True
            while received is not None:
                begun = True
                for data in frames.feed(received):
                    said = True
                    _feed(decoder, data, events)
                    if decoder.ended:
                        break
                if decoder.ended:
                    break
                if events:
                    told = clock()
                events += counts.news()
                if events or clock() - told < _STILL_THERE:
                    batch, events = events, []
                    yield batch
                received = await _next(body, decoder)
            else:
                for data in frames.end():
                    said = True
                    with suppress(ValueError):  # half an event: `end` sees that the answer is cut
                        _feed(decoder, data, events)
            last = _as_answer(decoder.end() if said else [failures.empty(self._provider)])
            events += [*(counts.news() if isinstance(last[-1], Failed) else ()), *last]
            if decoder.ended:
                self._let_end(body)
                body = None
            batch, events = events, []
            yield batch
        except Exception as error:  # noqa: BLE001 - a stream never raises into the turn
            failed = failures.from_exception(self._provider, error, model=model, begun=begun)
            last = _as_answer([failed])
            yield [*events, *counts.news(), *last]  # what came before the fault is as good as ever
        finally:
            if body is not None:
                await body.close()

    async def aclose(self) -> None:
        """Stop reading the ends of answers, and close their connections."""
        ending = dict(self._ending)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        # A task that is cancelled before its first step closes nothing.
        await asyncio.gather(*(body.close() for body in ending.values()), return_exceptions=True)

    def _let_end(self, body: Body) -> None:
        task = asyncio.get_running_loop().create_task(_finish(body))
        self._ending[task] = body
        task.add_done_callback(self._ending.pop)


class _Counts:
    """Reports changes of the usage while an answer streams, in case it is stopped or fails."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._told = Usage()

    def news(self) -> list[Usage]:
        """Return the usage if it has changed since the last call."""
        if self._decoder.usage == self._told:
            return []
        self._told = self._decoder.usage
        return [self._told]


async def _next(body: Body, decoder: Decoder) -> bytes | None:
    """Read on; return None at the end. A complete answer also ends by an error or by silence.

    Some services omit their API's end mark or leave the connection open behind it. To send the
    request again would discard, and pay twice, what the user has read already.
    """
    if not decoder.answered:
        return await body.read()
    with suppress(Exception):
        async with asyncio.timeout(_LAST_EVENTS):
            return await body.read()
    return None


def _as_answer(events: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
    """Return the last events, with the refusal of a request as the end of an answer.

    As a failure, it would leave in the conversation what every further request is refused for.
    """
    last = events[-1]
    if isinstance(last, Failed) and last.kind == "refused":
        return [*events[:-1], Finished(stop="refusal", why=last.message)]
    return events


def _feed(decoder: Decoder, data: bytes, events: list[StreamEvent]) -> None:
    """Decode one event. Empty ones say nothing, and after a complete answer nothing matters.

    Some services leave out the empty line between events; each line of such data is an event.

    Raises:
        ValueError: the event cannot be read.
    """
    if not data.strip():
        return
    try:
        decoder.feed(data, events)
    except ValueError:
        if b"\n" in data:
            for line in data.split(b"\n"):
                _feed(decoder, line, events)
        elif not decoder.answered:
            raise


def _is_page(body: Body, received: bytes) -> bool:
    """Return whether the body is JSON or HTML instead of a stream, whatever its type says."""
    kind = body.headers.get("content-type", "").partition(";")[0].strip().lower()
    begin = received.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return kind == "text/html" or begin in {b"{", b"[", b"<"}


async def _whole(body: Body, received: bytes) -> bytes:
    """Read the rest of a page, up to the longest event."""
    page = received
    while len(page) < EVENT_LIMIT and (more := await body.read()) is not None:
        page += more
    return page


def _feed_page(decoder: Decoder, page: bytes, events: list[StreamEvent]) -> bool:
    """Decode the answer of a service that sends no event stream; return whether it is one.

    It is one JSON value, a list of them, or one on each line.
    """
    page = page.removeprefix(b"\xef\xbb\xbf")
    try:
        found: object = msgspec.json.decode(page)
        if read_problem(page).message:
            return False
        listed = found if isinstance(found, list) else [found]
        values = [msgspec.json.encode(value) for value in listed]
    except ValueError:
        values = [line for line in page.splitlines() if line.strip()]
    try:
        for value in values:
            decoder.feed(value, events)
    except ValueError:
        return False
    return decoder.answered or decoder.ended


async def _finish(body: Body) -> None:
    """Read the few bytes after the answer's end, so that the connection can be used again."""
    with suppress(Exception):
        async with asyncio.timeout(_LAST_BYTES):
            while await body.read() is not None:
                pass
    await body.close()
