"""Lines out of pieces of bytes."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given, strategies as st

from protocol.codec.member_scanner import MemberScanner
from protocol.transports.base import Oversize
from protocol.transports.stdio import LineSplitter

LIMIT = 8
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)
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


def test_a_line_of_exactly_the_limit_is_accepted_and_a_longer_one_is_not() -> None:
    splitter = LineSplitter(LIMIT)
    assert list(splitter.feed(b"12345678\n123456789\n1\n")) == [b"12345678", Oversize(LIMIT), b"1"]


def test_discarded_bytes_are_not_stored() -> None:
    splitter = LineSplitter(1 << 20)
    tracemalloc.start()
    try:
        for _ in range(64):
            assert list(splitter.feed(b"x" * (1 << 19))) == []
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1 << 16


LONG = b'"' + b'text, \\"{[ ' * 4_000 + b'"'


@pytest.mark.parametrize(
    ("message", "raw_id", "is_response"),
    [
        (b'{"id":7,"method":"m","params":{"a":%b}}', b"7", False),
        (
            b'{"jsonrpc":"2.0","method":"m","params":{"a":[%b,{"id":1}]},"id":"x\\"y"}',
            b'"x\\"y"',
            False,
        ),
        (b' { "method" : "m", "params" : [ %b ] , "id" : 1e2 } ', b"1e2", False),
        (b'{"method":"m","params":{"id":5,"text":%b}}', b"null", False),
        (b'{"result":{"content":%b},"id":3}', b"3", True),
        (b'{"id":3,"error":{"code":1,"message":%b}}', b"3", True),
        (b'{"\\u0069d":"\\ud800","method":"m","params":%b}', b'"\\ud800"', False),
        (b'{"id":{"id":4},"method":"m","params":%b}', b"null", False),
        (b'{"id":%b,"method":"m"}', b"null", False),
        (b'[{"id":1,"method":"m","params":%b}]', b"null", False),
        (b'{"id":1,"id":2,"method":"m","params":%b}', b"2", False),
    ],
)
@pytest.mark.parametrize("piece", [1, 7, 65_536, 1 << 30])
def test_the_id_of_a_line_over_the_limit_is_known(
    message: bytes, raw_id: bytes, is_response: bool, piece: int
) -> None:
    line = message % LONG + b"\n"
    splitter = LineSplitter(1000)
    found: list[bytes | Oversize] = []
    for start in range(0, len(line), piece):
        found += splitter.feed(line[start : start + piece])
    assert found == [Oversize(1000, raw_id, is_response)]


@given(st.dictionaries(st.text(), JSON, max_size=4), st.integers(1, 60))
def test_the_outline_of_any_object_has_the_members_that_a_parser_finds(
    value: dict[str, object], piece: int
) -> None:
    value = {name[:100]: own for name, own in value.items()}  # a longer name may go unnoticed
    value |= {"id": 12, "padding": "x" * 50}
    line = json.dumps(value).encode()
    scanner = MemberScanner(("id", *value))
    for start in range(0, len(line), piece):
        scanner.feed(line[start : start + piece])
    for name, own in value.items():
        kept = json.dumps(own).encode()
        scalar = not isinstance(own, dict | list) and len(kept) <= 1024
        assert scanner.members[name] == (kept if scalar else b"null")
