"""Passes a command's output on to the user as it comes, in few pieces, up to a limit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

INTERVAL = 0.1  # seconds between two pieces
PIECE_LIMIT = 64 * 1024  # characters of one piece
LIVE_LIMIT = 1_000_000  # characters of one command that are passed on


class LiveOutput:
    """Collects text and says when a piece of it is due.

    After a quiet moment whole lines are due at once; then a piece follows at most every `INTERVAL`.
    A piece ends with a line, unless the line stays unfinished for an interval: so a credential in
    the output is seen whole by whoever looks for it in the pieces. Times are those of the event
    loop's clock, in seconds.
    """

    def __init__(self, deliver: Callable[[str], Awaitable[None]]) -> None:
        self._deliver = deliver
        self._pending: list[str] = []
        self._has_line = False
        self._since = 0.0  # when the oldest pending text came
        self._last = float("-inf")  # when the last piece was passed on
        self._room = LIVE_LIMIT

    def add(self, text: str, now: float) -> None:
        """Take more text."""
        if not text or self._room <= 0:
            return
        if not self._pending:
            self._since = now
        self._pending.append(text)
        self._has_line = self._has_line or "\n" in text

    def wait(self, now: float) -> float | None:
        """Seconds until a piece is due: 0 when it is now, None when there is nothing to pass on."""
        if not self._pending:
            return None
        due = self._last + INTERVAL
        if not self._has_line:
            due = max(due, self._since + INTERVAL)
        return max(0.0, due - now)

    async def flush(self, now: float, *, final: bool = False) -> None:
        """Pass on what is pending; the unfinished last line only when nothing else is, or last."""
        text = "".join(self._pending)
        self._pending.clear()
        if self._has_line and not final:
            lines, _, rest = text.rpartition("\n")
            text = lines + "\n"
            if rest:
                self._pending.append(rest)
                self._since = now
        self._has_line = False
        self._last = now
        if not text:
            return
        piece, self._room = text[: self._room], self._room - len(text)
        if self._room <= 0:
            self._pending.clear()
            piece += "\n[... more output follows; it is not shown live ...]\n"
        for start in range(0, len(piece), PIECE_LIMIT):
            await self._deliver(piece[start : start + PIECE_LIMIT])
