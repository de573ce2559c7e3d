"""In which order the calls of one answer run, and in which the model gets their results."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from acp_agent.errors import WorkspaceError
from acp_agent.events import PermissionAsked, ToolEnded, ToolStarted
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import Desk, presses


class MeetingBuffers:
    """An editor's files; reads of what is in `meeting` wait until so many are under way at once."""

    can_read = True
    can_write = False

    def __init__(self, *meeting: str, held: str = "") -> None:
        self._meeting = asyncio.Barrier(len(meeting)) if meeting else None
        self._names = set(meeting)
        self.held = held
        self.reached = asyncio.Event()
        self.release = asyncio.Event()

    async def read_text(self, path: Path, *, lines: int | None = None) -> str:
        if path.name in self._names:
            assert self._meeting is not None
            async with asyncio.timeout(60):
                await self._meeting.wait()
        if path.name == self.held:
            self.reached.set()
            await self.release.wait()
        if not path.exists():
            raise WorkspaceError("no such file")
        return path.read_text()

    async def write_text(self, path: Path, text: str) -> None:
        raise AssertionError("not offered")


def read(name: str) -> Call:
    return Call("read", {"path": name})


async def test_reads_of_one_answer_run_concurrently(desk: Desk, model_server: ModelServer) -> None:
    for name in "abc":
        (desk.folder / name).write_text(f"text of {name}\n")
    desk.editor.files = MeetingBuffers("a", "b", "c")
    model_server.add(answer(read("a"), read("b"), read("c")), answer("Done."))
    assert await desk.say("Read them") == "end_turn"
    assert not any(ended.failed for ended in desk.editor.of(ToolEnded))


async def test_results_go_back_in_the_order_of_the_calls_however_they_end(
    desk: Desk, model_server: ModelServer
) -> None:
    for name in ("slow", "quick"):
        (desk.folder / name).write_text(f"text of {name}\n")
    desk.editor.files = buffers = MeetingBuffers(held="slow")
    model_server.add(answer(read("slow"), read("quick")), answer("Done."))
    turn = await desk.begin("Read them")
    await desk.editor.until(ToolEnded)  # the quick one; the slow one is held
    buffers.release.set()
    await turn.result()
    first, second = desk.editor.of(ToolEnded)
    assert "quick" in first.result
    assert "slow" in second.result
    slow, quick = desk.results()
    assert "text of slow" in slow
    assert "text of quick" in quick


async def test_a_write_waits_for_the_reads_of_its_file_and_the_reads_after_it_see_it(
    desk: Desk, model_server: ModelServer
) -> None:
    (desk.folder / "a").write_text("old\n")
    desk.editor.files = buffers = MeetingBuffers()
    model_server.add(answer(read("a")), answer("Seen."))
    await desk.say("Look")  # a file that the model has not seen is not replaced
    desk.editor.shown.clear()
    buffers.held = "a"
    change = Call("write", {"path": "a", "content": "written\n"})
    model_server.add(answer(read("a"), change, read("a")), answer("Done."))
    turn = await desk.begin("Go")
    await buffers.reached.wait()
    # Time enough for a write that does not wait to get as far as its question.
    with pytest.raises(TimeoutError):
        await desk.editor.until(PermissionAsked, within=0.3)
    assert len(desk.editor.of(ToolStarted)) == 1
    buffers.release.set()
    await turn.result()
    started = [event.call for event in desk.editor.of(ToolStarted)]
    ended = [event.call for event in desk.editor.of(ToolEnded)]
    assert started == ended
    assert "written" in desk.results()[-1]


async def test_the_user_is_asked_about_one_call_at_a_time_in_their_order(
    desk: Desk, model_server: ModelServer
) -> None:
    calls = [Call("shell", {"command": f"touch made-{number}"}) for number in range(3)]
    desk.editor.decide = presses("allow_once")
    model_server.add(answer(*calls), answer("Done."))
    await desk.say("Make them")
    kinds = [
        type(event).__name__
        for event in desk.editor.shown
        if isinstance(event, PermissionAsked | ToolEnded)
    ]
    assert kinds == ["PermissionAsked", "ToolEnded"] * 3
    assert ["made-0" in asking.title for asking in desk.editor.asked] == [True, False, False]


async def test_the_number_of_concurrent_reads_is_limited(
    desk: Desk, model_server: ModelServer
) -> None:
    names = [f"f{number}" for number in range(9)]
    for name in names:
        (desk.folder / name).write_text("x\n")
    desk.editor.files = MeetingBuffers(*names[:8])  # eight at once are needed, and allowed
    model_server.add(answer(*map(read, names)), answer("Done."))
    await desk.say("Read them")
    order = [event for event in desk.editor.shown if isinstance(event, ToolStarted | ToolEnded)]
    assert all(isinstance(event, ToolStarted) for event in order[:8])
    assert isinstance(order[8], ToolEnded)
