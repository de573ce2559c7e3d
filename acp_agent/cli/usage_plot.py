"""Bars, in text and as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from acp_agent.cli.columns import filled_left, width

COLUMNS = 80  # of a text's line
_NAME = 28  # columns of a name; of a longer one its end is shown
_EIGHTHS = " ▏▎▍▌▋▊▉"
_ROW, _MARGIN, _LEFT, _WIDTH, _RIGHT = 22, 12, 240, 480, 140  # of the picture, in pixels


class Bar(NamedTuple):
    """A bar: its name, its length in whatever unit, and what is written behind it."""

    name: str
    value: float
    label: str


def text_bars(bars: Sequence[Bar], encoding: str = "utf-8") -> Iterator[str]:
    """A line a bar, the longest as long as `COLUMNS` allows.

    Where the encoding has no blocks they are drawn by `#`.
    """
    if not bars:
        return
    names = [_short(bar.name) for bar in bars]
    columns = max(map(width, names))
    room = COLUMNS - columns - max(width(bar.label) for bar in bars) - 3
    blocks = _has_blocks(encoding)
    for name, bar in zip(names, bars, strict=True):
        length = _part(bar, bars) * max(1, room)
        drawn = f"│{_drawn(length)}" if blocks else f"|{'#' * round(length)}"
        yield f"{filled_left(name, columns)} {drawn} {bar.label}".rstrip()


def svg(bars: Sequence[Bar], *, title: str) -> str:
    """The same as a picture."""
    height = 2 * _MARGIN + _ROW * (len(bars) + 1)
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + _RIGHT}" '
            f'height="{height}" font-family="sans-serif" font-size="13">'
        ),
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_MARGIN}" y="{_MARGIN + 10}" font-weight="bold">{escape(title)}</text>',
    ]
    for place, bar in enumerate(bars, 1):
        top = _MARGIN + place * _ROW
        length = _part(bar, bars) * _WIDTH
        lines += [
            (
                f'<text x="{_LEFT - 8}" y="{top + 14}" text-anchor="end">'
                f"{escape(_short(bar.name))}</text>"
            ),
            (
                f'<rect x="{_LEFT}" y="{top + 2}" width="{length:.1f}" height="{_ROW - 6}" '
                'fill="#4878a8"/>'
            ),
            f'<text x="{_LEFT + length + 6:.1f}" y="{top + 14}">{escape(bar.label)}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _part(bar: Bar, bars: Sequence[Bar]) -> float:
    longest = max(bar.value for bar in bars)
    return bar.value / longest if longest > 0 else 0.0


def _has_blocks(encoding: str) -> bool:
    try:
        f"│█{_EIGHTHS}".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _drawn(length: float) -> str:
    eighths = round(length * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def _short(name: str) -> str:
    name = "".join(char if char.isprintable() else " " for char in name)
    if width(name) <= _NAME:
        return name
    while width(name) >= _NAME:
        name = name[1:]
    return f"…{name}"
