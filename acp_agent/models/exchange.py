"""Send a request over HTTP and decode its streamed answer, for every driver.

Each read of the socket gives one batch of events; a keep-alive gives an empty batch. Errors are not
raised: a failure is the last event. Closing the iterator closes the connection at once. After a
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

_END_MARK_TIMEOUT = 5.0  # seconds of silence after which a complete answer ends without an end mark
_KEEP_ALIVE_LIMIT = 600.0  # seconds for which keep-alives alone count as progress, as in the SDKs
_BODY_END_TIMEOUT = 1.0  # seconds to read the end of the HTTP body of a complete answer


class Decoder(Protocol):
    """Converts the events of an API to stream events, for one answer."""

    ended: bool  # the last event of the API has arrived

    @property
    def answered(self) -> bool:
        """Return whether the API has reported the end of the answer; only counts may follow."""

    @property
    def usage(self) -> Usage:
        """Return the usage that the API has reported so far."""

    def feed(self, data: bytes, events: list[StreamEvent]) -> None:
        """Convert one event of the API and append the result to `events`.

        Raises:
            msgspec.DecodeError: the event cannot be decoded.
        """

    def end(self) -> list[StreamEvent]:
        """Return the last events, which end with `Finished` or `Failed`. Called once."""


class Framing(Protocol):
    """Splits the bytes of an answer into the data of its events, like `SseDecoder`."""

    def feed(self, received: bytes) -> list[bytes]:
        """Add bytes and return the data of every event that is complete now."""

    def end(self) -> list[bytes]:
        """Return the data of an unterminated event. Called at the end of the stream."""


class Exchanges:
    """Sends the requests of one driver and closes their connections."""

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
        """Send the request and yield its decoded answer; see the module docstring."""
        has_bytes = has_events = False  # bytes have arrived; non-empty events have arrived
        body: Body | None = None
        events: list[StreamEvent] = []  # decoded but not yielded yet
        clock = asyncio.get_running_loop().time
        last_progress = clock()
        counts = _Counts(decoder)
        try:
            body = await send()
            frames = framing()
            received = await _next(body, decoder)
            if received is not None and _is_page(body, received):
                page = await _read_page(body, received)
                if not _feed_page(decoder, page, events):
                    yield _as_answer([failures.from_page(self._provider, page, model=model)])
                    return
                received, has_events = None, True
            while received is not None:
                has_bytes = True
                for data in frames.feed(received):
                    has_events = True
                    _feed(decoder, data, events)
                    if decoder.ended:
                        break
                if decoder.ended:
                    break
                if events:
                    last_progress = clock()
                events += counts.take_changes()
                if events or clock() - last_progress < _KEEP_ALIVE_LIMIT:
                    batch, events = events, []
                    yield batch
                received = await _next(body, decoder)
            else:
                for data in frames.end():
                    has_events = True
                    with suppress(ValueError):  # an incomplete event: `end` reports the cut answer
                        _feed(decoder, data, events)
            last = _as_answer(decoder.end() if has_events else [failures.empty(self._provider)])
            events += [*(counts.take_changes() if isinstance(last[-1], Failed) else ()), *last]
            if decoder.ended:
                self._finish_in_background(body)
                body = None
            batch, events = events, []
            yield batch
        except Exception as error:  # noqa: BLE001 - a stream never raises into the turn
            failed = failures.from_exception(
                self._provider, error, model=model, answer_started=has_bytes
            )
            last = _as_answer([failed])
            yield [*events, *counts.take_changes(), *last]  # the events before the error are valid
        finally:
            if body is not None:
                await body.close()

    async def aclose(self) -> None:
        """Stop reading the ends of answers and close their connections."""
        ending = dict(self._ending)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        # A task that is cancelled before its first step does not close its body.
        await asyncio.gather(*(body.close() for body in ending.values()), return_exceptions=True)

    def _finish_in_background(self, body: Body) -> None:
        task = asyncio.get_running_loop().create_task(_finish(body))
        self._ending[task] = body
        task.add_done_callback(self._ending.pop)


class _Counts:
    """Reports changes of the usage during a stream, in case the answer is stopped or fails."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._reported = Usage()

    def take_changes(self) -> list[Usage]:
        """Return the usage if it has changed since the last call."""
        if self._decoder.usage == self._reported:
            return []
        self._reported = self._decoder.usage
        return [self._reported]


async def _next(body: Body, decoder: Decoder) -> bytes | None:
    """Return the next bytes, or None at the end.

    Once the answer is complete, an error or a pause counts as the end too. Some services omit the
    end mark of their API, or leave the connection open after it. Sending the request again would
    discard text that the user has read, and cost twice.
    """
    if not decoder.answered:
        return await body.read()
    with suppress(Exception):
        async with asyncio.timeout(_END_MARK_TIMEOUT):
            return await body.read()
    return None


def _as_answer(events: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
    """Return the last events; a failure of the kind `refused` becomes a finished answer.

    After a failure the refused content would stay in the conversation, and the provider would
    refuse every later request too.
    """
    last = events[-1]
    if isinstance(last, Failed) and last.kind == "refused":
        return [*events[:-1], Finished(stop="refusal", why=last.message)]
    return events


def _feed(decoder: Decoder, data: bytes, events: list[StreamEvent]) -> None:
    """Decode one event. Empty events, and invalid events after a complete answer, are ignored.

    Some services omit the empty line between events. Each line of such data is an event.

    Raises:
        ValueError: the event cannot be decoded.
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
    """Return whether the body is JSON or HTML instead of a stream, regardless of its type."""
    kind = body.headers.get("content-type", "").partition(";")[0].strip().lower()
    first_character = received.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return kind == "text/html" or first_character in {b"{", b"[", b"<"}


async def _read_page(body: Body, received: bytes) -> bytes:
    """Return a whole page; the limit is that of one event."""
    page = received
    while len(page) < EVENT_LIMIT and (more := await body.read()) is not None:
        page += more
    return page


def _feed_page(decoder: Decoder, page: bytes, events: list[StreamEvent]) -> bool:
    """Decode an answer that is not an event stream; return False if the page is no answer.

    The page is one JSON value, a list of values, or one value per line.
    """
    page = page.removeprefix(b"\xef\xbb\xbf")
    try:
        decoded: object = msgspec.json.decode(page)
        if read_problem(page).message:
            return False
        entries = decoded if isinstance(decoded, list) else [decoded]
        values = [msgspec.json.encode(value) for value in entries]
    except ValueError:
        values = [line for line in page.splitlines() if line.strip()]
    try:
        for value in values:
            decoder.feed(value, events)
    except ValueError:
        return False
    return decoder.answered or decoder.ended


async def _finish(body: Body) -> None:
    """Read the last bytes after the answer, so that the connection can be reused."""
    with suppress(Exception):
        async with asyncio.timeout(_BODY_END_TIMEOUT):
            while await body.read() is not None:
                pass
    await body.close()
