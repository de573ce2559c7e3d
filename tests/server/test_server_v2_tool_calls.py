"""What version 2 shows of tool calls: upserts, diffs that Git applies, plans, and stopping one.

Source: Agent Client Protocol v2, Tool Calls, Agent Plan.
"""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from tests.server.server_session import EDIT, READ
from tests.server.v2_session import OpenV2, states
from tests.support.framing import Json
from tests.support.model_server import Call, ModelServer, answer
from tests.support.v2_client import V2Client
from tests.support.wire_client import AnswerError

SLEEP = Call("shell", {"command": "echo begun; sleep 300"})


def call_updates(client: V2Client, session: str, call: str) -> list[Json]:
    """The updates of one call, without what they have in common."""
    return [
        {key: value for key, value in update.items() if key not in {"sessionUpdate", "toolCallId"}}
        for update in client.wire.updates(session, "tool_call_update")
        if update["toolCallId"] == call
    ]


@pytest.mark.covers("P3")
async def test_a_call_is_sent_whole_first_and_later_only_its_changes(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer(READ), answer("Done."))
    client, session = await opened_v2()
    assert (await client.prompt(session, "Go"))["stopReason"] == "end_turn"
    (call,) = client.view(session).calls
    first, *_, last = call_updates(client, session, call)
    assert first["title"] == "Read greeting.py"
    assert (first["kind"], first["status"], first["name"]) == ("read", "pending", "read")
    assert first["rawInput"] == {"path": "greeting.py"}
    assert first["capabilities"] == {"cancel": {}}
    assert last["status"] == "completed"
    assert last["capabilities"] is None
    assert not {"title", "kind", "rawInput", "name"} & set(last)
    updates = [set(update) for update in call_updates(client, session, call)]
    assert {"status"} in updates  # in_progress, and nothing else
    view = client.view(session).calls[call]
    assert view["locations"] == [{"path": str(workspace_repo / "greeting.py"), "line": 1}]
    assert None not in first.values()


