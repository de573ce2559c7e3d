"""What the model is told beside the conversation: the system prompt, notes, linked files."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from acp_agent.agent.attachments import FILE_LIMIT, TOTAL_LIMIT, linked_files
from acp_agent.agent.system_prompt import system_prompt
from acp_agent.content import ResourceLinkBlock, TextBlock
from acp_agent.events import NoticeShown, SystemPromptWritten
from acp_agent.session.turns.prompt_notes import PromptNotes
from acp_agent.workspace.instructions.files import (
    FILE_LIMIT as INSTRUCTIONS_LIMIT,
    read_instructions,
)
from tests.support.model_server import ModelServer, answer
from tests.support.open_session import SECRET, Desk, home_paths
from tests.support.tool_calls import ToolUser


def link(path: Path | str) -> ResourceLinkBlock:
    uri = path if isinstance(path, str) else path.as_uri()
    return ResourceLinkBlock(uri=uri, name="linked")


def test_the_system_prompt_has_no_empty_section() -> None:
    text = system_prompt(instructions="", environment="Shell: bash")
    assert "# Instructions" not in text
    assert text.endswith("# Environment at the start of the session\n\nShell: bash")


def test_the_system_prompt_is_short() -> None:
    assert len(system_prompt(instructions="", environment="")) < 2_500


async def test_every_request_of_a_session_begins_with_the_same_bytes(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Yes.")
    (desk.folder / "AGENTS.md").write_text("Use tabs.\n")
    await desk.say("One")
    (desk.folder / "AGENTS.md").write_text("Use spaces.\n")
    await desk.session.set_option("mode", "plan")
    await desk.say("Two")
    first, second = (request.json["messages"] for request in model_server.requests)
    assert second[: len(first)] == first
    assert "Use tabs." in first[0]["content"]
    assert len([e for e in await desk.journal() if isinstance(e, SystemPromptWritten)]) == 1


def test_instructions_go_from_the_users_own_to_the_innermost_folders(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    user = tmp_path / "user" / "AGENTS.md"
    user.parent.mkdir()
    for path in (user, tmp_path / "outer" / "AGENTS.md", inner / "AGENTS.md"):
        path.write_text(f"From {path.parent.name}.")
    text = read_instructions(inner, user, trusts=lambda _: True).text
    places = [text.index(f"From {name}.") for name in ("user", "outer", "inner")]
    assert places == sorted(places)
    assert f"## {inner / 'AGENTS.md'}\n\nFrom inner." in text


def test_instructions_that_are_too_long_or_no_text_are_cut_or_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "AGENTS.md").write_bytes(b"x" * (INSTRUCTIONS_LIMIT + 5))
    (tmp_path / "AGENTS.md").mkdir()  # a folder of that name
    text = read_instructions(folder, tmp_path / "none" / "AGENTS.md", trusts=lambda _: True).text
    assert text.count("x") == INSTRUCTIONS_LIMIT
    assert str(tmp_path / "AGENTS.md") in caplog.text
    assert "longer than" in caplog.text


def test_instructions_that_are_not_utf_8_do_not_stop_the_turn(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes(b"caf\xe9")
    found = read_instructions(tmp_path, tmp_path / "none", trusts=lambda _: True)
    assert "caf\N{REPLACEMENT CHARACTER}" in found.text


async def test_the_user_sees_which_instructions_are_skipped(
    desk: Desk, model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.otherwise = answer("Yes.")
    (tmp_path / "secret").write_text("a secret")
    path = desk.folder / "AGENTS.md"
    path.symlink_to(tmp_path / "secret")
    await desk.say("One")
    (notice,) = desk.editor.of(NoticeShown)
    assert notice.title == "An instruction file is not used."
    assert notice.description is not None
    assert notice.description.startswith(f"{path}: it is a link that leads out of the project")
    assert "a secret" not in model_server.requests[0].body.decode()


async def test_instructions_reach_the_model_without_secrets(
    desk: Desk, model_server: ModelServer
) -> None:
    (desk.folder / "AGENTS.md").write_text(f"The key is {SECRET}.")
    home_paths(desk.folder.parent).config_file.with_name("AGENTS.md").write_text("Be kind.")
    model_server.add(answer("Yes."))
    await desk.say("Hello")
    system = model_server.requests[0].json["messages"][0]["content"]
    assert "The key is [secret]." in system
    assert system.index("Be kind.") < system.index("The key is")


# -- linked files


@pytest.fixture
def tools(tmp_path: Path) -> ToolUser:
    folder = tmp_path / "linked project"
    folder.mkdir()
    return ToolUser(folder)


async def test_a_linked_file_is_attached_with_its_path_and_without_secrets(
    tools: ToolUser,
) -> None:
    path = tools.folder / "a file.py"
    path.write_text(f"key = {SECRET!r}\n")
    found = await linked_files(
        [TextBlock(text="see"), link(path)], tools.workspace, secrets=[SECRET]
    )
    assert found == [f"<file path=\"{path}\">\nkey = '[secret]'\n\n</file>"]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("missing", None, "missing"),
        ("binary", b"\x00\x01\x02\x00", "binary"),
        ("latin", b"caf\xe9 au lait", "UTF-8"),
        ("../outside", b"x", "outside"),
    ],
)
async def test_a_linked_file_that_cannot_be_read_is_named_with_the_reason(
    tools: ToolUser, name: str, content: bytes | None, why: str
) -> None:
    path = (tools.folder / name).resolve()
    if content is not None:
        path.write_bytes(content)
    (found,) = await linked_files([link(path)], tools.workspace, secrets=[])
    assert found.startswith(f"[The linked file {path} was not attached: ")
    assert why in found


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("#L3-4", "lines 3 to 4 of {}:]\n3\tthree\n4\tfour"),
        ("#L3:4", "lines 3 to 4 of {}:]\n3\tthree\n4\tfour"),
        ("#L2", "line 2 of {}:]\n2\ttwo"),
        ("?line=2", "line 2 of {}:]\n2\ttwo"),
        ("#L4-L99", "lines 4 to 99 of {}:]\n4\tfour"),
    ],
)
async def test_lines_that_a_link_names_are_sent_with_their_numbers(
    tools: ToolUser, place: str, told: str
) -> None:
    path = tools.folder / "a.py"
    path.write_text("one\ntwo\nthree\nfour")
    block = ResourceLinkBlock(uri=path.as_uri() + place, name="a.py")
    file, lines = await linked_files([block], tools.workspace, secrets=[])
    assert "one\ntwo" in file
    assert lines == f"[The user points to {told.format(path)}"


async def test_a_linked_folder_is_listed_and_a_linked_picture_is_for_read(tools: ToolUser) -> None:
    (tools.folder / "sub").mkdir()
    (tools.folder / "sub" / "a.py").write_text("")
    (tools.folder / "b.png").write_bytes(b"\x89PNG\0")
    links = [link(tools.folder / "sub"), link(tools.folder / "b.png")]
    folder, picture = await linked_files(links, tools.workspace, secrets=[])
    assert folder == f'<folder path="{tools.folder / "sub"}">\na.py\n</folder>'
    assert "look at it with `read`" in picture


@pytest.mark.parametrize(
    "uri",
    ["https://example.com/a.py", "file://elsewhere/a.py", "http://[broken", "zed:///agent/x", ""],
)
async def test_a_link_to_no_local_file_attaches_nothing(tools: ToolUser, uri: str) -> None:
    assert await linked_files([link(uri)], tools.workspace, secrets=[]) == []


async def test_linked_files_are_limited_each_and_in_total(tools: ToolUser) -> None:
    count = TOTAL_LIMIT // FILE_LIMIT + 1
    paths = [tools.folder / f"{number}.txt" for number in range(count)]
    for path in paths:
        path.write_text("é" * (FILE_LIMIT + 7))
    links = [link(path) for path in paths]
    *attached, last = await linked_files(links, tools.workspace, secrets=[])
    assert [text.count("é") for text in attached] == [FILE_LIMIT] * (count - 1)
    assert all("[7 more characters; read the file for the rest]" in text for text in attached)
    assert last == (
        f"[The linked file {paths[-1]} was not attached: "
        "the linked files are too long together; read it]"
    )


async def test_a_linked_file_counts_as_read_so_that_it_can_be_edited(
    desk: Desk, model_server: ModelServer
) -> None:
    path = desk.folder / "a.py"
    path.write_text("x = 1\n")
    model_server.add(answer("I see it."))
    await desk.say("Look", link(path))
    assert f'<file path="{path}">\nx = 1\n\n</file>' in desk.words()[0]
    workspace = (await desk.session.resources.for_turn()).tools.workspace
    assert (await workspace.files.check_unchanged(path)).text == "x = 1\n"


# -- notes


def test_a_note_is_due_once_and_again_only_when_it_changed() -> None:
    notes = PromptNotes()
    monday, tuesday = date(2026, 11, 23), date(2026, 11, 24)
    first = notes.take_changed(today=monday, mode="ask", moved_to=None)
    assert [note.split()[0] for note in first] == ["[Today", "[Mode:"]
    assert notes.take_changed(today=monday, mode="ask", moved_to=None) == []
    assert notes.take_changed(today=tuesday, mode="ask", moved_to=None) == [
        "[Today is Tuesday, 2026-11-24.]"
    ]
    (mode,) = notes.take_changed(today=tuesday, mode="plan", moved_to=None)
    assert mode.startswith("[Mode: plan.")


def test_folders_unlike_those_of_the_system_prompt_are_mentioned_once() -> None:
    notes = PromptNotes()
    day = date(2026, 11, 23)
    notes.take_changed(today=day, mode="ask", moved_to=None)
    moved = (Path("/new"), (Path("/b"), Path("/c")))
    assert notes.take_changed(today=day, mode="ask", moved_to=moved) == [
        "[The working folder is now /new. Further folders: /b, /c.]"
    ]
    assert notes.take_changed(today=day, mode="ask", moved_to=moved) == []


async def test_the_first_prompt_after_a_switch_mentions_the_mode(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Yes.")
    await desk.say("One")
    await desk.say("Two")
    await desk.session.set_option("mode", "plan")
    await desk.say("Three")
    one, two, three = desk.words()
    assert "[Mode: ask." in one
    assert two == "Two"
    assert three.startswith("Three\n[Mode: plan.")
