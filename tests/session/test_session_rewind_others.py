"""Going back leaves unchanged what the user, or anyone else, changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from acp_agent.elicitation import Response
from acp_agent.events import AgentText, CheckpointMade, Rewound, TurnEnded
from acp_agent.session.history.checkpoints import Checkpoints
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.open_session import Desk, open_desk

OTHERS = "someone else changed it since"
UNKNOWN = "it is not known who changed it since"


@pytest.fixture
async def shared_desk(tmp_path: Path, model_server: ModelServer) -> AsyncIterator[Desk]:
    """A session in a folder with files of the user."""
    async with open_desk(tmp_path, model_server) as desk:
        (desk.folder / "theirs.txt").write_text("theirs\n")
        (desk.folder / "shared.txt").write_text("before\n")
        (desk.folder / ".gitignore").write_text("*.log\n")
        yield desk


def write(path: str, content: str) -> Call:
    return Call("write", {"path": path, "content": content})


def shell(command: str) -> Call:
    return Call("shell", {"command": command})


async def turn(desk: Desk, server: ModelServer, *calls: Call) -> None:
    server.add(answer(*calls), answer("Done."))
    assert await desk.say("Work") == "end_turn"


async def agent_works(desk: Desk, server: ModelServer) -> None:
    """A turn that runs a command, after which anything could be the turn's."""
    await turn(desk, server, shell("echo agent > made.txt; echo agent > shared.txt"))


def tree(desk: Desk) -> dict[str, str]:
    return {
        path.name: path.read_text()
        for path in sorted(desk.folder.iterdir())
        if path.name != ".gitignore"
    }


def answered(desk: Desk) -> str:
    return desk.editor.of(AgentText)[-1].text


BEFORE = {"shared.txt": "before\n", "theirs.txt": "theirs\n"}


def creates(folder: Path) -> dict[str, str]:
    (folder / "mine.txt").write_text("mine\n")
    return {"mine.txt": "mine\n"}


def edits(folder: Path) -> dict[str, str]:
    (folder / "theirs.txt").write_text("my edit\n")
    return {"theirs.txt": "my edit\n"}


def edits_what_the_agent_edited(folder: Path) -> dict[str, str]:
    (folder / "shared.txt").write_text("agent\nand me\n")
    return {"shared.txt": "agent\nand me\n"}


def edits_what_the_agent_made(folder: Path) -> dict[str, str]:
    (folder / "made.txt").write_text("agent\nand me\n")
    return {"made.txt": "agent\nand me\n"}


def deletes(folder: Path) -> dict[str, str]:
    (folder / "theirs.txt").unlink()
    return {"theirs.txt": ""}


def renames(folder: Path) -> dict[str, str]:
    (folder / "shared.txt").rename(folder / "renamed.txt")
    return {"shared.txt": "", "renamed.txt": "agent\n"}


CHANGES = pytest.mark.parametrize(
    "change",
    [creates, edits, edits_what_the_agent_edited, edits_what_the_agent_made, deletes, renames],
)


@CHANGES
@pytest.mark.parametrize("what", ["files", "both"])
async def test_files_that_the_user_changed_after_the_turn_stay_and_are_named(
    what: str,
    change: Callable[[Path], dict[str, str]],
    shared_desk: Desk,
    model_server: ModelServer,
) -> None:
    await agent_works(shared_desk, model_server)
    left = change(shared_desk.folder)  # at once: nothing is waited for
    await shared_desk.say(f"/rewind 1 {what}")
    expected = {name: text for name, text in (BEFORE | left).items() if text}
    assert tree(shared_desk) == expected
    for name in left:
        assert f"- `{name}` is left unchanged: {OTHERS}" in answered(shared_desk)
    assert "`/rewind 1 files --force`" in answered(shared_desk)
    assert "kept" not in answered(shared_desk)


