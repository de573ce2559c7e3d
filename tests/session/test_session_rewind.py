"""Going back: files, conversation, or both; and back from there again."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from acp_agent.elicitation import Response
from acp_agent.errors import InvalidInputError, TurnRunsError
from acp_agent.events import (
    AgentText,
    AnyEvent,
    CheckpointMade,
    ConfigChanged,
    NoticeShown,
    Rewound,
    TitleChanged,
    TurnStarted,
)
from acp_agent.session.history import checkpoints
from acp_agent.session.history.checkpoint_files import RestoredFiles
from acp_agent.workspace.checkpoints.base import Deadline
from acp_agent.workspace.checkpoints.store import CheckpointStore
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.open_session import Desk, home_paths, open_desk, presses


def writes(path: str, content: str) -> Call:
    return Call("write", {"path": path, "content": content})


async def two_turns(desk: Desk, server: ModelServer) -> None:
    """A turn that writes one.txt, and one that changes it and makes two.txt."""
    server.add(answer(writes("one.txt", "1\n")), answer("Written."))
    await desk.say("Write one")
    server.add(
        answer(Call("shell", {"command": "echo 2 > one.txt; echo 2 > two.txt"})), answer("Changed.")
    )
    await desk.say("Change one")
    server.otherwise = answer("Yes.")
    await desk.session.resources.checkpoints.wait_saved()


def files(desk: Desk) -> dict[str, str]:
    return {path.name: path.read_text() for path in desk.folder.iterdir()}


def said(desk: Desk) -> list[str]:
    """The first lines of what the user's side said in the last request."""
    return [words.splitlines()[0] for words in desk.words()]


async def test_a_files_name_cannot_make_lines_of_its_own(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(writes("a`\n- `- important", "1")), answer("Written."))
    await desk.say("Write it")
    await desk.session.resources.checkpoints.wait_saved()
    await desk.say("/rewind 1")
    assert "a`\\n- `- important" in desk.editor.of(AgentText)[-1].text


