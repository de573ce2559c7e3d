"""The transport of streamable HTTP by itself: which message goes where, and what waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from protocol.jsonrpc.outgoing import Outbox
from protocol.transports.streamable_http import StreamableHttpTransport


class Events:
    """An open stream that keeps what it is given."""

    def __init__(self) -> None:
        self.on_idle: Callable[[], None] | None = None
        self.on_lost: Callable[[], None] | None = None
        self.data = b""
        self.waiting = False
        self.took = False
        self.state = "open"

    @property
    def queued(self) -> int:
        return 1 if self.waiting else 0

    def write(self, data: bytes) -> None:
        self.data += data

    def drained(self) -> bool:
        return self.took

    def end(self) -> None:
        self.state = "ended"

    def abort(self) -> None:
        self.state = "cut"
        assert self.on_lost is not None
        self.on_lost()

    @property
    def messages(self) -> list[Any]:
        found = [part for part in self.data.split(b"\n\n") if part.startswith(b"data: ")]
        return [json.loads(part.removeprefix(b"data: ")) for part in found]


class Gathering(Events):
    """One that passes on together what one pass of the loop wrote, as the real ones do."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces = b""

    @property
    def queued(self) -> int:
        return len(self._pieces)

    def write(self, data: bytes) -> None:
        self._pieces += data
        asyncio.get_running_loop().call_soon(self._pass_on)

    def _pass_on(self) -> None:
        self.data, self._pieces = self.data + self._pieces, b""


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n"


def update(session: str, text: str = "") -> bytes:
    return line(method="session/update", params={"sessionId": session, "text": text})


@pytest.mark.parametrize(
    ("method", "session", "where"),
    [
        ("session/new", None, None),
        ("session/list", None, None),
        ("session/load", "s", None),
        ("session/resume", "s", "s"),
        ("session/prompt", "s", "s"),
    ],
)
async def test_a_response_goes_to_the_stream_of_its_request(
    method: str, session: str | None, where: str | None
) -> None:
    transport = StreamableHttpTransport()
    streams: dict[str | None, Events] = {None: Events(), "s": Events()}
    for name, stream in streams.items():
        transport.open_stream(name, stream)
    transport.expect(b'"one"', method, session)
    transport.write(line(id="one", result={}))
    assert [name for name, stream in streams.items() if stream.messages] == [where]


async def test_a_response_about_a_session_without_a_stream_reaches_the_client() -> None:
    transport = StreamableHttpTransport()
    connection = Events()
    transport.open_stream(None, connection)
    transport.expect(b"1", "session/status", "listed")
    transport.write(line(id=1, result={"status": "saved"}))
    transport.expect(b"2", "session/prompt", "unknown")
    transport.write(line(id=2, error={"code": -32002, "message": "session not found"}))
    assert [message["id"] for message in connection.messages] == [1, 2]
    transport.expect(b"3", "session/resume", "s")
    transport.write(line(id=3, result={}))
    assert len(connection.messages) == 2, "its stream is opened next"


async def test_the_stream_of_a_closed_session_makes_room_for_another_one() -> None:
    transport = StreamableHttpTransport()
    streams = {name: Events() for name in ("used", "closed", "deleted", "about to be loaded")}
    for name, stream in streams.items():
        transport.open_stream(name, stream)
    transport.expect(b"1", "session/resume", "used")
    transport.write(line(id=1, result={}))
    transport.expect(b"2", "session/resume", "closed")
    transport.write(line(id=2, result={}))
    assert not transport.end_unused_stream()
    transport.expect(b"3", "session/close", "closed")
    assert not transport.end_unused_stream(), "its response has to be read"
    transport.write(line(id=3, result={}))
    transport.expect(b"4", "session/delete", "deleted")
    transport.write(line(id=4, result={}))
    assert transport.end_unused_stream()
    assert transport.end_unused_stream()
    assert not transport.end_unused_stream()
    ended = [name for name, stream in streams.items() if stream.state == "ended"]
    assert ended == ["closed", "deleted"]
    assert [message["id"] for message in streams["closed"].messages] == [2, 3]


