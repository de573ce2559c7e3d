"""Calls that do not concern each other run side by side, and nobody can tell by what they did."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

import pytest
from hypothesis import example, given, settings, strategies as st

from acp_agent.agent.call_permissions import NOT_BEGUN
from acp_agent.agent.resources import PermissionRequest
from acp_agent.content import TextBlock
from acp_agent.errors import WorkspaceError
from acp_agent.events import NoticeShown, PermissionAsked, ToolEnded, ToolKind, ToolStarted
from acp_agent.permissions.access import Ask, McpAccess
from acp_agent.session.turns.parts import CALLS_WAIT, TurnTools
from acp_agent.tools.base import (
    EVERYTHING,
    NOTHING,
    NOTHING_IF_GRANTED,
    Outcome,
    Prepared,
    Progress,
    Tool,
    ToolParams,
    Touches,
    conflict,
)
from acp_agent.tools.toolset import Toolset
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import MODEL, Desk, never_answers, open_desk, presses

FULL = 'mode = "full"\n'
# Nothing is said of loops: what is made one by one may be one.
ALIKE = f"{FULL}[limits]\nloop_warn_after = 0\nloop_ask_after = 0\nloop_stop_after = 0\n"


class MeetingWrites:
    """An editor's files; writes wait until so many are under way at once."""

    can_read = True
    can_write = True

    def __init__(self, parties: int) -> None:
        self._meeting = asyncio.Barrier(parties)

    async def read_text(self, path: Path, *, lines: int | None = None) -> str:
        if not path.exists():
            raise WorkspaceError("no such file")
        return path.read_text()

    async def write_text(self, path: Path, text: str) -> None:
        async with asyncio.timeout(60):
            await self._meeting.wait()
        path.write_text(text)


def write(name: str, text: str = "x\n") -> Call:
    return Call("write", {"path": name, "content": text})


def shell(command: str) -> Call:
    return Call("shell", {"command": command})


# -- what conflicts --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (Touches(reads=("/a",)), Touches(reads=("/a",)), False),
        (Touches(reads=("/a",)), Touches(writes=("/a",)), True),
        (Touches(writes=("/a",)), Touches(writes=("/ab",)), False),
        (Touches(writes=("/a",)), Touches(writes=("/a/b",)), True),
        (Touches(reads=("/",)), Touches(writes=("/a/b",)), True),
        (Touches(reads=("/",)), Touches(writes=("plan",)), False),
        (Touches(writes=("/Readme",)), Touches(reads=("/README",)), True),
        (EVERYTHING, NOTHING, True),
        (NOTHING, Touches(writes=("/a",)), False),
    ],
)
def test_two_calls_conflict_if_one_writes_a_file_that_the_other_uses(
    one: Touches, other: Touches, expected: bool
) -> None:
    assert conflict(one, other) is expected
    assert conflict(other, one) is expected


# -- in which order they run -----------------------------------------------------------------


async def test_writes_to_different_files_run_side_by_side(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=FULL) as desk:
        desk.editor.files = MeetingWrites(3)
        model_server.add(answer(write("a"), write("b"), write("sub/c")), answer("Done."))
        assert await desk.say("Write them") == "end_turn"
        assert not any(ended.failed for ended in desk.editor.of(ToolEnded))


async def test_a_command_waits_for_all_calls_before_it_and_all_after_it_wait_for_it(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=FULL) as desk:
        model_server.add(
            answer(write("a", "one\n"), write("b", "two\n"), shell("cat a b > c"), write("d")),
            answer("Done."),
        )
        assert await desk.say("Go") == "end_turn"
        assert (desk.folder / "c").read_text() == "one\ntwo\n"
        order = [event for event in desk.editor.shown if isinstance(event, ToolStarted | ToolEnded)]
        command = order.index(next(event for event in order if event.call == order[4].call))
        assert [type(event) for event in order[command:]] == [ToolStarted, ToolEnded] * 2