async def test_files_are_saved_before_a_turns_first_write_and_at_its_end(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(
        answer(Call("shell", {"command": "ls"}), Call("glob", {"pattern": "*"})),
        answer("Nothing there."),
    )
    await desk.say("Look")
    model_server.add(
        answer(writes("a", "1"), writes("b", "1")), answer(writes("c", "1")), answer("Done.")
    )
    await desk.say("Write")
    await desk.session.resources.checkpoints.wait_saved()
    made = [event for event in await desk.journal() if isinstance(event, CheckpointMade)]
    assert [event.why for event in made] == ["turn", "turn_end"]
    assert made[0].trees != made[1].trees
    assert made[0].trees[0][0] == str(desk.folder.resolve())


async def test_conversation_and_files_go_back_and_forth(
    desk: Desk, model_server: ModelServer
) -> None:
    await two_turns(desk, model_server)
    after = files(desk)
    await desk.say("Three")
    messages = list(desk.session.core.context.messages)
    options, title = desk.session.core.settings.options(), desk.session.core.state.title

    await desk.say("/rewind 2 both")
    assert files(desk) == {"one.txt": "1\n"}
    await desk.say("Something else")
    assert said(desk) == ["Write one", "Something else"]
    (rewound,) = desk.editor.of(Rewound)
    assert (rewound.title, rewound.changed) == ("Change one", 2)
    assert desk.session.core.settings.options() == options
    assert desk.session.core.state.title == title

    points = await desk.session.resources.rewinder.points()
    assert [(point.kind, point.title, point.current) for point in points] == [
        ("message", "Write one", True),
        ("message", "Change one", False),
        ("message", "Three", False),
        ("rewind", "Change one", True),
        ("message", "Something else", True),
    ]
    await desk.say("/rewind 4 both")  # the undo
    assert files(desk) == after
    assert list(desk.session.core.context.messages) == messages
    await desk.say("Go on")
    assert said(desk) == ["Write one", "Change one", "Three", "Go on"]

    await desk.say("/rewind 5 conversation")  # to what was said on the other branch
    await desk.say("Again")
    assert said(desk) == ["Write one", "Again"]
    assert files(desk) == after


async def test_context_sent_with_a_prompt_is_sent_again_after_a_rewind(
    desk: Desk, model_server: ModelServer
) -> None:
    await two_turns(desk, model_server)
    await desk.say("/rewind 1 conversation")
    await desk.say("Write another")
    assert "Today is" in desk.words()[-1]


async def test_an_undo_says_that_it_restores_the_state_before_the_rewind(
    desk: Desk, model_server: ModelServer
) -> None:
    await two_turns(desk, model_server)
    await desk.say("/rewind 2 both")
    await desk.say("/rewind 3")
    name = "before 3, rewind to before “Change one”"
    assert f"Preview of going back to {name}:" in desk.editor.of(AgentText)[-1].text
    await desk.say("/rewind 3 both")
    assert f"The conversation was rewound to {name}." in desk.editor.of(AgentText)[-1].text


async def test_after_a_restart_the_model_is_sent_the_same(
    desk: Desk, model_server: ModelServer, tmp_path: Path
) -> None:
    await two_turns(desk, model_server)
    await desk.say("/rewind 2 conversation")
    await desk.say("Next")
    before = list(desk.session.core.context.messages)
    session, folder = desk.session.id, str(desk.folder)
    await desk.manager.close(session, desk.editor)
    again = await desk.manager.open(session, folder, [])
    assert list(again.core.context.messages) == before
    again.attach(desk.editor)
    desk._session = again
    await desk.say("/rewind 1 files")
    assert files(desk) == {}


async def test_files_alone_go_back_and_the_model_still_knows(
    desk: Desk, model_server: ModelServer
) -> None:
    await two_turns(desk, model_server)
    await desk.say("/rewind 2 files")
    assert files(desk) == {"one.txt": "1\n"}
    await desk.say("And?")
    assert said(desk) == ["Write one", "Change one", "And?"]


async def test_a_preview_shows_the_changes_and_those_of_others(
    desk: Desk, model_server: ModelServer
) -> None:
    await two_turns(desk, model_server)
    (desk.folder / "mine.txt").write_text("the user's\n")
    (desk.folder / "two.txt").write_text("the user's, too\n")
    before = files(desk)
    back = await desk.session.resources.rewinder.preview("2", "both")
    assert [(one.path, one.change, one.by_others) for one in back.files.changes] == [
        ("one.txt", "modify", False)
    ]
    assert [(one.path, one.by_others) for one in back.files.unchanged] == [
        ("mine.txt", True),
        ("two.txt", True),
    ]
    assert files(desk) == before
    await desk.say("/rewind 2")
    shown = desk.editor.of(AgentText)[-1].text
    assert "`~ one.txt`" in shown
    assert "- `mine.txt` is left unchanged: someone else changed it since" in shown
    assert "`/rewind 2 both --force`" in shown
    await desk.say("/rewind 2 --force")
    assert "`- mine.txt (changed by someone else)`" in desk.editor.of(AgentText)[-1].text
    assert files(desk) == before
    await desk.say("/rewind 2 files --force")
    assert files(desk) == {"one.txt": "1\n"}
    await desk.say("/rewind 3 files")
    assert files(desk) == before


async def test_two_sessions_in_one_folder_see_each_others_changes(
    desk: Desk, model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.add(answer(writes("a", "by one")), answer("Done."))
    await desk.say("One writes")
    await desk.session.resources.checkpoints.wait_saved()
    first = desk.session
    other = await desk.manager.create(str(desk.folder), [], desk.editor)
    desk._session = other
    model_server.add(
        answer(Call("shell", {"command": "echo changed > a; echo new > b"})), answer("Done.")
    )
    await desk.say("Other writes")
    await other.resources.checkpoints.wait_saved()
    back = await first.resources.rewinder.preview("1", "files", force=True)
    assert [(one.path, one.change, one.by_others) for one in back.files.changes] == [
        ("a", "delete", True),
        ("b", "delete", True),
    ]
    await first.resources.rewinder.rewind("1", "files")
    assert files(desk) == {"a": "changed\n", "b": "new\n"}
    await first.resources.rewinder.rewind("1", "files", force=True)
    assert files(desk) == {}
    await other.resources.rewinder.rewind("1", "files", force=True)
    assert files(desk) == {"a": "by one"}


async def test_no_file_is_restored_while_a_turn_runs(desk: Desk, model_server: ModelServer) -> None:
    await two_turns(desk, model_server)
    stall = Stall()
    model_server.add(answer("Wait", stall, " for it."))
    turn = await desk.begin("Think")
    with pytest.raises(TurnRunsError, match="stop it"):
        await desk.session.rewind("1", "both")
    before = files(desk)
    assert await desk.begin("/rewind 1 both") is turn
    stall.release()
    assert await turn.result() == "end_turn"
    assert "A turn is running." in str(desk.editor.shown)
    assert files(desk) == before
    assert desk.editor.of(Rewound) == []
    assert len(desk.session.core.context.messages) == 10


async def test_a_prompt_during_a_rewind_is_handled_after_it(
    desk: Desk, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two_turns(desk, model_server)
    rewinder = desk.session.resources.rewinder
    restore, going, go_on = rewinder._checkpoints.restore, asyncio.Event(), asyncio.Event()

    async def slowly(checkpoint: str, history: Sequence[AnyEvent], *, force: bool) -> RestoredFiles:
        going.set()
        await go_on.wait()
        return await restore(checkpoint, history, force=force)

    monkeypatch.setattr(rewinder._checkpoints, "restore", slowly)
    back = asyncio.create_task(desk.session.rewind("2", "both"))
    await going.wait()
    saying = asyncio.create_task(desk.say("And now?"))
    await asyncio.sleep(0)
    go_on.set()
    await back
    assert await saying == "end_turn"
    events = [type(event) for event in await desk.journal()]
    assert events.index(Rewound) < len(events) - events[::-1].index(TurnStarted)
    assert said(desk) == ["Write one", "And now?"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("/rewind 9", "There is no point '9'"),
        ("/rewind 9 both", "There is no point '9'"),
        ("/rewind 1 everything", "'everything' cannot go back"),
        ("/rewind 1 files now", "'files now' cannot go back"),
        ("/rewind 3 files", "No files are saved for the point 3"),
    ],
)
async def test_an_impossible_request_is_reported_and_changes_nothing(
    words: str, told: str, desk: Desk, model_server: ModelServer
) -> None:
    await two_turns(desk, model_server)
    await desk.say("Three")
    before, messages = files(desk), list(desk.session.core.context.messages)
    assert await desk.say(words) == "end_turn"
    assert told in str(desk.editor.shown[-5:])
    assert files(desk) == before
    assert list(desk.session.core.context.messages) == messages


async def test_the_point_to_go_back_to_is_picked_in_a_form_where_the_client_has_forms(
    desk: Desk, model_server: ModelServer
) -> None:
    await two_turns(desk, model_server)
    before = files(desk)
    desk.editor.filled = Response(action="decline")
    await desk.say("/rewind")
    assert "Nothing was changed." in str(desk.editor.shown[-4:])
    assert files(desk) == before
    point = desk.editor.forms[-1].schema["properties"]["point"]
    assert point["oneOf"][0]["title"].startswith("2: ")  # the newest first
    desk.editor.filled = Response(action="accept", content={"point": "1", "what": "both"})
    await desk.say("/rewind")
    assert files(desk) != before
    assert "rewound to before 1" in desk.editor.of(AgentText)[-1].text


async def test_a_session_without_messages_has_nothing_to_rewind_to(desk: Desk) -> None:
    await desk.say("/rewind")
    assert "no points to go back to" in str(desk.editor.shown)
    with pytest.raises(InvalidInputError):
        await desk.session.rewind("1", "both")


async def test_files_that_are_not_saved_are_named(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = "[checkpoints]\nmax_file_bytes = 1000\n"
    async with open_desk(tmp_path, model_server, config=config) as desk:
        (desk.folder / "big").write_text("x" * 2000)
        await two_turns(desk, model_server)
        made = [event for event in await desk.journal() if isinstance(event, CheckpointMade)]
        assert made[0].left_out == ("big",)
        assert made[0].left_out_count == 1


async def test_a_rewind_names_a_few_of_the_unsaved_files(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = "[checkpoints]\nmax_file_bytes = 1000\n"
    async with open_desk(tmp_path, model_server, config=config) as desk:
        (desk.folder / ".gitignore").write_text("*.log\nbuild/\n")
        (desk.folder / "big").write_text("x" * 2000)
        (desk.folder / "build").mkdir()
        (desk.folder / "build" / "out").write_text("made")
        for number in range(30):
            (desk.folder / f"{number:02}.log").write_text("a line")
        await two_turns(desk, model_server)
        (desk.folder / "big").unlink()
        for words in ("/rewind", "/rewind 1", "/rewind 1 files"):
            await desk.say(words)
            told = desk.editor.of(AgentText)[-1].text
            assert "Not saved, and never changed: `big` (too large), `00.log` (ignored)" in told
            assert "`08.log` (ignored) and 22 more" in told
        back = await desk.session.resources.rewinder.preview("1", "files")
        assert (len(back.not_saved.files), back.not_saved.count) == (20, 32)
        back = await desk.session.resources.rewinder.preview("1", "conversation")
        assert back.not_saved.count == 0


@pytest.mark.parametrize(
    ("config", "told"),
    [("max_files = 1", "more than 1 files"), ("enabled = false", None)],
)
async def test_a_folder_that_cannot_be_saved_is_reported_once_and_the_work_continues(
    config: str, told: str | None, tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=f"[checkpoints]\n{config}\n") as desk:
        (desk.folder / "a").write_text("1")
        (desk.folder / "b").write_text("1")
        await two_turns(desk, model_server)
        assert files(desk)["two.txt"] == "2\n"
        notices = [one for one in desk.editor.of(NoticeShown) if "cannot be restored" in one.title]
        assert len(notices) == (0 if told is None else 1)
        assert all((told or "") in one.description for one in notices)
        assert not any(made.checkpoint for made in desk.editor.of(CheckpointMade))
        await desk.say("/rewind 2 both")
        await desk.say("Next")
        assert said(desk) == ["Write one", "Next"]


async def test_a_turn_without_saved_files_is_no_point_to_restore_files(
    desk: Desk, tmp_path: Path, model_server: ModelServer
) -> None:
    (desk.folder / "a").write_text("precious")
    place = home_paths(tmp_path).checkpoints_dir
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("in the way")
    model_server.add(answer(Call("shell", {"command": "rm a"})), answer("Removed."))
    await desk.say("Remove it")
    place.unlink()
    await two_turns(desk, model_server)
    points = await desk.session.resources.rewinder.points()
    assert [bool(point.files) for point in points] == [False, True, True]
    await desk.say("/rewind 1 files")
    assert "No files are saved for the point 1." in desk.editor.of(AgentText)[-1].text


async def test_a_folder_that_another_session_locked_for_too_long_is_saved_later(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "RETRY_SECONDS", 0.0)
    async with open_desk(tmp_path, model_server) as desk:
        other = CheckpointStore(home_paths(tmp_path).checkpoints_dir, desk.folder.resolve())
        with other.locked(Deadline(10)), monkeypatch.context() as impatient:
            # Here alone: on a busy machine git itself may take longer than this.
            impatient.setattr(checkpoints, "Deadline", lambda _: Deadline(0.2))
            model_server.add(answer(writes("zero.txt", "0\n")), answer("Written."))
            await desk.say("Write zero")
        await two_turns(desk, model_server)
        points = await desk.session.resources.rewinder.points()
        assert [bool(point.files) for point in points] == [False, True, True]


async def test_a_rewind_without_saved_files_reports_no_restore(
    desk: Desk, model_server: ModelServer, tmp_path: Path
) -> None:
    await two_turns(desk, model_server)
    await asyncio.to_thread(shutil.rmtree, home_paths(tmp_path).checkpoints_dir)
    await desk.say("/rewind 1")
    assert (
        "- no files are saved for this point; they stay unchanged"
        in desk.editor.of(AgentText)[-1].text
    )
    await desk.say("/rewind 1 both")
    told = desk.editor.of(AgentText)[-1].text
    assert "The files are unchanged: none are saved for this point." in told
    assert "No file was changed" not in told
    assert files(desk) == {"one.txt": "2\n", "two.txt": "2\n"}


async def test_a_cancelled_turn_leaves_no_work_behind(
    desk: Desk, model_server: ModelServer
) -> None:
    for number in range(300):
        (desk.folder / f"f{number}").write_text("x" * number)
    desk.editor.decide = presses("allow_once")
    model_server.add(answer(writes("a", "1")), answer("Done."))
    turn = await desk.begin("Write")
    await desk.editor.until_asked()
    assert await desk.cancel(turn) == "cancelled"
    await asyncio.wait_for(desk.session.resources.checkpoints.wait_saved(), 60)
    model_server.add(answer(writes("b", "1")), answer("Done."))
    assert await desk.say("Write again") == "end_turn"
    await desk.session.resources.checkpoints.wait_saved()
    await desk.say("/rewind 2 files")
    assert not (desk.folder / "b").exists()


async def test_a_rewind_keeps_title_and_options_and_writes_no_event_for_them(
    desk: Desk, model_server: ModelServer
) -> None:
    await two_turns(desk, model_server)
    before = len(await desk.journal())
    await desk.session.rewind("2", "both")
    added = (await desk.journal())[before:]
    assert not any(isinstance(event, TitleChanged | ConfigChanged) for event in added)
    assert [type(event).__name__ for event in added] == [
        "CheckpointMade",
        "CheckpointMade",
        "Rewound",
    ]


async def test_files_replaced_by_an_interrupted_restore_can_be_restored(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server) as desk:
        await two_turns(desk, model_server)
        now = files(desk)
        first = (await desk.session.resources.rewinder.points())[0]
        # All of a restore but the event that tells of its end, as a kill leaves it.
        await desk.session.resources.checkpoints.restore(
            first.files, await desk.session.core.history()
        )
        assert files(desk) == {}
        *_, point = await desk.session.resources.rewinder.points()
        assert (point.kind, bool(point.files)) == ("restore", True)
        with pytest.raises(InvalidInputError):
            await desk.session.rewind(point.id, "conversation")
        assert (await desk.session.rewind(point.id, "both")).scope == "files"
        assert files(desk) == now
        await desk.say("And now?")
        assert [one.kind for one in await desk.session.resources.rewinder.points()] == [
            "message",
            "message",
            "restore",
            "rewind",
            "message",
        ]


async def test_what_a_restore_that_was_cut_off_replaced_stays_a_point_however_one_continues(
    desk: Desk, model_server: ModelServer
) -> None:
    await two_turns(desk, model_server)
    now = files(desk)
    rewinder = desk.session.resources.rewinder
    first = (await rewinder.points())[0]
    await desk.session.resources.checkpoints.restore(first.files, await desk.session.core.history())
    *_, cut_off = await rewinder.points()
    await rewinder.rewind(first.id, "both")  # no file has to be changed any more
    await rewinder.rewind(cut_off.id, "files")
    assert files(desk) == now