async def test_updates_and_questions_go_to_the_stream_of_their_session() -> None:
    transport = StreamableHttpTransport()
    one, other, connection = Events(), Events(), Events()
    transport.open_stream("one", one)
    transport.open_stream("other", other)
    transport.open_stream(None, connection)
    question = line(id=7, method="session/request_permission", params={"sessionId": "other"})
    transport.write(update("one") + question + line(method="_note", params={}))
    assert [m["method"] for m in one.messages] == ["session/update"]
    assert [m["method"] for m in other.messages] == ["session/request_permission"]
    assert [m["method"] for m in connection.messages] == ["_note"]
    assert transport.session_of_request(b"7") == "other"
    transport.response_received(b"7")
    assert transport.session_of_request(b"7") is None


async def test_messages_of_a_child_session_use_the_parents_stream_until_it_has_one() -> None:
    transport = StreamableHttpTransport()
    parent, again, child = Events(), Events(), Events()
    transport.open_stream("parent", parent)
    assert not transport.has_session("child")
    transport.share_stream("child", "parent")
    assert transport.has_session("child")
    question = line(id=7, method="session/request_permission", params={"sessionId": "child"})
    transport.write(update("child") + question)
    assert [m["params"]["sessionId"] for m in parent.messages] == ["child", "child"]
    assert (transport.session_of_request(b"7"), transport.find_stream("child")) == (
        "child",
        "parent",
    )
    transport.expect(b'"cancel"', "tool_call/cancel", "child")
    transport.write(line(id="cancel", result={}))
    assert parent.messages[-1]["id"] == "cancel"
    parent.abort()
    transport.open_stream("parent", again)
    assert [m["id"] for m in again.messages] == [7], "nobody knows whether it was read"
    transport.open_stream("child", child)
    transport.write(update("child", "b") + update("parent", "c"))
    assert [m["params"]["text"] for m in child.messages] == ["b"]
    assert again.messages[-1]["params"]["text"] == "c"


async def test_messages_before_a_stream_is_opened_come_first_and_in_order() -> None:
    transport = StreamableHttpTransport()
    for text in "abc":
        transport.write(update("s", text))
    stream = Events()
    transport.open_stream("s", stream)
    transport.write(update("s", "d"))
    assert [m["params"]["text"] for m in stream.messages] == ["a", "b", "c", "d"]


async def test_too_much_is_dropped_but_for_questions_and_answers() -> None:
    transport = StreamableHttpTransport(buffer_limit=1000)
    transport.expect(b"1", "session/prompt", "s")
    transport.write(line(id=9, method="session/request_permission", params={"sessionId": "s"}))
    transport.write(update("s", "x" * 600) + update("s", "y" * 600) + update("s", "z"))
    transport.write(line(id=1, result={}))
    assert transport.must_reload("s")
    assert not transport.must_reload("other")
    stream = Events()
    transport.open_stream("s", stream)
    assert [m.get("id") for m in stream.messages] == [9, 1]
    transport.forget_lost_updates("s")
    assert not transport.must_reload("s")


async def test_a_lost_stream_costs_no_question_and_says_that_updates_may_be_missing() -> None:
    transport = StreamableHttpTransport()
    first, second = Events(), Events()
    transport.open_stream("s", first)
    question = line(id=9, method="session/request_permission", params={"sessionId": "s"})
    transport.write(question)
    first.waiting = True
    first.abort()
    assert transport.must_reload("s")
    transport.open_stream("s", second)
    assert [m["id"] for m in second.messages] == [9]


async def test_a_stream_that_replaces_an_unread_one_gets_the_waiting_messages() -> None:
    transport = StreamableHttpTransport()
    outbox = Outbox(transport, None)
    dead, alive = Events(), Events()
    transport.open_stream("s", dead)
    question = {"id": 9, "method": "session/request_permission", "params": {"sessionId": "s"}}
    outbox.send(line(**question))
    dead.waiting = True
    for text in "abc":
        outbox.send(update("s", text))
    transport.open_stream("s", alive)
    await asyncio.sleep(0)
    outbox.send(update("s", "d"))
    assert alive.messages[0]["id"] == 9
    assert [m["params"]["text"] for m in alive.messages[1:]] == ["a", "b", "c", "d"]
    assert transport.must_reload("s"), "nobody knows what of the old stream was read"


