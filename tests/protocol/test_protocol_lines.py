"""Lines out of pieces of bytes."""

from __future__ import annotations

from hypothesis import given, strategies as st

from protocol.transports.base import Oversize
from protocol.transports.lines import LineSplitter

LIMIT = 8
LINES = st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"x")), max_size=8)


def kept(line: bytes) -> bytes | Oversize | None:
    if len(line) > LIMIT:
        return Oversize(LIMIT)
    return line if line.strip() else None


@given(LINES, st.lists(st.integers(1, 7), min_size=1), st.booleans())
def test_lines_are_the_same_however_the_bytes_come_in(
    lines: list[bytes], sizes: list[int], ends: bool
) -> None:
    data = b"\n".join(lines) + (b"\n" if ends and lines else b"")
    splitter = LineSplitter(LIMIT)
    found: list[bytes | Oversize] = []
    start, turn = 0, 0
    while start < len(data):
        size = sizes[turn % len(sizes)]
        found.extend(splitter.feed(data[start : start + size]))
        start, turn = start + size, turn + 1
    last = splitter.finish()
    assert [*found, *([] if last is None else [last])] == [
        line for each in lines if (line := kept(each)) is not None
    ]


def test_a_line_of_exactly_the_limit_is_kept_and_one_byte_more_is_not() -> None:
    splitter = LineSplitter(LIMIT)
    assert list(splitter.feed(b"12345678\n123456789\n1\n")) == [b"12345678", Oversize(LIMIT), b"1"]


def test_what_is_thrown_away_is_not_stored() -> None:
    splitter = LineSplitter(LIMIT)
    for size in (LIMIT - 1, 2, 1000, 1000):
        assert list(splitter.feed(b"x" * size)) == []
        assert sum(map(len, splitter._parts)) == (size if size == LIMIT - 1 else 0)
