"""What goes out, in order, with bounded memory when the peer reads slowly."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Literal

from protocol.jsonrpc import messages
from protocol.transports.base import Transport

HIGH_WATER: Final = 1024 * 1024  # bytes queued from which `drain` waits
PAUSE: Final = 0.008  # seconds after a piece of a text in which what follows it is collected
_BATCH: Final = 64 * 1024  # bytes given to a transport at once; what a pipe holds

# (method, parameters of the notification that waits, parameters of the next one) -> the parameters
# of one notification that says both, or None where they must stay two. What waits may be long:
# merging should stop at some size, or its cost grows with the square of what waits.
Merge = Callable[[str, Any, Any], object | None]
Trace = Callable[[Literal["in", "out"], bytes], None]


class Outbox:
    """Gives lines to a transport: at once while the peer reads, in batches when it lags.

    A notification that still waits may be merged with the next one. One that could be merged with
    the one sent last waits for `PAUSE` seconds after that, so that a fast stream becomes few
    notifications; whatever else is sent meanwhile takes it along.
    """

    def __init__(self, transport: Transport, trace: Trace | None) -> None:
        self._transport = transport
        self._merge: Merge | None = None
        self._trace = trace
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._last: tuple[str, object] | None = None  # the last line, where it is a notification
        self._sent: tuple[str, object] | None = None  # likewise the line sent last
        self._sent_at = 0.0  # in the loop's time
        self._pause: asyncio.TimerHandle | None = None
        self._drained: asyncio.Future[None] | None = None
        self._ending = False
        self._only_responses = False
        transport.on_idle = self._pump

    @property
    def queued(self) -> int:
        """Bytes not yet passed on to the system."""
        return self._size + self._transport.queued

    def merge_with(self, merge: Merge | None) -> None:
        """Merge by `merge` what is queued from now on, and nothing that waits already."""
        self._merge = merge
        self._last = self._sent = None

    def send(self, line: bytes) -> None:
        """Queue a line; it is not merged with anything."""
        self._queue(line, None)

    def answer(self, line: bytes, after: Callable[[], None] | None = None) -> None:
        """Queue a response, then call `after`."""
        self.send(line)
        if after is not None:
            after()

    def notify(self, method: str, params: object) -> None:
        """Queue a notification."""
        if self._only_responses:
            return
        merged = self._merged(self._last, method, params)
        if merged is not None:
            self._size -= len(self._lines.pop())
            self._append(messages.notification(method, merged), (method, merged))
            return
        line = messages.notification(method, params)
        if self._lines or self._merged(self._sent, method, params) is None:
            self._queue(line, (method, params))
            return
        rest = self._sent_at + PAUSE - asyncio.get_running_loop().time()
        if rest <= 0:
            self._queue(line, (method, params))
            return
        self._append(line, (method, params))
        self._pause = asyncio.get_running_loop().call_later(rest, self._pump)

    async def drain(self) -> None:
        """Wait while more than `HIGH_WATER` bytes are queued and the peer is there to read them."""
        while not self._may_go_on():
            if not self._lines and not self._transport.waiting:
                await asyncio.sleep(0)  # lets the transport write what this pass of the loop made
                continue
            if self._drained is None or self._drained.done():
                self._drained = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drained)

    def end_waiting(self) -> None:
        """Let `drain` wait no more: a peer that does not read must not hold up the end."""
        self._ending = True
        self._wake()

    def end_notifying(self) -> None:
        """Send no notification any more; responses still go out."""
        self._only_responses = True

    async def flush(self, timeout: float) -> bool:
        """Pass everything on, waiting at most `timeout` seconds; whether it worked."""
        while self._lines:
            self._give_batch(_BATCH)
        return await self._transport.flush(timeout)

    def _merged(
        self, before: tuple[str, object] | None, method: str, params: object
    ) -> object | None:
        if self._merge is None or before is None or before[0] != method:
            return None
        return self._merge(method, before[1], params)

    def _queue(self, line: bytes, notification: tuple[str, object] | None) -> None:
        """Send a line now, with what was collected before it, or when the peer reads again."""
        if self._lines or self._transport.waiting:
            self._append(line, notification)
            if self._pause is not None:
                self._pump()
        else:
            self._note_sent(notification)
            self._pass_on(line)

    def _note_sent(self, notification: tuple[str, object] | None) -> None:
        self._sent = notification
        if notification is not None:
            self._sent_at = asyncio.get_running_loop().time()

    def _append(self, line: bytes, last: tuple[str, object] | None) -> None:
        if self._transport.gone:
            return
        self._lines.append(line)
        self._size += len(line)
        self._last = last

    def _pass_on(self, line: bytes) -> None:
        if self._trace is not None:
            self._trace("out", line)
        self._transport.write(line)

    def _pump(self) -> None:
        """Give the transport the next batch; called again until nothing waits."""
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        if self._transport.gone:
            self._lines.clear()
            self._size = 0
            self._last = None
        elif self._lines and not self._transport.waiting:
            self._give_batch(_BATCH)
            if self._lines:
                asyncio.get_running_loop().call_soon(self._pump)
        if self._may_go_on():
            self._wake()

    def _wake(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _may_go_on(self) -> bool:
        return self.queued <= HIGH_WATER or self._transport.gone or self._ending

    def _give_batch(self, size: int) -> None:
        batch: list[bytes] = []
        given = 0
        while self._lines and given < size:
            line = self._lines.popleft()
            if self._trace is not None:
                self._trace("out", line)
            given += len(line)
            batch.append(line)
        if not self._lines:
            self._note_sent(self._last)
            self._last = None
        self._size -= given
        self._transport.write(b"".join(batch))