@CHANGES
async def test_a_forced_rewind_also_restores_files_and_can_be_undone(
    change: Callable[[Path], dict[str, str]], shared_desk: Desk, model_server: ModelServer
) -> None:
    await agent_works(shared_desk, model_server)
    change(shared_desk.folder)
    changed = tree(shared_desk)
    await shared_desk.say("/rewind 1 files --force")
    assert tree(shared_desk) == BEFORE
    await shared_desk.say("/rewind 2 files")
    assert tree(shared_desk) == changed


async def test_the_end_of_a_turn_is_sent_after_its_files_are_saved(
    desk: Desk, model_server: ModelServer
) -> None:
    await turn(desk, model_server, shell("echo agent > made.txt"))
    kinds = [type(event) for event in await desk.journal()]
    assert kinds.index(TurnEnded) > len(kinds) - 1 - kinds[::-1].index(CheckpointMade)


async def test_files_that_the_user_changed_between_two_turns_stay(
    shared_desk: Desk, model_server: ModelServer
) -> None:
    await agent_works(shared_desk, model_server)
    creates(shared_desk.folder)
    edits(shared_desk.folder)
    await turn(shared_desk, model_server, shell("echo more > more.txt; echo more >> theirs.txt"))
    await shared_desk.say("/rewind 2 files")  # all that has happened since is the agent's
    assert tree(shared_desk) == BEFORE | {
        "made.txt": "agent\n",
        "shared.txt": "agent\n",
        "mine.txt": "mine\n",
        "theirs.txt": "my edit\n",
    }
    await shared_desk.say("/rewind 1 files")
    assert tree(shared_desk) == BEFORE | {"mine.txt": "mine\n", "theirs.txt": "my edit\n"}


async def test_a_file_restored_by_force_is_the_agents_after_its_next_change(
    shared_desk: Desk, model_server: ModelServer
) -> None:
    await agent_works(shared_desk, model_server)
    edits_what_the_agent_edited(shared_desk.folder)
    await shared_desk.say("/rewind 1 files --force")
    await turn(shared_desk, model_server, shell("echo again > shared.txt"))
    await shared_desk.say("/rewind 1 files")
    assert tree(shared_desk) == BEFORE


async def test_ignored_files_are_never_changed(
    shared_desk: Desk, model_server: ModelServer
) -> None:
    (shared_desk.folder / "a.log").write_text("old")
    await turn(shared_desk, model_server, shell("echo agent > made.txt; echo agent > b.log"))
    (shared_desk.folder / "a.log").write_text("mine")
    await shared_desk.say("/rewind 1 files --force")
    assert tree(shared_desk) == BEFORE | {"a.log": "mine", "b.log": "agent\n"}


