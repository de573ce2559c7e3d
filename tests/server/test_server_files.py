"""Reading and writing through the editor, and straight on disk where it offers nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonrpcserver import Error, Success

from tests.server.server_session import EDIT, READ, OpenSession, calls_by_id, messages
from tests.support.editor import Editor
from tests.support.model_server import Call, ModelServer, answer

BOTH: Any = frozenset({"read", "write"})


def last_diff(updates: list[dict[str, Any]]) -> dict[str, Any]:
    """The diff that an edit shows at its end."""
    call = next(call for call in calls_by_id(updates).values() if call[0]["kind"] == "edit")
    content = [part for update in call for part in update.get("content") or ()]
    diffs: list[dict[str, Any]] = [part for part in content if part["type"] == "diff"]
    return diffs[-1]


@pytest.mark.covers("P4")
async def test_unsaved_text_is_read_and_edited_and_the_editor_writes_it(
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
async def test_output_of_a_command_is_read_even_if_the_editor_is_behind(
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
    edit = list(calls_by_id(running.updates(session)).values())[-1]
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
        (call,) = calls_by_id(running.updates(session)).values()
        assert call[-1]["status"] == "failed"
        assert "missing.py" in json.dumps(messages(model_server)[-1])


def refuses(editor: Editor, method: str, code: int, message: str, data: Any = None) -> None:
    """Let the editor answer a method with an error."""

    async def refuse(**params: Any) -> Any:
        (editor.reads if "read" in method else editor.writes).append(params)
        return Error(code, message) if data is None else Error(code, message, data)

    editor._methods[method] = refuse


@pytest.mark.covers("P4", "T7")
async def test_a_read_that_the_editor_refuses_fails_with_its_reason_and_not_from_disk(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    editor = Editor(offers=BOTH)
    grep = Call("grep", {"pattern": "Hello", "path": "greeting.py"})
    replace = Call("write", {"path": "greeting.py", "content": "x"})
    running, session = await opened(editor=editor)
    reason = "private\x1b[2J by policy; sk-ant-api03-" + "a" * 90
    codes = (-32000, -32001, -32602, -32603, -32800, 7)
    for code in codes:
        refuses(editor, "fs/read_text_file", code, reason)
        model_server.add(answer(READ, grep, EDIT, replace), answer("I may not."))
        await running.prompt(session, f"read {code}")
    request_text = json.dumps(messages(model_server))
    assert "def greet" not in request_text
    results = [
        str(message["content"]) for message in messages(model_server) if message["role"] == "tool"
    ]
    assert len(results) == 4 * len(codes)
    for result in results:
        assert "by policy" in result
        assert "\x1b" not in result
        assert "sk-ant-api03" not in result
        assert "has not been read" not in result
    assert editor.writes == []
    assert "Hello" in (workspace_repo / "greeting.py").read_text()


@pytest.mark.covers("P4")
async def test_the_disk_is_read_where_the_editor_has_no_such_file_or_method(
    opened: OpenSession, model_server: ModelServer
) -> None:
    editor = Editor(offers=BOTH)
    running, session = await opened(editor=editor)
    for code in (-32601, -32002):
        refuses(editor, "fs/read_text_file", code, "nothing here")
        model_server.add(answer(READ, Call("grep", {"pattern": "Hello"})), answer("Read."))
        await running.prompt(session, "read")
    results = [
        str(message["content"]) for message in messages(model_server) if message["role"] == "tool"
    ]
    assert all("Hello" in result for result in results)


@pytest.mark.covers("P4")
async def test_a_search_leaves_out_and_names_the_files_that_the_editor_refuses(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    (workspace_repo / "private.py").write_text('print("Hello, nobody")\n')
    editor = Editor(offers=BOTH)
    polite = editor._methods["fs/read_text_file"]

    async def read(**params: Any) -> Any:
        if params["path"].endswith("private.py"):
            return Error(-32000, "private by policy")
        return await polite(**params)

    editor._methods["fs/read_text_file"] = read
    running, session = await opened(editor=editor)
    for mode in ("lines", "files"):
        grep = Call("grep", {"pattern": "Hello", "mode": mode})
        model_server.add(answer(grep), answer("Found."))
        await running.prompt(session, "search")
        result = str(messages(model_server)[-1]["content"])
        assert "greeting.py" in result
        assert "left out: private.py; the editor refused" in result
        assert "private by policy" in result
        assert "nobody" not in result
        assert result.count("private.py") == 2  # in the note alone


@pytest.mark.covers("P4", "T7")
async def test_a_refused_write_gives_the_reason_from_the_data_of_the_error(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    editor = Editor(offers=BOTH)
    refuses(editor, "fs/write_text_file", -32603, "Internal error", {"details": "read-only view"})
    model_server.add(answer(READ), answer(EDIT), answer("I may not."))
    running, session = await opened(editor=editor)
    await running.prompt(session, "edit")
    assert "Internal error: read-only view" in str(messages(model_server)[-1]["content"])
    assert "Hello" in (workspace_repo / "greeting.py").read_text()


@pytest.mark.covers("P4")
async def test_a_linked_file_that_the_editor_refuses_is_named_with_the_reason(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    editor = Editor(offers=BOTH)
    refuses(editor, "fs/read_text_file", -32001, "private by policy")
    model_server.add(answer("I may not."))
    running, session = await opened(editor=editor)
    uri = (workspace_repo / "greeting.py").as_uri()
    link = {"type": "resource_link", "name": "greeting.py", "uri": uri}
    await running.request("session/prompt", {"sessionId": session, "prompt": [link]})
    request_text = json.dumps(messages(model_server))
    assert "private by policy" in request_text
    assert "Hello" not in request_text
