"""What the user is asked, and what each answer does."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.server.server_session import EDIT, READ, OpenSession, calls_by_id, messages
from tests.support.editor import Editor, Json, PermissionPolicy
from tests.support.model_server import Call, ModelServer, answer
from tests.support.wire_client import content_text

TOUCH = Call("shell", {"command": "touch made.txt"})


def edits_once(server: ModelServer) -> None:
    """A turn that reads and edits, and one more answer."""
    server.add(answer(READ), answer(EDIT), answer("So be it."))


@pytest.mark.covers("P6", "P3")
async def test_the_question_shows_the_diff_and_its_buttons_say_what_they_cover(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    edits_once(model_server)
    editor = Editor(permission="allow_once")
    running, session = await opened(editor=editor)
    await running.prompt(session, "edit")
    (question,) = editor.asked
    assert question["sessionId"] == session
    assert [option["kind"] for option in question["options"]] == [
        "allow_once",
        "allow_always",
        "reject_once",
        "reject_always",
    ]
    names = [option["name"] for option in question["options"]]
    assert len(set(names)) == 4
    assert "project folder" in names[1]
    call = question["toolCall"]
    assert "greeting.py" in call["title"]
    assert call["kind"] == "edit"
    assert call["locations"][0]["path"] == str(workspace_repo / "greeting.py")
    (diff,) = [part for part in call["content"] if part["type"] == "diff"]
    assert diff["path"] == str(workspace_repo / "greeting.py")
    assert "Hello" in diff["oldText"]
    assert "Good day" in diff["newText"]
    assert "Good day" in (workspace_repo / "greeting.py").read_text()


@pytest.mark.covers("P6")
async def test_the_button_for_a_command_names_the_commands_that_it_covers(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer(Call("shell", {"command": "npm test --silent"})), answer("Ran."))
    editor = Editor(permission="reject_once")
    running, session = await opened(editor=editor)
    await running.prompt(session, "test")
    (question,) = editor.asked
    assert "`npm test`" in question["options"][1]["name"]
    assert "npm test --silent" in question["toolCall"]["title"]


@pytest.mark.covers("P6")
async def test_an_always_is_not_asked_again_not_even_after_a_restart(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer(TOUCH), answer("."), answer(TOUCH), answer("."))
    editor = Editor(permission="allow_always")
    running, session = await opened(editor=editor)
    for _ in range(2):
        await running.prompt(session, "touch it")
    assert len(editor.asked) == 1
    await running.stop()
    assert not list(workspace_repo.rglob("*grants*"))  # never kept in the project

    model_server.add(answer(TOUCH), answer("."))
    rejecting_editor = Editor(permission="reject_once")
    running, session = await opened(editor=rejecting_editor)
    await running.prompt(session, "touch it")
    assert rejecting_editor.asked == []
    (call,) = calls_by_id(running.updates(session)).values()
    assert call[-1]["status"] == "completed"


@pytest.mark.covers("P6")
async def test_a_rejection_fails_the_call_and_the_model_continues_knowing_it(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    edits_once(model_server)
    before = (workspace_repo / "greeting.py").read_bytes()
    running, session = await opened(editor=Editor(permission="reject_once"))
    assert (await running.prompt(session, "edit"))["stopReason"] == "end_turn"
    assert running.text(session) == "So be it."
    assert (workspace_repo / "greeting.py").read_bytes() == before
    call = list(calls_by_id(running.updates(session)).values())[-1]
    assert call[-1]["status"] == "failed"
    assert "in_progress" not in [update.get("status") for update in call]
    assert "refused" in str(messages(model_server)[-1]["content"])


async def _unknown(_: Json) -> Json:
    return {"outcome": "selected", "optionId": "no-such-option"}


async def _odd(_: Json) -> Json:
    return {"outcome": "shrugged"}


async def _fails(_: Json) -> Json:
    raise RuntimeError("the window could not be opened")


@pytest.mark.covers("P6", "T7")
async def test_no_clear_yes_is_a_no(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    before = (workspace_repo / "greeting.py").read_bytes()
    editor = Editor()
    editor.well_behaved = False
    running, _ = await opened(editor=editor)
    answers: list[PermissionPolicy] = ["cancelled", _unknown, _odd, _fails]
    for count, editor.permission in enumerate(answers, start=1):
        edits_once(model_server)
        session = await running.new_session(workspace_repo)
        assert (await running.prompt(session, "edit"))["stopReason"] == "end_turn"
        assert len(editor.asked) == count
        assert (workspace_repo / "greeting.py").read_bytes() == before
        call = list(calls_by_id(running.updates(session)).values())[-1]
        assert call[-1]["status"] == "failed"


EDITOR_ANSWERS: list[tuple[PermissionPolicy, str, str]] = [
    ("cancelled", "The user dismissed the question", "You dismissed the question"),
    (_odd, "The editor's answer to the question", "The editor's answer to the question"),
    (_fails, "The editor could not ask the user", "The editor could not ask you"),
]


@pytest.mark.covers("P6", "T7")
async def test_an_error_of_the_editor_is_not_the_users_answer(
    opened: OpenSession, model_server: ModelServer
) -> None:
    editor = Editor()
    editor.well_behaved = False
    running, session = await opened(editor=editor)
    for editor.permission, expected, content in EDITOR_ANSWERS:
        edits_once(model_server)
        await running.prompt(session, "edit")
        last_update = list(calls_by_id(running.updates(session)).values())[-1][-1]
        assert content in last_update["content"][0]["content"]["text"]
        assert expected in str(messages(model_server)[-1]["content"])


@pytest.mark.covers("P6")
async def test_calls_that_the_policy_decides_need_no_question(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(
        answer(Call("shell", {"command": "git status --short; ls -la | wc -l"})),
        answer(Call("shell", {"command": "touch ran; exit; rm -rf /"})),
        answer("Well."),
    )
    editor = Editor(permission="allow_always")
    running, session = await opened(editor=editor)
    assert (await running.prompt(session, "look and destroy"))["stopReason"] == "end_turn"
    assert editor.asked == []
    harmless, blocked = calls_by_id(running.updates(session)).values()
    assert harmless[-1]["status"] == "completed"
    assert blocked[-1]["status"] == "failed"
    assert "in_progress" not in [update.get("status") for update in blocked]


@pytest.mark.covers("P6")
async def test_a_destructive_command_is_warned_of_and_has_no_always(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    command = "git reset --hard HEAD"
    model_server.add(answer(Call("shell", {"command": command})), answer("No."))
    editor = Editor(permission="reject_once")
    running, session = await opened(editor=editor)
    await running.prompt(session, "reset")
    (question,) = editor.asked
    assert [option["kind"] for option in question["options"]] == ["allow_once", "reject_once"]
    assert "cannot be undone" in content_text(question["toolCall"])


@pytest.mark.covers("P6", "S3")
async def test_each_mode_asks_for_what_it_says(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    editor = Editor(permission="allow_once")
    running, _ = await opened(editor=editor)
    file, created = workspace_repo / "greeting.py", workspace_repo / "made.txt"
    before = file.read_text()
    for mode, asked_kinds, changed in (
        ("ask", ["edit", "execute"], True),
        ("accept-edits", ["execute"], True),
        ("plan", [], False),
        ("full", [], True),
    ):
        file.write_text(before)
        created.unlink(missing_ok=True)
        editor.asked.clear()
        model_server.add(answer(READ), answer(EDIT), answer(TOUCH), answer("Done."))
        session = await running.new_session(workspace_repo)
        await running.request("session/set_mode", {"sessionId": session, "modeId": mode})
        assert (await running.prompt(session, "edit and touch"))["stopReason"] == "end_turn"
        assert [request["toolCall"]["kind"] for request in editor.asked] == asked_kinds, mode
        assert ("Good day" in file.read_text()) is changed, mode
        assert created.exists() is changed, mode


@pytest.mark.covers("T7", "P7")
async def test_a_client_that_never_answers_blocks_only_its_own_turn_and_can_cancel_it(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    edits_once(model_server)
    running, session = await opened(editor=Editor(permission="never"))
    prompt = running.post_prompt(session, "edit")
    question = await running.expect(lambda m: m.get("method") == "session/request_permission")
    second_session = await running.new_session(workspace_repo)
    model_server.otherwise = answer("Here as well.")
    assert (await running.prompt(second_session, "hi"))["stopReason"] == "end_turn"
    running.cancel(session)
    assert (await running.result(prompt))["stopReason"] == "cancelled"
    withdrawn = await running.expect(lambda m: m.get("method") == "$/cancel_request")
    assert withdrawn["params"] == {"requestId": question["id"]}
    # An answer that comes after all is too late, and no harm.
    outcome = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
    await running.send({"jsonrpc": "2.0", "id": question["id"], "result": outcome})
    assert (await running.prompt(session, "go on"))["stopReason"] == "end_turn"
    assert "Hello" in (workspace_repo / "greeting.py").read_text()


DECISIONS: list[tuple[str, Json, str, str]] = [
    ("allow_once", {}, "user", ""),
    ("allow_once", {"acp-agent": {"decidedBy": {"by": "flag", "name": "--yes"}}}, "flag", "--yes"),
    ("reject_once", {"acp-agent": {"decidedBy": {"by": "nobody", "name": ""}}}, "nobody", ""),
    # That nobody was there is no consent, and what is not of ours says nothing.
    ("allow_once", {"acp-agent": {"decidedBy": {"by": "nobody"}}}, "user", ""),
    ("reject_once", {"acp-agent": {"decidedBy": {"by": "rule"}}}, "user", ""),
    ("reject_once", {"acp-agent": {"decidedBy": "flag"}}, "user", ""),
    ("reject_once", {"decidedBy": {"by": "nobody"}}, "user", ""),
]


async def test_the_record_says_who_answered_for_the_client(
    opened: OpenSession, model_server: ModelServer
) -> None:
    running, session = await opened(editor=Editor(permission="never"))
    for option, meta, _, _ in DECISIONS:
        model_server.add(answer(TOUCH), answer("So be it."))
        prompt = running.post_prompt(session, "touch")
        question = await running.expect(lambda m: m.get("method") == "session/request_permission")
        result: Json = {"outcome": {"outcome": "selected", "optionId": option}, "_meta": meta}
        await running.send({"jsonrpc": "2.0", "id": question["id"], "result": result})
        await running.result(prompt)
        running.forget_what_came()
    exported = await running.request("_acp-agent/session/export", {"sessionId": session})
    events = [json.loads(line).get("event", {}) for line in exported["content"].splitlines()]
    decided = [event for event in events if event.get("event") == "permission_decided"]
    assert all(event["known"] for event in decided)
    assert [(event["by"], event.get("name", "")) for event in decided] == [
        (by, name) for _, _, by, name in DECISIONS
    ]
    assert [event["allowed"] for event in decided] == [
        option == "allow_once" for option, *_ in DECISIONS
    ]


@pytest.mark.covers("T7")
async def test_answers_that_belong_to_nothing_are_ignored(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Fine.")
    running, session = await opened()
    error = {"code": -32601, "message": "Method not found"}
    for line in (
        {"jsonrpc": "2.0", "id": None, "error": error},  # as a notification is never answered
        {"jsonrpc": "2.0", "id": 999_999, "result": {}},
        {"jsonrpc": "2.0", "id": "nobody-asked", "error": error},
    ):
        running.writer.write(json.dumps(line).encode() + b"\n")
    assert (await running.prompt(session, "hi"))["stopReason"] == "end_turn"
    assert not [message for message in running.messages if "error" in message]


@pytest.mark.covers("P6")
async def test_questions_of_two_sessions_are_open_at_the_same_time(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    both = asyncio.Event()
    editor: Editor

    async def when_both_are_asked(_: Json) -> Json:
        if len(editor.asked) == 2:
            both.set()
        await asyncio.wait_for(both.wait(), 60)
        return {"outcome": "selected", "optionId": "allow_once"}

    model_server.otherwise = lambda request: (
        answer("Done.") if request.json["messages"][-1]["role"] == "tool" else answer(TOUCH)
    )
    editor = Editor(permission=when_both_are_asked)
    running, first = await opened(editor=editor)
    second = await running.new_session(workspace_repo)
    request_ids = [running.post_prompt(session, "touch") for session in (first, second)]
    for request in request_ids:
        assert (await running.result(request))["stopReason"] == "end_turn"
    assert {request["sessionId"] for request in editor.asked} == {first, second}