async def test_a_waiting_call_does_not_block_independent_ones(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=FULL) as desk:
        # Both writes have to be under way at once; the read of `a` between them has to wait.
        desk.editor.files = MeetingWrites(2)
        model_server.add(
            answer(write("a", "new\n"), Call("read", {"path": "a"}), write("b")), answer("Done.")
        )
        assert await desk.say("Go") == "end_turn"
        assert "new" in desk.results()[1]
        assert not any(ended.failed for ended in desk.editor.of(ToolEnded))


async def test_questions_come_in_the_order_of_the_calls_and_one_at_a_time(
    desk: Desk, model_server: ModelServer
) -> None:
    names = [f"f{number}" for number in range(4)]
    open_questions = most = 0

    async def slowly(asking: PermissionRequest, ask: Ask) -> str | None:
        nonlocal open_questions, most
        open_questions += 1
        most = max(most, open_questions)
        for _ in range(5):
            await asyncio.sleep(0)
        open_questions -= 1
        return "allow_once"

    desk.editor.decide = slowly
    model_server.add(answer(*map(write, names)), answer("Done."))
    await desk.say("Write them")
    assert most == 1
    assert [asking.title for asking in desk.editor.asked] == [f"Create {name}" for name in names]


async def test_an_always_answers_the_questions_of_later_calls(
    desk: Desk, model_server: ModelServer
) -> None:
    desk.editor.decide = presses("allow_always")
    model_server.add(answer(write("a"), write("b")), answer("Done."))
    await desk.say("Write them")
    assert len(desk.editor.of(PermissionAsked)) == 1
    assert (desk.folder / "b").exists()


async def test_a_question_about_one_file_does_not_block_reading_another(
    desk: Desk, model_server: ModelServer
) -> None:
    (desk.folder / "b").write_text("text of b\n")
    desk.editor.decide = never_answers
    model_server.add(answer(write("a"), Call("read", {"path": "b"})))
    turn = await desk.begin("Go")
    ended = await desk.editor.until(ToolEnded)
    assert "text of b" in ended.result
    await desk.cancel(turn)


# -- tools of others -------------------------------------------------------------------------


class Believed(Tool[ToolParams]):
    """A tool of a server that says it changes nothing; its calls wait for so many at once."""

    name: ClassVar[str] = "look"
    kind: ClassVar[ToolKind] = "read"
    effect: ClassVar[Literal["reads", "writes"]] = "reads"
    params: ClassVar[type[ToolParams]] = ToolParams
    meeting: ClassVar[asyncio.Barrier | None] = None

    @classmethod
    def description(cls) -> str:
        return "Looks."

    def touches(self, params: ToolParams) -> Touches:
        return NOTHING_IF_GRANTED

    async def prepare(self, params: ToolParams) -> Prepared:
        async def run(_: Progress) -> Outcome:
            if self.meeting is not None:
                async with asyncio.timeout(60):
                    await self.meeting.wait()
            return Outcome(text="looked")

        access = McpAccess(server="s", tool="look", identity="i", definition="d", read_only=True)
        return Prepared(title="Look", run=run, access=access)


