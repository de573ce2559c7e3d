"""Bars, in text and as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from acp_agent.cli.columns import filled_left, width

COLUMNS = 80  # of a text's line, at most
_NAME = 28  # columns of a name; of a longer one its end is shown
_SHORTEST = 8  # columns that a narrow terminal leaves to a name, and to a bar
_EIGHTHS = " ▏▎▍▌▋▊▉"
_ROW, _MARGIN, _LEFT, _WIDTH, _RIGHT = 22, 12, 240, 480, 140  # of the picture, in pixels


class Bar(NamedTuple):
    """A bar: its name, its length in whatever unit, and what is written behind it."""

    name: str
    value: float
    label: str


def text_bars(
    bars: Sequence[Bar], encoding: str = "utf-8", columns: int = COLUMNS
) -> Iterator[str]:
    """A line a bar, the longest as long as there are columns.

    Where the encoding has no blocks they are drawn by `#`.
    """
    if not bars:
        return
    label = max(width(bar.label) for bar in bars)
    most = max(_SHORTEST, min(_NAME, columns - label - _SHORTEST - 3))
    names = [_short(bar.name, most) for bar in bars]
    filled = max(map(width, names))
    room = max(1, columns - filled - label - 3)
    blocks, longest = _has_blocks(encoding), _longest(bars)
    for name, bar in zip(names, bars, strict=True):
        length = bar.value / longest * room
        drawn = f"│{_drawn(length)}" if blocks else f"|{'#' * round(length)}"
        yield f"{filled_left(name, filled)} {drawn} {bar.label}".rstrip()


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
    longest = _longest(bars)
    for place, bar in enumerate(bars, 1):
        top = _MARGIN + place * _ROW
        length = bar.value / longest * _WIDTH
        lines += [
            (
                f'<text x="{_LEFT - 8}" y="{top + 14}" text-anchor="end">'
                f"{escape(_short(bar.name, _NAME))}</text>"
            ),
            (
                f'<rect x="{_LEFT}" y="{top + 2}" width="{length:.1f}" height="{_ROW - 6}" '
                'fill="#4878a8"/>'
            ),
            f'<text x="{_LEFT + length + 6:.1f}" y="{top + 14}">{escape(bar.label)}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _longest(bars: Sequence[Bar]) -> float:
    """The value of the longest bar; 1 where none is longer than nothing."""
    return max((bar.value for bar in bars), default=0.0) or 1.0


def _has_blocks(encoding: str) -> bool:
    try:
        f"│█{_EIGHTHS}".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _drawn(length: float) -> str:
    eighths = round(length * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def _short(name: str, most: int) -> str:
    name = "".join(char if char.isprintable() else " " for char in name)
    if width(name) <= most:
        return name
    while width(name) >= most:
        name = name[1:]
    return f"…{name}"
