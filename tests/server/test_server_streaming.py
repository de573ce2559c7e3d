"""What an editor sees of an answer and of its tool calls while they happen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.server.server_session import EDIT, READ, OpenSession, calls_by_id, messages
from tests.support.editor import EVERYTHING, Editor
from tests.support.model_server import Call, ModelServer, Stall, Thought, answer
from tests.support.wire_client import content_text


@pytest.mark.covers("P2")
@pytest.mark.parametrize("api", ["openai", "anthropic"])
async def test_pieces_of_an_answer_are_shown_once_as_they_arrive(
    opened: OpenSession, model_server: ModelServer, api: Any
) -> None:
    first, second = Stall(), Stall()
    model_server.add(
        answer(Thought("Let me "), Thought("see."), "One, ", first, "two, ", second, "three.")
    )
    running, session = await opened(api=api)
    prompt = running.post_prompt(session, "count")
    await running.expect_update(session, "agent_message_chunk")
    assert running.text(session) == "One, "  # shown while the model still writes
    first.release()
    await running.expect(lambda _: running.text(session) == "One, two, ")
    second.release()
    assert (await running.result(prompt))["stopReason"] == "end_turn"

    chunks = running.updates(session, "agent_message_chunk")
    thought = running.updates(session, "agent_thought_chunk")
    assert running.text(session) == "One, two, three."
    assert "".join(update["content"]["text"] for update in thought) == "Let me see."
    ids = {update["messageId"] for update in chunks}
    thoughts = {update["messageId"] for update in thought}
    assert len(ids) == len(thoughts) == 1
    assert ids.isdisjoint(thoughts)


@pytest.mark.covers("P2")
async def test_a_long_answer_costs_bytes_in_proportion_to_its_length(
    opened: OpenSession, model_server: ModelServer
) -> None:
    words = [f"word{number} " for number in range(2000)]
    model_server.add(answer(*words))
    running, session = await opened()
    await running.prompt(session, "talk")
    text = "".join(words)
    assert running.text(session) == text
    byte_count = sum(map(len, running.lines))
    assert (
        byte_count < len(text) + 2200 * 300
    )  # a bounded envelope for each piece, nothing repeated


@pytest.mark.covers("P2")
async def test_pieces_that_arrive_together_are_joined_and_a_replay_has_one(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    words = [f"word{number} " for number in range(1000)]
    model_server.add(answer(*map(Thought, words), *words))
    running, session = await opened()
    await running.prompt(session, "talk")
    for kind in ("agent_thought_chunk", "agent_message_chunk"):
        chunks = running.updates(session, kind)
        assert "".join(chunk["content"]["text"] for chunk in chunks) == "".join(words)
        assert len(chunks) < 300, kind
    running.messages.clear()
    params = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    await running.request("session/load", params)
    for kind in ("agent_thought_chunk", "agent_message_chunk"):
        (chunk,) = running.updates(session, kind)
        assert chunk["content"]["text"] == "".join(words)


@pytest.mark.covers("P2")
async def test_each_answer_of_a_turn_is_a_message_of_its_own(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer("Looking.", READ), answer("Found."))
    running, session = await opened()
    await running.prompt(session, "look")
    chunks = running.updates(session, "agent_message_chunk")
    assert [chunk["content"]["text"] for chunk in chunks] == ["Looking.", "Found."]
    assert chunks[0]["messageId"] != chunks[1]["messageId"]


@pytest.mark.covers("P3")
async def test_a_call_is_announced_then_runs_then_ends(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(
        answer(Call("read", {"path": "src/app.py", "line": 3, "limit": 1})), answer("Read.")
    )
    running, session = await opened()
    await running.prompt(session, "read")
    (call,) = calls_by_id(running.updates(session)).values()
    assert call[0]["sessionUpdate"] == "tool_call"
    assert call[0]["status"] == "pending"
    assert call[0]["kind"] == "read"
    assert "src/app.py" in call[0]["title"]
    assert call[0]["rawInput"] == {"path": "src/app.py", "line": 3, "limit": 1}
    statuses = [update["status"] for update in call if "status" in update]
    assert statuses == ["pending", "in_progress", "completed"]
    locations = [location for update in call for location in update.get("locations") or ()]
    assert {"path": str(workspace_repo / "src" / "app.py"), "line": 3} in locations
    assert "greet('Ada')" in json.dumps(messages(model_server)[-1])


@pytest.mark.covers("P3")
async def test_the_question_about_an_edit_follows_its_announcement(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(answer(READ), answer(EDIT), answer("Edited."))
    running, session = await opened()
    await running.prompt(session, "edit")
    order = [
        message["params"]["update"].get("status", message["params"]["update"]["sessionUpdate"])
        if message["method"] == "session/update"
        else "asked"
        for message in running.messages
        if _is_about_kind(message, running.updates(session), "edit")
    ]
    order = [step for step in order if step != "tool_call_update"]
    assert order == ["pending", "asked", "in_progress", "completed"]


def _is_about_kind(message: dict[str, Any], updates: list[dict[str, Any]], kind: str) -> bool:
    ids = {update["toolCallId"] for update in updates if update.get("kind") == kind}
    if message.get("method") == "session/request_permission":
        return message["params"]["toolCall"]["toolCallId"] in ids
    if message.get("method") == "session/update":
        return message["params"]["update"].get("toolCallId") in ids
    return False


@pytest.mark.covers("P3")
async def test_calls_that_cannot_run_fail_visibly_and_the_model_learns_why(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(
        answer(
            Call("read", {"path": "missing.py"}),
            Call("read", {"shelf": "wrong name"}),
            Call("read", "{not json"),
            Call("no_such_tool", {}),
            Call("read", {"path": "../../../etc/passwd"}),
        ),
        answer("I see."),
    )
    running, session = await opened()
    assert (await running.prompt(session, "try"))["stopReason"] == "end_turn"
    calls = calls_by_id(running.updates(session))
    assert len(calls) == 5
    for call in calls.values():
        assert call[-1]["status"] == "failed"
        assert content_text(call[-1]).strip()
        assert "Traceback" not in content_text(call[-1])
    results = [m["content"] for m in messages(model_server) if m["role"] == "tool"]
    for result, word in zip(
        results, ("missing.py", "path", "JSON", "no_such_tool", "passwd"), strict=True
    ):
        assert word in str(result)
    assert "root:" not in str(results)


@pytest.mark.covers("P3")
async def test_a_long_result_is_bounded_and_the_rest_can_be_read_from_a_file(
    opened: OpenSession, model_server: ModelServer
) -> None:
    command = "seq 1 60000; echo the very end"
    model_server.add(answer(Call("shell", {"command": command})), answer("Long."))
    running, session = await opened()
    await running.prompt(session, "count")
    (call,) = calls_by_id(running.updates(session)).values()
    assert len(content_text(call[-1])) < 60_000
    request_text = str(messages(model_server)[-1]["content"])
    assert len(request_text.encode()) < 60_000
    assert "the very end" in request_text
    output_file = call[-1]["rawOutput"]["output_file"]
    text = Path(output_file).read_text()
    assert text.startswith("1\n2\n")
    assert text.endswith("the very end\n")

    model_server.add(
        answer(Call("read", {"path": output_file, "line": 60_000, "limit": 1})), answer(".")
    )
    await running.prompt(session, "read the rest")
    assert "60000" in str(messages(model_server)[-1]["content"])


@pytest.mark.covers("P10")
async def test_a_plan_is_shown_whole_each_time_it_changes(
    opened: OpenSession, model_server: ModelServer
) -> None:
    def todos(first: str, second: str) -> Call:
        return Call(
            "todo",
            {
                "todos": [
                    {"content": "Look", "status": first, "priority": "high"},
                    {"content": "Leap", "status": second},
                ]
            },
        )

    model_server.add(
        answer(todos("in_progress", "pending")),
        answer(todos("completed", "in_progress")),
        answer("On it."),
    )
    running, session = await opened()
    await running.prompt(session, "plan")
    plans = [update["entries"] for update in running.updates(session, "plan")]
    assert [[(entry["content"], entry["status"]) for entry in plan] for plan in plans] == [
        [("Look", "in_progress"), ("Leap", "pending")],
        [("Look", "completed"), ("Leap", "in_progress")],
    ]
    assert {entry["priority"] for entry in plans[0]} == {"high", "medium"}


@pytest.mark.covers("P3")
async def test_reads_run_side_by_side_and_results_go_back_in_the_order_of_the_calls(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.add(
        answer(
            Call("read", {"path": "README.md"}, id="c1"),
            Call("grep", {"pattern": "greet"}, id="c2"),
            Call("read", {"path": "greeting.py"}, id="c3"),
        ),
        answer("Read."),
    )
    running, session = await opened(editor=Editor(offers=EVERYTHING - {"terminal"}))
    await running.prompt(session, "look")
    history = messages(model_server)
    request_ids = [call["id"] for call in history[1]["tool_calls"]]
    results = [message for message in history if message["role"] == "tool"]
    assert [result["tool_call_id"] for result in results] == request_ids
    for result, word in zip(results, ("Sample", "app.py", "Hello"), strict=True):
        assert word in str(result["content"])
