"""Pass a command's output to the user, the model and a file, in bounded memory.

The user gets the output live, the model its beginning and end, and the file all of it. All three
get plain text: terminal escape sequences (ECMA-48) and control characters are removed, because
the model cannot use them, and because output must not control the terminal or editor that shows
it. Bytes that are not UTF-8 become U+FFFD; in the text for the user they are lone surrogates
(PEP 383), so that the bytes can be restored. A carriage return that overwrites a line (as in a
progress bar) becomes a new line for the user and in the file; the model gets only the final line.
"""

from __future__ import annotations

import codecs
import os
import re
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

from acp_agent.platform.descriptor_limit import describe_os_error

HEAD_LIMIT = 16_000  # characters from the beginning for the model
TAIL_LIMIT = 32_000  # and from the end; with the tool's own text, this is below 50 KB
FILE_LIMIT = 64 * 1024 * 1024  # bytes of one output file
_MAX_LINE = 65_536  # characters of an unfinished line
_MAX_INCOMPLETE = 4_096  # characters of an unfinished escape sequence
_TAIL_BYTES = 4 * TAIL_LIMIT  # a character takes up to four bytes

_ESCAPES = re.compile(
    r"\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # control sequences: colours, cursor
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)"  # operating system commands: titles, links, clipboard
    r"|[PX^_][^\x1b]*\x1b\\"  # other strings
    r"|[ -/]+[0-~]"  # character sets
    r"|[0-OQ-WYZ\\`-~]"  # single functions
    r")"
)
# DEL and all C0 and C1 controls except tab, line feed and carriage return.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+")
_LINE_END = re.compile(r"\r+\n")
_INVALID = re.compile("[\udc80-\udcff]")
_INVALID_OR_REPLACED = re.compile("[\udc80-\udcff\ufffd]")
INTERVAL = 0.1  # seconds between pieces
PIECE_LIMIT = 64 * 1024  # characters of one piece
LIVE_LIMIT = 1_000_000  # characters of one command that are shown live


def replace_invalid(text: str) -> str:
    """Return the text with U+FFFD for each byte that was not UTF-8."""
    return text if text.isascii() else _INVALID.sub("\ufffd", text)


def invalid_bytes(text: str) -> bytes:
    """Return the original byte of each U+FFFD in the result of `replace_invalid`.

    A U+FFFD that was in the output itself gets 0. The result is empty if all of it was UTF-8.
    """
    if text.isascii() or _INVALID.search(text) is None:
        return b""
    characters = _INVALID_OR_REPLACED.findall(text)
    return bytes(0 if char == "\ufffd" else ord(char) - 0xDC00 for char in characters)


class PlainText:
    """Converts a command's bytes to plain text incrementally; pieces may end anywhere.

    Bytes that are not UTF-8 become lone surrogates.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._incomplete = ""

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Return the text of the next bytes; incomplete sequences wait for the next call."""
        text = self._incomplete + self._decoder.decode(data, final)
        self._incomplete = ""
        if "\x1b" in text:
            text = _ESCAPES.sub("", text)
            start = text.find("\x1b")
            if start >= 0 and not final and len(text) - start <= _MAX_INCOMPLETE:
                text, self._incomplete = text[:start], text[start:]
        if text.endswith("\r") and not final:
            text, self._incomplete = text[:-1], "\r" + self._incomplete
        return _LINE_END.sub("\n", _CONTROLS.sub("", text))


