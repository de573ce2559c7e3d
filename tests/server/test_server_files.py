"""Reading and writing through the editor, and straight on disk where it offers nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonrpcserver import Error, Success

from tests.server.server_session import EDIT, READ, OpenSession, calls_of, messages
from tests.support.editor import Editor
from tests.support.model_server import Call, ModelServer, answer

BOTH: Any = frozenset({"read", "write"})


def last_diff(updates: list[dict[str, Any]]) -> dict[str, Any]:
    """The diff that an edit shows at its end."""
    call = next(call for call in calls_of(updates).values() if call[0]["kind"] == "edit")
    parts = [part for update in call for part in update.get("content") or ()]
    diffs: list[dict[str, Any]] = [part for part in parts if part["type"] == "diff"]
    return diffs[-1]


@pytest.mark.covers("P4")
async def test_unsaved_text_is_what_is_read_and_edited_and_the_editor_writes(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    file = workspace_repo / "greeting.py"
    model_server.add(answer(READ), answer(EDIT), answer("Edited."))
    editor = Editor(offers=BOTH)
    editor.buffers[str(file)] = 'print("Hello, unsaved")\n'
    running, session = await opened(editor=editor)
    await running.prompt(session, "edit")
    assert "Hello, unsaved" in str(messages(model_server)[2]["content"])
    assert editor.reads[0]["sessionId"] == session
    assert [(write["path"], write["content"]) for write in editor.writes] == [
        (str(file), 'print("Good day, unsaved")\n')
    ]
    diff = last_diff(running.updates(session))
    assert "Hello, unsaved" in diff["oldText"]
    assert "Good day, unsaved" in diff["newText"]


@pytest.mark.covers("P4", "I6")
async def test_without_an_editor_s_files_the_disk_is_read_and_written(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    file = workspace_repo / "greeting.py"
    file.chmod(0o755)
    model_server.add(answer(READ), answer(EDIT), answer("Edited."))
    editor = Editor()
    running, session = await opened(editor=editor)
    await running.prompt(session, "edit")
    assert editor.reads == editor.writes == []
    assert "Good day" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o755
    assert last_diff(running.updates(session))["path"] == str(file)
    assert not [path for path in workspace_repo.rglob("*") if ".tmp" in path.name]


@pytest.mark.covers("P4", "I6")
@pytest.mark.parametrize(
    ("offer", "reads", "writes"), [("read", True, False), ("write", False, True)]
)
async def test_each_direction_is_used_only_where_it_is_offered(
    opened: OpenSession,
    model_server: ModelServer,
    workspace_repo: Path,
    offer: Any,
    reads: bool,
    writes: bool,
) -> None:
    model_server.add(answer(READ), answer(EDIT), answer("Edited."))
    editor = Editor(offers=frozenset({offer}))
    running, session = await opened(editor=editor)
    await running.prompt(session, "edit")
    assert bool(editor.reads) is reads
    assert bool(editor.writes) is writes
    assert "Good day" in (workspace_repo / "greeting.py").read_text()


@pytest.mark.covers("P4")
async def test_a_new_file_goes_through_the_editor_with_its_diff(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(
        answer(Call("write", {"path": "docs/new.md", "content": "# New\n"})), answer("Written.")
    )
    editor = Editor(offers=BOTH)
    running, session = await opened(editor=editor)
    await running.prompt(session, "write")
    assert [write["content"] for write in editor.writes] == ["# New\n"]
    diff = last_diff(running.updates(session))
    assert diff.get("oldText") is None
    assert diff["newText"] == "# New\n"
    assert (workspace_repo / "docs" / "new.md").read_text() == "# New\n"


@pytest.mark.covers("P4")
async def test_an_edit_is_refused_when_the_buffer_changed_after_it_was_read(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    file = str(workspace_repo / "greeting.py")
    editor = Editor(offers=BOTH)

    async def types_meanwhile(_: Any) -> Any:
        editor.buffers[file] = 'print("Hello, typed just now")\n'
        return {"outcome": "selected", "optionId": "allow_once"}

    editor.permission = types_meanwhile
    model_server.add(answer(READ), answer(EDIT), answer("I will look again."))
    running, session = await opened(editor=editor)
    await running.prompt(session, "edit")
    assert editor.writes == []
    assert editor.buffers[file] == 'print("Hello, typed just now")\n'
    assert "changed" in str(messages(model_server)[-1]["content"])


@pytest.mark.covers("P4")
async def test_what_a_command_wrote_is_read_even_where_the_editor_is_behind(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    file = workspace_repo / "greeting.py"
    editor = Editor(offers=BOTH)
    editor.buffers[str(file)] = file.read_text()  # open and unchanged, never reloaded
    model_server.add(
        answer(READ),
        answer(Call("shell", {"command": "echo 'from the command' > greeting.py"})),
        answer(READ),
        answer("Read."),
    )
    running, session = await opened(editor=editor)
    await running.prompt(session, "run and read")
    assert "from the command" in str(messages(model_server)[-1]["content"])


@pytest.mark.covers("P4", "T7")
async def test_an_editor_that_fails_to_write_fails_the_call_and_nothing_else_writes(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    async def refuse(**_: Any) -> Any:
        return Error(-32603, "the buffer is locked")

    editor = Editor(offers=BOTH)
    editor._methods["fs/write_text_file"] = refuse
    model_server.add(answer(READ), answer(EDIT), answer("It is locked."))
    running, session = await opened(editor=editor)
    assert (await running.prompt(session, "edit"))["stopReason"] == "end_turn"
    assert "locked" in str(messages(model_server)[-1]["content"])
    assert "Hello" in (workspace_repo / "greeting.py").read_text()
    edit = list(calls_of(running.updates(session)).values())[-1]
    assert edit[-1]["status"] == "failed"


@pytest.mark.covers("P4")
async def test_a_missing_file_is_missing_whether_the_editor_says_so_or_answers_with_nothing(
    opened: OpenSession, model_server: ModelServer
) -> None:
    async def nothing(**_: Any) -> Any:
        return Success({"content": ""})

    polite, sloppy = Editor(offers=BOTH), Editor(offers=BOTH)
    sloppy._methods["fs/read_text_file"] = nothing
    for editor in (polite, sloppy):
        model_server.add(answer(Call("read", {"path": "missing.py"})), answer("There is none."))
        running, session = await opened(editor=editor)
        await running.prompt(session, "read")
        (call,) = calls_of(running.updates(session)).values()
        assert call[-1]["status"] == "failed"
        assert "missing.py" in json.dumps(messages(model_server)[-1])