async def test_replacing_a_read_stream_repeats_no_load() -> None:
    transport = StreamableHttpTransport()
    first, second = Events(), Events()
    transport.open_stream("s", first)
    transport.write(update("s", "a"))
    transport.open_stream("s", second)
    transport.write(update("s", "b"))
    assert first.state == "ended"
    assert [m["params"]["text"] for m in second.messages] == ["b"]
    assert not transport.must_reload("s")


@pytest.mark.parametrize("how", ["answered", "withdrawn"])
async def test_a_question_settled_without_an_open_stream_is_not_asked_again(
    how: str,
) -> None:
    transport = StreamableHttpTransport()
    first, second = Events(), Events()
    transport.open_stream("s", first)
    transport.write(line(id=9, method="session/request_permission", params={"sessionId": "s"}))
    first.abort()
    if how == "answered":
        transport.response_received(b"9")
    else:
        transport.write(line(method="$/cancel_request", params={"requestId": 9}))
    transport.open_stream("s", second)
    left = [m["method"] for m in second.messages]
    assert left == ([] if how == "answered" else ["$/cancel_request"])


async def test_streams_that_are_not_behind_delay_nothing() -> None:
    transport = StreamableHttpTransport()
    stream = Gathering()
    transport.open_stream("s", stream)
    transport.write(update("s", "a"))
    async with asyncio.timeout(60):
        assert await transport.flush(600)
    assert [m["params"]["text"] for m in stream.messages] == ["a"]


async def test_a_question_that_was_withdrawn_is_not_asked_again() -> None:
    transport = StreamableHttpTransport()
    first, second = Events(), Events()
    transport.open_stream("s", first)
    transport.write(line(id=9, method="session/request_permission", params={"sessionId": "s"}))
    transport.write(line(method="$/cancel_request", params={"requestId": 9}))
    assert [m["method"] for m in first.messages][1:] == ["$/cancel_request"]
    first.abort()
    transport.open_stream("s", second)
    assert second.messages == []


async def test_a_client_that_reads_nothing_is_disconnected_and_a_slow_one_is_not() -> None:
    transport = StreamableHttpTransport()
    stuck, slow, quick = Events(), Events(), Events()
    for name, stream in (("stuck", stuck), ("slow", slow), ("quick", quick)):
        transport.open_stream(name, stream)
    stuck.waiting = slow.waiting = slow.took = True
    for now in range(0, 100, 10):
        transport.keep_alive(float(now), 50.0)
    assert (stuck.state, slow.state, quick.state) == ("cut", "open", "open")
    assert quick.data == b":\n\n" * 10
    assert slow.data == b""


async def test_a_slow_stream_causes_waiting_and_reports_when_it_has_caught_up() -> None:
    transport = StreamableHttpTransport()
    told: list[bool] = []
    transport.on_idle = lambda: told.append(transport.waiting)
    slow, quick = Events(), Events()
    transport.open_stream("slow", slow)
    transport.open_stream("quick", quick)
    slow.waiting = True
    assert transport.waiting
    assert transport.queued == 1
    assert not await transport.flush(0.01)
    slow.waiting = False
    assert slow.on_idle is not None
    slow.on_idle()
    assert told == [False]
    assert await transport.flush(0.01)


async def test_the_first_answer_is_returned_and_goes_to_no_stream() -> None:
    transport = StreamableHttpTransport()
    asked = asyncio.create_task(transport.initialize(b"{}", b"1"))
    assert await transport.read_message() == b"{}"
    transport.write(line(id=1, result={"ok": True}))
    assert json.loads(await asked)["result"] == {"ok": True}
    stream = Events()
    transport.open_stream(None, stream)
    assert stream.messages == []


async def test_the_end_closes_every_stream_and_every_waiting_reader_learns_of_it() -> None:
    transport = StreamableHttpTransport()
    told: list[str] = []
    transport.on_read_end = lambda: told.append("over")
    stream = Events()
    transport.open_stream("s", stream)
    asked = asyncio.create_task(transport.initialize(b"{}", b"1"))
    await asyncio.sleep(0)
    transport.end()
    with pytest.raises(ConnectionError):
        await asked
    assert told == ["over"]
    assert stream.state == "ended"
    assert transport.disconnected
    assert await transport.read_message() is None
    transport.receive(b"late")
    assert await transport.read_message() is None