@pytest.mark.covers("P4")
async def test_git_applies_the_patches_of_edited_and_new_files(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    odd = workspace_repo / "odd näme\t.txt"
    model_server.add(
        answer(READ),
        answer(
            EDIT,
            Call("write", {"path": "src/new.py", "content": "x = 1"}),
            Call("write", {"path": odd.name, "content": "a\nb\n"}),
        ),
        answer("Done."),
    )
    client, session = await opened_v2()
    assert (await client.prompt(session, "Go"))["stopReason"] == "end_turn"
    changed = ["greeting.py", "src/new.py", odd.name]
    contents = {name: (workspace_repo / name).read_bytes() for name in changed}
    diffs = [
        part
        for call in client.view(session).calls.values()
        for part in call["content"]
        if part["type"] == "diff"
    ]
    changes = [change for diff in diffs for change in diff["changes"]]
    assert [(one["operation"], one["path"]) for one in changes] == [
        ("modify", str(workspace_repo / "greeting.py")),
        ("add", str(workspace_repo / "src/new.py")),
        ("add", str(odd)),
    ]
    subprocess.run(["git", "checkout", "-q", "."], cwd=workspace_repo, check=True)
    for name in changed[1:]:
        (workspace_repo / name).unlink()
    root = str(workspace_repo).count("/") + 1
    for diff in diffs:
        assert diff["patch"]["format"] == "git_patch"
        await asyncio.to_thread(
            subprocess.run,
            ["git", "apply", f"-p{root}", "-"],
            input=diff["patch"]["text"].encode(),
            cwd=workspace_repo,
            check=True,
        )
    assert {name: (workspace_repo / name).read_bytes() for name in changed} == contents


@pytest.mark.covers("P3", "P6")
async def test_a_refused_edit_changes_nothing_and_is_shown_as_failed(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(answer(READ), answer(EDIT), answer("I see."))
    client, session = await opened_v2(permission="reject_once")
    assert (await client.prompt(session, "Go"))["stopReason"] == "end_turn"
    _, edit = client.view(session).calls.values()
    assert edit["status"] == "failed"
    assert "Hello" in (workspace_repo / "greeting.py").read_text()


async def _shrugs(_: Json) -> Json:
    return {"outcome": "_shrugged"}


@pytest.mark.covers("P6", "T7")
async def test_an_unknown_outcome_allows_nothing_and_is_not_the_users_answer(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.add(answer(READ), answer(EDIT), answer("I see."))
    client, session = await opened_v2(permission=_shrugs)
    assert (await client.prompt(session, "Go"))["stopReason"] == "end_turn"
    _, edit = client.view(session).calls.values()
    assert edit["status"] == "failed"
    assert "The editor's answer to the question made no sense" in str(edit["content"])


@pytest.mark.covers("P10")
async def test_each_plan_is_sent_completely_under_one_id(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    def plan(*states: str) -> Call:
        return Call(
            "todo",
            {"todos": [{"content": f"Step {i}", "status": s} for i, s in enumerate(states)]},
        )

    model_server.add(
        answer(plan("in_progress", "pending")),
        answer(plan("completed", "in_progress")),
        answer("Done."),
    )
    client, session = await opened_v2()
    assert (await client.prompt(session, "Go"))["stopReason"] == "end_turn"
    plans = [update["plan"] for update in client.wire.updates(session, "plan_update")]
    assert {plan["type"] for plan in plans} == {"items"}
    assert len({plan["planId"] for plan in plans}) == 1
    updates = [[entry["status"] for entry in plan["entries"]] for plan in plans]
    assert updates == [["in_progress", "pending"], ["completed", "in_progress"]]


@pytest.mark.covers("P7", "P3")
async def test_a_call_that_has_not_started_is_cancelled_and_the_other_calls_continue(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    files = [Call("write", {"path": f"{name}.txt", "content": name}) for name in "abc"]
    model_server.add(answer(*files), answer("Done."))
    client, session = await opened_v2(permission="never")
    message = await client.said(client.post_prompt(session, "Go"))
    question = await client.wire.expect(lambda m: m.get("method") == "session/request_permission")
    first, second, third = client.view(session).calls
    await client.cancel_call(session, second)
    client.wire.editor.permission = "allow_once"
    outcome = await client.wire.editor._request_permission(**question["params"])
    await client.wire.send(
        {"jsonrpc": "2.0", "id": question["id"], "result": outcome._value.result}
    )
    assert (await client.idle(session, message))["stopReason"] == "end_turn"
    calls = client.view(session).calls
    assert [calls[name]["status"] for name in (first, second, third)] == [
        "completed", "cancelled", "completed",
    ]  # fmt: skip
    assert sorted(path.name for path in workspace_repo.glob("*.txt")) == ["a.txt", "c.txt"]


@pytest.mark.covers("P7", "S6")
async def test_cancelling_an_unknown_call_is_refused_and_stops_nothing(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.add(answer(READ), answer(SLEEP))
    client, session = await opened_v2()
    message = await client.said(client.post_prompt(session, "Go"))
    await client.expect_update(session, "terminal_output_chunk")
    read, shell = client.view(session).calls

    async def code(method: str, **params: object) -> int:
        with pytest.raises(AnswerError) as caught:
            await client.wire.request(method, {"sessionId": session} | params)
        return caught.value.code

    assert await code("tool_call/cancel", toolCallId=read) == -32602  # it has ended
    assert await code("tool_call/cancel", toolCallId="call_nobody_made") == -32602
    assert await code("tool_call/cancel") == -32602
    assert await code("terminal/cancel", terminalId=read) == -32602  # it has no terminal
    assert await code("terminal/cancel", terminalId="nothing") == -32602
    assert await code("terminal/cancel", terminalId=7) == -32602
    assert await code("tool_call/cancel", sessionId="sess_x", toolCallId=shell) == -32002
    assert await code("terminal/cancel", sessionId="sess_x", terminalId=shell) == -32002
    assert states(client, session) == ["running"]
    client.cancel(session)
    assert (await client.idle(session, message))["stopReason"] == "cancelled"
    assert await code("tool_call/cancel", toolCallId=shell) == -32602
    assert await code("terminal/cancel", terminalId=shell) == -32602


@pytest.mark.covers("P7", "P5")
async def test_a_terminal_is_cancelled_twice_and_exits_once(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.add(answer(Call("shell", {"command": "trap '' TERM; echo begun; sleep 300"})))
    model_server.otherwise = answer("I see.")
    client, session = await opened_v2()
    message = await client.said(client.post_prompt(session, "Go"))
    terminal = (await client.expect_update(session, "terminal_output_chunk"))["terminalId"]
    await client.cancel_terminal(session, terminal)
    await client.cancel_terminal(session, terminal)  # it withstands the first signal for a moment
    assert (await client.idle(session, message))["stopReason"] == "end_turn"
    exits = [
        update["exitStatus"]
        for update in client.wire.updates(session, "terminal_update")
        if "exitStatus" in update
    ]
    assert exits == [{"signal": "SIGKILL"}]
    assert client.view(session).terminals[terminal].output == b"begun\r\n"
