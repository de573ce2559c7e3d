"""The decoder of server-sent events."""

import itertools

import pytest
from hypothesis import given, strategies as st

from acp_agent.models.stream_events import EventTooLargeError, SseDecoder


def decode(*pieces: bytes) -> list[bytes]:
    decoder = SseDecoder()
    return [data for piece in pieces for data in decoder.feed(piece)]


def test_an_event_ends_with_an_empty_line() -> None:
    assert decode(b"data: one\n\ndata: two\n\ndata: thr") == [b"one", b"two"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_kind_of_line_end_is_understood(end: bytes) -> None:
    assert decode(b"data: one" + end + end + b"data: two" + end + end) == [b"one", b"two"]


def test_a_line_end_that_is_split_between_two_reads_counts_once() -> None:
    assert decode(b"data: one\r", b"\ndata: two\r", b"\n\r", b"\n") == [b"one\ntwo"]


def test_several_data_lines_form_one_event() -> None:
    assert decode(b"data: {\ndata:  1}\ndata\ndata:x\n\n") == [b"{\n 1}\n\nx"]


def test_comments_other_fields_and_events_without_data_are_ignored() -> None:
    assert decode(b": ping\n\nevent: x\nid: 1\n\nevent: y\ndata: one\nretry: 5\n\n") == [b"one"]


def test_a_byte_order_mark_at_the_start_is_no_part_of_the_first_field() -> None:
    assert decode(b"\xef\xbb\xbfdata: one\n\n") == [b"one"]


def test_only_line_feeds_and_carriage_returns_end_a_line() -> None:
    text = "data: a\u2028b\u0085c\x0bd\n\n".encode()
    assert decode(text) == ["a\u2028b\u0085c\x0bd".encode()]


def test_the_end_gives_the_event_that_lacks_its_empty_line() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: one\ndata: tw") == []
    assert decoder.end() == [b"one\ntw"]
    assert decoder.end() == []


def test_an_event_without_an_end_is_refused_before_it_fills_the_memory() -> None:
    decoder = SseDecoder(limit=1000)
    for _ in range(10):
        assert decoder.feed(b"x" * 100) == []
    with pytest.raises(EventTooLargeError):
        decoder.feed(b"x")


def test_an_event_of_empty_lines_without_end_is_refused_too() -> None:
    decoder = SseDecoder(limit=1_000)
    for _ in range(1_000):
        decoder.feed(b"data:\n")
    with pytest.raises(EventTooLargeError):
        decoder.feed(b"data:\n")


def test_the_limit_applies_to_one_event_and_not_to_the_whole_stream() -> None:
    decoder = SseDecoder(limit=100)
    assert sum(len(decoder.feed(b"data: " + b"x" * 50 + b"\n\n")) for _ in range(50)) == 50


LINES = st.lists(
    st.sampled_from(
        [b"data: a", "data: \u00e9\U0001f600".encode(), b"data:", b": c", b"event: e", b"", b""]
    )
)


@given(
    lines=LINES,
    end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    cuts=st.lists(st.integers(0, 200)),
)
def test_where_the_bytes_are_cut_changes_nothing(
    lines: list[bytes], end: bytes, cuts: list[int]
) -> None:
    stream = b"".join(line + end for line in lines)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert decode(*pieces) == decode(stream)