async def test_the_read_only_hint_of_a_server_counts_once_its_tool_is_always_allowed(
    desk: Desk, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def toolset(tools: TurnTools) -> Toolset:
        return tools.unfiltered.with_tools([Believed(tools.workspace)])

    monkeypatch.setattr(TurnTools, "toolset", property(toolset))
    look = Call("look", {})
    model_server.add(answer(look, look), answer("Done."))
    await desk.say("Look")
    order = [
        type(event) for event in desk.editor.shown if isinstance(event, PermissionAsked | ToolEnded)
    ]
    assert order == [PermissionAsked, ToolEnded] * 2  # one by one, while its word is nothing
    desk.editor.decide = presses("allow_always")
    model_server.add(answer(look), answer("Done."))
    await desk.say("Look")
    monkeypatch.setattr(Believed, "meeting", asyncio.Barrier(2))
    desk.editor.shown.clear()
    model_server.add(answer(look, look), answer("Done."))
    await desk.say("Look twice")
    assert not any(ended.failed for ended in desk.editor.of(ToolEnded))


# -- refusals --------------------------------------------------------------------------------


async def test_a_setting_ends_the_turn_with_a_refused_call_and_runs_none_behind_it(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = "[limits]\nrefusal_ends_turn = true\n"
    async with open_desk(tmp_path, model_server, config=config) as desk:
        desk.editor.decide = presses("reject_once")
        model_server.add(answer(write("a"), shell("touch b")))
        assert await desk.say("Go") == "end_turn"
        assert len(model_server.requests) == 1
        assert len(desk.editor.asked) == 1
        assert desk.editor.of(ToolEnded)[1].result == NOT_BEGUN.model
        assert list(desk.folder.iterdir()) == []


# -- slots of the process --------------------------------------------------------------------


async def test_a_turn_waits_visibly_while_the_maximum_of_turns_runs(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = "[limits]\nmax_turns_all_sessions = 1\n"
    async with open_desk(tmp_path, model_server, config=config) as desk:
        desk.editor.decide = never_answers
        model_server.add(answer(write("a")))
        first = await desk.begin("Hold the slot")
        await desk.editor.until_asked()
        other = await desk.manager.create(str(desk.folder), [], desk.editor)
        said = await other.prompts.submit(_text("Me too"), cancelled=lambda: False)
        notice = await desk.editor.until(NoticeShown)
        assert "waiting" in notice.title
        assert len(model_server.requests) == 1
        model_server.add(answer("Now."))
        await desk.cancel(first)
        async with asyncio.timeout(60):
            assert await said.turn.result() == "end_turn"


async def test_summing_up_waits_for_a_slot_like_a_turn(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = f'small_model = "{MODEL}"\ntitles = "prompt"\n[limits]\nmax_turns_all_sessions = 1\n'
    async with open_desk(tmp_path, model_server, config=config) as desk:
        other = await desk.manager.create(str(desk.folder), [], desk.editor)
        model_server.add(answer("word " * 1_500))
        said = await other.prompts.submit(_text("word " * 1_500), cancelled=lambda: False)
        await said.turn.result()
        desk.editor.decide = never_answers
        model_server.add(answer(write("a")))
        first = await desk.begin("Hold the slot")
        await desk.editor.until_asked()
        said = await other.prompts.submit(_text("/compact"), cancelled=lambda: False)
        notice = await desk.editor.until(NoticeShown)
        assert "waiting" in notice.title
        assert len(model_server.requests) == 2
        model_server.add(answer("They said words."))
        await desk.cancel(first)
        async with asyncio.timeout(60):
            assert await said.turn.result() == "end_turn"
        assert len(model_server.requests) == 3


async def test_a_waiting_turn_can_be_cancelled_and_frees_its_slot(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = "[limits]\nmax_turns_all_sessions = 1\n"
    async with open_desk(tmp_path, model_server, config=config) as desk:
        desk.editor.decide = never_answers
        model_server.add(answer(write("a")))
        first = await desk.begin("Hold the slot")
        await desk.editor.until_asked()
        other = await desk.manager.create(str(desk.folder), [], desk.editor)
        said = await other.prompts.submit(_text("Me too"), cancelled=lambda: False)
        await desk.editor.until(NoticeShown)
        assert await desk.cancel(said.turn) == "cancelled"
        await desk.cancel(first)
        model_server.add(answer("Free again."))
        assert await desk.say("And now?") == "end_turn"


async def test_calls_of_all_sessions_share_the_slots_of_the_process_and_say_that_they_wait(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = f"{FULL}[limits]\nmax_calls_all_sessions = 1\n"
    async with open_desk(tmp_path, model_server, config=config) as desk:
        desk.editor.files = MeetingWrites(1)
        model_server.add(answer(*[write(f"f{number}") for number in range(4)]), answer("Done."))
        assert await desk.say("Write them") == "end_turn"
        order = [type(e) for e in desk.editor.shown if isinstance(e, ToolStarted | ToolEnded)]
        assert order == [ToolStarted, ToolEnded] * 4
        assert [event.title for event in desk.editor.of(NoticeShown)] == [CALLS_WAIT]


# -- the same as one by one ------------------------------------------------------------------

NAMES = ["a", "b", "dir/a", "dir", "link"]
_ADVICE = re.compile(r"(?<=; )(?:did you mean|find it with) .*")
CALLS = st.one_of(
    st.builds(write, st.sampled_from(NAMES), st.sampled_from(["one\n", "two\n", "one two\n"])),
    st.builds(
        lambda name, old, new: Call("edit", {"path": name, "old": old, "new": new}),
        st.sampled_from(NAMES),
        st.sampled_from(["one", "two"]),
        st.sampled_from(["two", "three"]),
    ),
    st.builds(
        lambda tool, name: Call(tool, {"path": name}),
        st.sampled_from(["read", "list"]),
        st.sampled_from(NAMES),
    ),
    st.builds(lambda text: Call("grep", {"pattern": text}), st.sampled_from(["one", "two"])),
    st.builds(
        shell,
        st.sampled_from(["cat a b >> c", "rm -f b", "ln -sf b link", "mv a b", "sleep 0.01"]),
    ),
)


@settings(max_examples=6)
@given(st.lists(CALLS, min_size=2, max_size=6))
@example([write("dir/a", "one\n"), Call("read", {"path": "dir"})])
@example([write("dir/a", "one\n"), Call("list", {"path": "dir"})])
async def test_parallel_calls_have_the_same_effect_as_sequential_ones(
    calls: Sequence[Call],
) -> None:
    assert await _done(calls, together=True) == await _done(calls, together=False)


async def _done(calls: Sequence[Call], *, together: bool) -> tuple[dict[str, str], list[str]]:
    """The files and the results of calls that were made in one answer, or in one answer each."""
    with tempfile.TemporaryDirectory() as folder:
        async with ModelServer() as server, open_desk(Path(folder), server, config=ALIKE) as desk:
            for name in ("a", "b"):
                (desk.folder / name).write_text("one\n")
            (desk.folder / "link").symlink_to("a")
            # What the model has seen it may replace.
            server.add(answer(Call("read", {"path": "a"}), Call("read", {"path": "b"})))
            rounds = [list(calls)] if together else [[call] for call in calls]
            server.add(*(answer(*batch) for batch in rounds), answer("Done."))
            assert await desk.say("Go") == "end_turn"
            files = {
                str(path.relative_to(desk.folder)): path.read_text()
                for path in sorted(desk.folder.rglob("*"))
                if path.is_file()
            }
            results = [result.replace(folder, "") for result in desk.results()]
            # What an error advises depends on the files that there are while it is written.
            return files, [_ADVICE.sub("", result) for result in results]


def _text(text: str) -> tuple[TextBlock, ...]:
    return (TextBlock(text=text),)


@pytest.mark.parametrize(
    ("command", "together"), [("sleep 0.3; cat a", True), ("sleep 0.1; cat a > b", False)]
)
async def test_commands_run_at_the_same_time_only_where_they_only_read(
    tmp_path: Path, model_server: ModelServer, command: str, together: bool
) -> None:
    async with open_desk(tmp_path, model_server, config=FULL) as desk:
        (desk.folder / "a").write_text("x\n")
        calls = (Call("shell", {"command": command}), Call("shell", {"command": f"{command} "}))
        model_server.add(answer(*calls), answer("Done."))
        await desk.say("Go")
        begun = [isinstance(event, ToolStarted) for event in desk.editor.shown
                 if isinstance(event, ToolStarted | ToolEnded)]  # fmt: skip
        assert begun == ([True, True, False, False] if together else [True, False, True, False])
