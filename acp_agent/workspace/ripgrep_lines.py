"""Lines that ripgrep found, out of the messages that it prints with `--json`."""

from __future__ import annotations

import base64
import os

import msgspec
from msgspec import Struct, field

_BESIDE = 150  # characters before a match that a cut line keeps


class FoundLine(Struct, frozen=True, kw_only=True):
    """A line that matched, or one beside it. `name` is relative to the searched folder."""

    name: str
    number: int
    text: str
    matched: bool


class _Text(Struct, frozen=True):
    """Text as such, or in base64 where it is not UTF-8."""

    text: str | None = None
    coded: str | None = field(name="bytes", default=None)

    @property
    def raw(self) -> bytes:
        return base64.b64decode(self.coded) if self.coded else os.fsencode(self.text or "")


class _Span(Struct, frozen=True):
    start: int


class _Data(Struct, frozen=True):
    path: _Text = _Text()
    lines: _Text = _Text()
    line_number: int | None = None
    submatches: tuple[_Span, ...] = ()


class _Message(Struct, frozen=True):
    """A message; besides `match` and `context` there are `begin`, `end` and `summary`."""

    type: str
    data: _Data


_MESSAGES = msgspec.json.Decoder(_Message)


def decode_lines(record: bytes, *, width: int) -> list[FoundLine]:
    """The lines in one message: none, one, or the several that a match spans.

    Each is cut to `width` characters around its first match.
    """
    message = _MESSAGES.decode(record)
    if message.type not in ("match", "context"):
        return []
    data = message.data
    raw = data.lines.raw
    start = data.submatches[0].start if data.submatches else 0
    start = len(raw[:start].decode("utf-8", "replace"))
    name = os.fsdecode(data.path.raw.removeprefix(b"./"))
    first = data.line_number or 0
    text = raw.decode("utf-8", "replace").removesuffix("\n")
    return [
        FoundLine(
            name=name,
            number=number,
            text=_cut(line.removesuffix("\r"), start if number == first else 0, width),
            matched=message.type == "match",
        )
        for number, line in enumerate(text.split("\n"), first)
    ]


def _cut(line: str, start: int, width: int) -> str:
    if len(line) <= width:
        return line
    first = max(0, min(start - _BESIDE, len(line) - width))
    before = "…" if first else ""
    after = "…" if first + width < len(line) else ""
    return f"{before}{line[first : first + width]}{after}"