class CommandOutput:
    """Collects a command's output: beginning and end in memory, and all of it in a file if long."""

    def __init__(
        self, folder: Path, *, clean: Callable[[str], str] = str, is_watched: bool = False
    ) -> None:
        """Create an instance; no file is created yet.

        Args:
            folder: the folder for the file; created when needed.
            clean: removes text that must not be in the file, such as keys.
            is_watched: whether the text is needed until the command ends, even if the file is full.
        """
        self.total_bytes = 0
        self.path: Path | None = None
        self.incomplete_reason = ""  # why the file is incomplete
        self._folder = folder
        self._clean = clean
        self._is_watched = is_watched
        self._line = ""  # the unfinished last line; `clean` does not recognise half a key
        self._is_final = False
        self._plain_text = PlainText()
        self._tail = bytearray()
        self._head: list[str] = []
        self._head_length = 0
        self._unwritten: list[str] = []
        self._descriptor: int | None = None
        self._file_size = 0
        self._ended = False
        self._lock = threading.Lock()  # a cancelled call's thread may still write at the end

    @property
    def overflowed(self) -> bool:
        """Return whether there is more output than the model gets, so that a file is needed."""
        return self._head_length > HEAD_LIMIT + TAIL_LIMIT

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Add the next bytes; return their text for the user.

        Once the file is full, the text is empty unless the output is watched.
        """
        self.total_bytes += len(data)
        self._tail += data
        if len(self._tail) > 2 * _TAIL_BYTES:
            del self._tail[:-_TAIL_BYTES]
        if self._ended and not self._is_watched:
            return ""
        user_text = self._plain_text.feed(data, final=final)
        if self._ended:
            return user_text.replace("\r", "\n")
        text = _replaced(user_text)
        self._is_final = final
        if not self.overflowed:
            self._head.append(text)
            self._head_length += len(text)
        self._unwritten.append(text)
        return user_text.replace("\r", "\n")

    @property
    def wants_writing(self) -> bool:
        """Return whether `write` has something to do."""
        return self.overflowed and bool(self._unwritten) and not self._ended

    def write(self) -> None:
        """Write new output to the file. Blocks: call it in a thread."""
        with self._lock:
            if not self._ended:
                self._write()

    def close(self) -> None:
        """Write the rest and close the file. Blocks like `write`."""
        with self._lock:
            if self._line and not self._ended:
                self._is_final = True
                self._write()
            self._ended = True
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _write(self) -> None:
        text = self._line + "".join(self._unwritten).replace("\r", "\n")
        self._unwritten.clear()
        self._line = ""
        if not self._is_final:
            start = max(text.rfind("\n") + 1, len(text) - _MAX_LINE)
            text, self._line = text[:start], text[start:]
        data = self._clean(text).encode("utf-8", "replace")
        remaining = FILE_LIMIT - self._file_size
        try:
            if self._descriptor is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._descriptor, name = tempfile.mkstemp(".txt", "command-", self._folder)
                self.path = Path(name)
            view = memoryview(data[:remaining])
            while view:
                count = os.write(self._descriptor, view)
                self._file_size += count
                view = view[count:]
        except OSError as error:
            self.incomplete_reason = f"the rest could not be kept: {describe_os_error(error)}"
            self._ended = True
        else:
            if len(data) > remaining:
                self.incomplete_reason = f"the file ends after {FILE_LIMIT // 1024 // 1024} MB"
                self._ended = True

    def model_text(self) -> str:
        """Return all of the text if it fits, else its beginning and end with a note in between."""
        full_text = "".join(self._head)
        if not self.overflowed:
            return _drop_overwritten(full_text)
        head = until_line_end(_drop_overwritten(full_text[:HEAD_LIMIT]))
        tail = _replaced(PlainText().feed(bytes(self._tail), final=True))
        tail = from_line_start(_drop_overwritten(tail)[-TAIL_LIMIT:])
        location_note = f"the whole is in {self.path}" if self.path else "the rest is not kept"
        note = "; ".join(item for item in (location_note, self.incomplete_reason) if item)
        gap = f"[... the middle of {self.total_bytes:,} bytes is left out; {note} ...]"
        return f"{head}\n{gap}\n{tail}"


def _replaced(text: str) -> str:
    """Return the text with U+FFFD for invalid bytes, as Unicode recommends (section 3.9)."""
    if text.isascii() or _INVALID.search(text) is None:
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _drop_overwritten(text: str) -> str:
    if "\r" not in text:
        return text
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def until_line_end(text: str) -> str:
    """Return `text` without its last line, which may be cut, unless that is most of the text."""
    end = text.rfind("\n")
    return text[:end] if end > len(text) // 2 else text


def from_line_start(text: str) -> str:
    """Return `text` without its first line, which may be cut, unless that is most of the text."""
    start = text.find("\n")
    return text[start + 1 :] if 0 <= start < len(text) // 2 else text


class LiveOutput:
    """Collects text and delivers it in pieces.

    After a pause, whole lines are delivered at once; then a piece follows at most every `INTERVAL`.
    A piece ends at the end of a line, unless a line stays unfinished for an interval. So a
    credential in the output is usually in one piece, where it can be found. Times are in seconds,
    by the event loop's clock.
    """

    def __init__(self, deliver: Callable[[str], Awaitable[None]]) -> None:
        self._deliver = deliver
        self._pending: list[str] = []
        self._has_line = False
        self._since = 0.0  # when the oldest pending text arrived
        self._last = float("-inf")  # when the last piece was delivered
        self._remaining = LIVE_LIMIT

    def add(self, text: str, now: float) -> None:
        """Add text."""
        if not text or self._remaining <= 0:
            return
        if not self._pending:
            self._since = now
        self._pending.append(text)
        self._has_line = self._has_line or "\n" in text

    def wait(self, now: float) -> float | None:
        """Return the seconds until a piece is due (0 means now), or None if no text is pending."""
        if not self._pending:
            return None
        next_delivery = self._last + INTERVAL
        if not self._has_line:
            next_delivery = max(next_delivery, self._since + INTERVAL)
        return max(0.0, next_delivery - now)

    async def flush(self, now: float, *, final: bool = False) -> None:
        """Deliver pending text; an unfinished line only if there is nothing else, or if `final`."""
        text = "".join(self._pending)
        self._pending.clear()
        if self._has_line and not final:
            lines, _, unfinished = text.rpartition("\n")
            text = lines + "\n"
            if unfinished:
                self._pending.append(unfinished)
                self._since = now
        self._has_line = False
        self._last = now
        if not text:
            return
        piece, self._remaining = text[: self._remaining], self._remaining - len(text)
        if self._remaining <= 0:
            self._pending.clear()
            piece += "\n[... more output follows; it is not shown live ...]\n"
        for start in range(0, len(piece), PIECE_LIMIT):
            await self._deliver(piece[start : start + PIECE_LIMIT])
