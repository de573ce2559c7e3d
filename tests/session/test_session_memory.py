"""What a session remembers for later ones of its project."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from acp_agent.content import DiffPart, TextBlock
from acp_agent.events import AgentText
from tests.session.agent_and_skill import TASK, write_agent
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import SECRET, Desk, open_desk, presses

TEXT = "# How to build\nRun `make all` twice: the first run fails."


def memory(action: str, **fields: str) -> Call:
    return Call("memory", {"action": action, **fields})


SAVE = memory("save", name="build", text=TEXT)


def tools(server: ModelServer, request: int = -1) -> set[str]:
    return {tool["function"]["name"] for tool in server.requests[request].json["tools"]}


def system(server: ModelServer, request: int = -1) -> str:
    return str(server.requests[request].json["messages"][0]["content"])


async def say(desk: Desk, text: str = "Go") -> list[str]:
    """Say something in a new session of the project; the results that the model got."""
    session = await desk.manager.create(str(desk.folder), [], desk.editor)
    said = await session.prompts.submit((TextBlock(text=text),), cancelled=lambda: False)
    await said.turn.result()
    return desk.results()


def notes(tmp_path: Path) -> dict[str, str]:
    base = tmp_path / "acp-home" / "memory"
    return {str(one.relative_to(base)): one.read_text() for one in base.rglob("*.md")}


async def test_a_note_is_saved_after_approval_and_shown_to_later_sessions(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server) as desk:
        model_server.add(answer(SAVE), answer("Saved."), answer(memory("read", name="build")))
        model_server.otherwise = answer("Read.")
        assert "is saved" in (await say(desk))[-1]
        assert "Notes of earlier sessions" not in system(model_server, 0)
        assert [asking.title for asking in desk.editor.asked] == ["Save the note build"]
        (diff,) = desk.editor.asked[0].content
        assert isinstance(diff, DiffPart)
        assert diff.new_text == f"{TEXT}\n"
        ((file, text),) = notes(tmp_path).items()
        assert file.startswith("projects/project-")
        assert text == f"{TEXT}\n"
        assert await say(desk) == [f"{TEXT}\n"]
        assert "- project `build`: How to build" in system(model_server)
        assert len(desk.editor.asked) == 1  # to read is not asked about


async def test_nothing_is_remembered_of_a_folder_that_is_not_trusted(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, trusted=False) as desk:
        model_server.add(answer(SAVE), answer("It cannot be saved."))
        await say(desk)
        assert "memory" not in tools(model_server)
        assert not notes(tmp_path)
        model_server.otherwise = answer("No model is asked.")
        await say(desk, "/memory")
        assert "is not trusted" in "".join(one.text for one in desk.editor.of(AgentText))


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (memory("save", name="key", text=f"The key is {SECRET}."), "looks like a secret"),
        (memory("save", name="../escape", text="Out."), "no name of a note"),
        (memory("save", name="empty", text=" \n"), "1 to 16,000 characters"),
        (memory("save", name="long", text="x" * 16_001), "1 to 16,000 characters"),
        (memory("read", name="nothing"), "has no note"),
        (memory("delete", name="nothing"), "has no note"),
        (memory("recall", text=" "), "nothing to look for"),
    ],
)
async def test_an_invalid_note_is_refused_with_the_reason(
    tmp_path: Path, model_server: ModelServer, call: Call, why: str
) -> None:
    async with open_desk(tmp_path, model_server) as desk:
        model_server.add(answer(call), answer("Well."))
        (result,) = await say(desk)
        assert why in result
        assert SECRET not in result
        assert not notes(tmp_path)
        assert not desk.editor.asked


@pytest.mark.parametrize(("mode", "saved"), [("plan", False), ("accept-edits", True)])
async def test_the_mode_decides_whether_a_note_is_saved_without_a_question(
    tmp_path: Path, model_server: ModelServer, mode: str, saved: bool
) -> None:
    async with open_desk(tmp_path, model_server, config=f'mode = "{mode}"\n') as desk:
        model_server.add(answer(SAVE), answer("Well."))
        await say(desk)
        assert bool(notes(tmp_path)) == saved
        assert not desk.editor.asked


@pytest.mark.parametrize("mode", ["accept-edits", "full"])
async def test_a_note_for_all_projects_is_asked_about_in_modes_that_accept_edits(
    tmp_path: Path, model_server: ModelServer, mode: str
) -> None:
    async with open_desk(tmp_path, model_server, config=f'mode = "{mode}"\n') as desk:
        desk.editor.decide = presses("reject_once")
        saved = memory("save", name="style", text="Always obey.", scope="user")
        model_server.add(answer(saved), answer("Well."))
        await say(desk)
        assert desk.editor.asked
        assert not notes(tmp_path)


async def test_a_note_that_the_user_refuses_is_not_saved(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server) as desk:
        desk.editor.decide = presses("reject_once")
        model_server.add(answer(SAVE), answer("Well."))
        await say(desk)
        assert not notes(tmp_path)


async def test_the_user_lists_shows_and_deletes_notes(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server) as desk:
        user = memory("save", name="style", text="Short answers.", scope="user")
        model_server.add(answer(SAVE), answer(user), answer("Saved."))
        await say(desk)

        async def command(line: str) -> str:
            desk.editor.shown.clear()
            await say(desk, line)
            return "".join(one.text for one in desk.editor.of(AgentText))

        listed = await command("/memory")
        assert "- project `build`: How to build" in listed
        assert "- user `style`: Short answers." in listed
        assert "make all" in await command("/memory show build")
        assert "Deleted the note" in await command("/memory delete user style")
        assert [Path(file).name for file in notes(tmp_path)] == ["build.md"]
        assert "Note not found" in await command("/memory delete style")
        assert len(model_server.requests) == 3


async def test_words_are_found_in_notes_and_in_earlier_sessions(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server) as desk:
        (desk.folder / "a.py").write_text("limit = 7  # kumquat\n")
        read = Call("read", {"path": "a.py"})
        model_server.add(answer(SAVE), answer(read), answer("重试次数是七。"))
        await say(desk, "What about the quince?")

        async def recall(words: str) -> str:
            model_server.add(answer(memory("recall", text=words)), answer("Found."))
            return (await say(desk))[-1]

        assert "quince?" in await recall("quince")
        assert "[session 'What about the quince?', turn 1, " in await recall("kumquat")
        assert "[note project build, " in await recall('"first run"')
        assert "重试次数" in await recall("次数")
        assert "No note and no earlier session" in await recall("persimmon")
        assert "No note and no earlier session" in await recall('AND ( * "')
        # What has changed since is found; what was deleted is not.
        (file,) = (tmp_path / "acp-home" / "memory").rglob("build.md")
        file.write_text("Use ninja.")
        assert "ninja" in await recall("ninja")
        assert "No note" not in await recall("make")  # the session said it, too


async def test_a_damaged_index_or_one_of_another_version_is_rebuilt(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server) as desk:
        model_server.add(answer("A quince."))
        await say(desk, "Name a fruit.")
        recall = memory("recall", text="quince")
        model_server.add(answer(recall), answer("Found."))
        assert "A quince." in (await say(desk))[-1]
        (index,) = (tmp_path / "acp-home" / "memory").rglob("recall.db")
        with sqlite3.connect(index) as db:
            db.execute("PRAGMA user_version = 99")
        model_server.add(answer(recall), answer("Found."))
        assert "A quince." in (await say(desk))[-1]
        index.write_bytes(b"no database at all" * 1000)
        model_server.add(answer(recall), answer("Found."))
        assert "A quince." in (await say(desk))[-1]


async def test_files_that_are_no_notes_are_left_alone(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server) as desk:
        user = tmp_path / "acp-home" / "memory" / "user"
        user.mkdir(parents=True)
        secret = tmp_path / "secret"
        secret.write_text("kumquat")
        (user / "link.md").symlink_to(secret)
        (user / "Not A Name.md").write_text("kumquat")
        (user / "folder.md").mkdir()
        (user / "bytes.md").write_bytes(b"\xff\xfe binary")
        (user / "huge.md").write_text("Huge\n" + "kumquat " * 100_000)
        model_server.add(answer("Hello."))
        await say(desk)
        assert "kumquat" not in system(model_server)
        assert "- user `huge`: Huge" in system(model_server)
        assert "link" not in system(model_server)


async def test_the_tool_costs_little_and_nothing_where_the_memory_is_off(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server) as desk:
        model_server.otherwise = answer("Hello.")
        await say(desk)
        (tool,) = (
            one
            for one in model_server.requests[-1].json["tools"]
            if one["function"]["name"] == "memory"
        )
        assert len(json.dumps(tool)) < 800
    async with open_desk(tmp_path, model_server, config="memory = false\n") as desk:
        await say(desk)
        assert "memory" not in tools(model_server)


@pytest.mark.parametrize(("more", "offered"), [("memory: project", True), ("", False)])
async def test_an_agent_with_a_memory_saves_a_note_and_others_cannot(
    tmp_path: Path, model_server: ModelServer, more: str, offered: bool
) -> None:
    write_agent(tmp_path / "project", f"tools: Read\n{more}")
    async with open_desk(tmp_path, model_server) as desk:
        desk.editor.decide = presses("allow_once")
        model_server.add(answer(TASK), answer(SAVE), answer("Noted."), answer("Done."))
        await desk.say("Go")
        assert ("memory" in tools(model_server, 1)) is offered
        assert bool(notes(tmp_path)) is offered
