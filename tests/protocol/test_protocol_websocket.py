"""The WebSocket transport by itself: frames in any pieces, and what is told to the connection."""

from __future__ import annotations

import asyncio
from typing import cast

from hypothesis import given, strategies as st
from websockets.frames import Frame, Opcode

from protocol.transports.base import Oversize
from protocol.transports.websocket import WebSocketTransport, text_frame


class Wire(asyncio.Transport):
    """A socket that keeps what is written, and holds it back where the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.held = 0
        self.reading = True
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return self.held

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None:
        self.closed = True

    abort = close


def opened(limit: int = 1000) -> tuple[WebSocketTransport, Wire]:
    transport, wire = WebSocketTransport(limit=limit), Wire()
    transport.connection_made(cast("asyncio.Transport", wire))
    return transport, wire


def frame(payload: bytes, *, opcode: Opcode = Opcode.TEXT, last: bool = True) -> bytes:
    return Frame(opcode, payload, fin=last).serialize(mask=True)


@given(
    texts=st.lists(st.text(max_size=300), max_size=6),
    cuts=st.lists(st.integers(1, 40), min_size=1, max_size=20),
)
def test_messages_are_the_same_however_their_bytes_are_cut(
    texts: list[str], cuts: list[int]
) -> None:
    async def run() -> None:
        transport, _ = opened(limit=10_000)
        data = b"".join(frame(text.encode()) for text in texts)
        turn = 0
        while data:
            size = cuts[turn % len(cuts)]
            turn += 1
            transport.data_received(data[:size])
            data = data[size:]
        transport.connection_lost(None)
        got = []
        while (message := await transport.read_message()) is not None:
            got.append(message)
        assert got == [text.encode() for text in texts]

    asyncio.run(run())


async def test_a_message_may_come_in_any_number_of_empty_or_tiny_frames() -> None:
    transport, _ = opened()
    transport.data_received(frame(b"[", last=False))
    for _ in range(1000):
        transport.data_received(frame(b"", opcode=Opcode.CONT, last=False))
    transport.data_received(frame(b"]", opcode=Opcode.CONT))
    assert await transport.read_message() == b"[]"


async def test_binary_frames_are_messages_only_where_that_is_wanted() -> None:
    for wanted in (False, True):
        transport = WebSocketTransport(limit=1000, binary=wanted)
        transport.connection_made(cast("asyncio.Transport", Wire()))
        transport.data_received(frame(b"[", opcode=Opcode.BINARY, last=False))
        transport.data_received(frame(b"1]\n", opcode=Opcode.CONT))
        transport.data_received(frame(b"[2]"))
        first = await transport.read_message()
        assert first == (b"[1]\n" if wanted else b"[2]")


async def test_a_too_long_message_is_reported_once_and_the_next_is_read() -> None:
    transport, _ = opened(limit=10)
    for _ in range(3):
        transport.data_received(frame(b"x" * 8, last=False))
        transport.data_received(frame(b"x" * 8, opcode=Opcode.CONT))
        transport.data_received(frame(b"short"))
        assert await transport.read_message() == Oversize(10)
        assert await transport.read_message() == b"short"


async def test_reading_pauses_while_the_output_has_no_reader_and_continues_afterwards() -> None:
    transport, wire = opened(limit=1_000_000)
    for _ in range(3):
        transport.data_received(frame(b"x" * 600_000))
    paused = not wire.reading
    assert paused
    for _ in range(3):
        assert await transport.read_message() == b"x" * 600_000
    reading = asyncio.create_task(transport.read_message())
    await asyncio.sleep(0)
    assert wire.reading
    transport.connection_lost(None)
    assert await reading is None


async def test_lines_are_sent_together_as_one_frame_each() -> None:
    transport, wire = opened()
    transport.write(b"one\n")
    transport.write(b"two\nthree\n")
    assert wire.written == b""
    assert transport.queued > 0
    await asyncio.sleep(0)
    assert wire.written == b"\x81\x03one\x81\x03two\x81\x05three"
    assert transport.queued == 0


def test_the_length_of_a_frame_is_written_in_the_shortest_way() -> None:
    assert text_frame(b"x" * 125)[:2] == b"\x81\x7d"
    assert text_frame(b"x" * 126)[:4] == b"\x81\x7e\x00\x7e"
    assert text_frame(b"x" * 65_536)[:10] == b"\x81\x7f" + (65_536).to_bytes(8, "big")


async def test_the_connection_is_notified_when_a_slow_reader_has_caught_up() -> None:
    transport, _ = opened()
    told: list[bool] = []
    transport.on_idle = lambda: told.append(transport.waiting)
    transport.pause_writing()
    assert transport.waiting
    transport.resume_writing()
    assert told == [False]


async def test_the_connection_is_notified_of_the_end_before_it_reads_it() -> None:
    transport, wire = opened()
    told: list[str] = []
    transport.on_read_end = lambda: told.append("over")
    reading = asyncio.create_task(transport.read_message())
    await asyncio.sleep(0)
    transport.data_received(frame(b"\x03\xe8", opcode=Opcode.CLOSE))
    assert told == ["over"]
    assert await reading is None
    assert transport.disconnected
    transport.write(b"late\n")
    await asyncio.sleep(0)
    assert wire.written == b"\x88\x02\x03\xe8"
    assert wire.closed
    transport.connection_lost(None)
    assert told == ["over"]