async def test_where_only_tools_for_files_wrote_what_the_user_did_in_the_turn_is_the_users(
    shared_desk: Desk, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(
        answer(write("made.txt", "agent\n"), write("second.txt", "agent\n")),
        answer("One moment", stall, "."),
    )
    work = await shared_desk.begin("Work")
    await stall.reached.wait()
    creates(shared_desk.folder)
    edits_what_the_agent_made(shared_desk.folder)
    stall.release()
    assert await work.result() == "end_turn"
    await shared_desk.say("/rewind 1 files")
    assert tree(shared_desk) == BEFORE | {"mine.txt": "mine\n", "made.txt": "agent\nand me\n"}
    assert f"- `made.txt` is left unchanged: {OTHERS}" in answered(shared_desk)


async def test_files_that_a_patch_deletes_and_renames_go_back(
    shared_desk: Desk, model_server: ModelServer
) -> None:
    patch = (
        "*** Begin Patch\n*** Delete File: theirs.txt\n"
        "*** Update File: shared.txt\n*** Move to: moved.txt\n*** End Patch"
    )
    await turn(shared_desk, model_server, Call("apply_patch", {"input": patch}))
    assert tree(shared_desk) == {"moved.txt": "before\n"}
    creates(shared_desk.folder)
    await shared_desk.say("/rewind 1 files")
    assert tree(shared_desk) == BEFORE | {"mine.txt": "mine\n"}


async def test_without_a_saved_turn_end_only_files_of_the_tools_are_restored(
    shared_desk: Desk, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(self: Checkpoints, seconds: float) -> None:
        """As where the folder is too large, or the process dies."""

    monkeypatch.setattr(Checkpoints, "_save_end", never)
    await turn(
        shared_desk, model_server, write("made.txt", "agent\n"), shell("echo agent > shared.txt")
    )
    creates(shared_desk.folder)
    await shared_desk.say("/rewind 1 files")
    assert tree(shared_desk) == BEFORE | {"shared.txt": "agent\n", "mine.txt": "mine\n"}
    for name in ("shared.txt", "mine.txt"):
        assert f"- `{name}` is left unchanged: {UNKNOWN}" in answered(shared_desk)


async def test_a_fork_leaves_unchanged_what_others_than_its_source_changed(
    shared_desk: Desk, model_server: ModelServer
) -> None:
    await agent_works(shared_desk, model_server)
    creates(shared_desk.folder)
    source = shared_desk.session
    shared_desk._session = await shared_desk.manager.fork(
        source.id, str(shared_desk.folder), [], shared_desk.editor
    )
    model_server.add(answer(shell("echo source > theirs.txt")), answer("Done."))
    shared_desk._session, fork = source, shared_desk._session
    await shared_desk.say("The source goes on")
    await fork.resources.rewinder.rewind("1", "files")
    assert tree(shared_desk) == BEFORE | {"mine.txt": "mine\n", "theirs.txt": "source\n"}


async def test_the_models_own_return_leaves_the_users_files_unchanged_and_names_them(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = "mode = 'full'\n[checkpoints]\nrewind_tool = true\n"
    async with open_desk(tmp_path, model_server, config=config) as desk:
        (desk.folder / "theirs.txt").write_text("theirs\n")
        await turn(desk, model_server, shell("echo 1 > one.txt"))
        creates(desk.folder)
        edits(desk.folder)
        model_server.add(
            answer(shell("echo 2 > two.txt; echo 2 > one.txt")),
            answer(Call("rewind", {"message": "Try again.", "point": 1, "files": True})),
            answer("Better."),
        )
        await desk.say("Go on")
        assert tree(desk) == {"mine.txt": "mine\n", "theirs.txt": "my edit\n"}
        (rewound,) = desk.editor.of(Rewound)
        assert f"Left unchanged: mine.txt ({OTHERS}), theirs.txt ({OTHERS})." in rewound.note
        assert "Restored 2 files" in rewound.note


@pytest.mark.parametrize(
    ("response", "restored"),
    [
        (Response(action="accept", content={"restore": True}), True),
        (Response(action="accept", content={"restore": False}), False),
        (Response(action="decline"), None),
        (Response(action="cancel"), None),
    ],
)
async def test_a_client_with_forms_asks_whether_what_others_changed_is_restored(
    response: Response, restored: bool | None, desk: Desk, model_server: ModelServer
) -> None:
    await turn(desk, model_server, shell("echo agent > made.txt"))
    creates(desk.folder)
    before = tree(desk)
    desk.editor.filled = response
    await desk.say("/rewind 1 both")
    (form,) = desk.editor.forms
    assert "mine.txt" in form.message
    if restored is None:
        assert tree(desk) == before
        assert answered(desk) == "Nothing was changed."
        assert desk.editor.of(Rewound) == []
    else:
        assert tree(desk) == ({} if restored else {"mine.txt": "mine\n"})


async def test_no_question_is_asked_if_all_changes_are_the_agents(
    desk: Desk, model_server: ModelServer
) -> None:
    await turn(desk, model_server, shell("echo agent > made.txt"))
    desk.editor.filled = Response(action="cancel")
    await desk.say("/rewind 1 both")
    assert desk.editor.forms == []
    assert tree(desk) == {}
