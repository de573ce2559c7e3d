"""What the model is sent: the system prompt, a prefix that never changes, and what it costs."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from acp_agent.events import Usage
from tests.server.server_session import EDIT, MODELS, READ, OpenSession, messages, system
from tests.support.agent_process import config_file
from tests.support.model_server import Call, ModelServer, Thought, answer


def starts_like(before: bytes, after: bytes) -> bool:
    """Whether a request's messages and tools begin with the bytes of an earlier one's."""
    old, new = json.loads(before), json.loads(after)
    assert [old[key] for key in old if key != "messages"] == [
        new[key] for key in new if key != "messages"
    ]
    request_text = json.dumps(old["messages"], ensure_ascii=False)[:-1]
    return json.dumps(new["messages"], ensure_ascii=False).startswith(request_text)


async def test_instructions_of_the_user_the_parents_and_the_folder_are_in_the_system_prompt(
    opened: OpenSession, home: Path, model_server: ModelServer, workspace_repo: Path
) -> None:
    config_file(home, "")
    (home / "acp-agent" / "AGENTS.md").write_text("Rule of the user.")
    (workspace_repo / "AGENTS.md").write_text("Rule of the repository.")
    (workspace_repo / "src" / "AGENTS.md").write_text("Rule of the folder.")
    model_server.otherwise = answer("Understood.")
    running, _ = await opened()
    session = await running.new_session(workspace_repo / "src")
    await running.prompt(session, "hi")
    text = system(model_server)
    at = [text.index(f"Rule of the {subject}.") for subject in ("user", "repository", "folder")]
    assert at == sorted(at)
    assert str(workspace_repo / "src") in text


async def test_every_request_begins_with_the_one_before_across_turns_and_restarts(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    model_server.add(
        answer(Thought("Look.", "seal-1"), "I look.", READ, Call("grep", {"pattern": "Ada"})),
        answer(EDIT),
        answer(Call("shell", {"command": "echo out; exit 3"})),
        answer("Done ✓ 好."),
        answer(Thought("Hm.", "seal-2"), "Sure."),
        answer("After the restart."),
    )
    running, session = await opened(api="anthropic")
    await running.prompt(session, "edit it")
    (workspace_repo / "AGENTS.md").write_text("Written after the session had begun.")
    await running.prompt(session, "and now?")
    await running.stop()
    running, _ = await opened(api="anthropic")
    await running.request("session/resume", {"sessionId": session, "cwd": str(workspace_repo)})
    await running.prompt(session, "still there?")
    # The marks for the provider's cache move with the conversation; they are no content.
    bodies = [without_marks(request.body) for request in model_server.requests]
    assert len(bodies) == 6
    for before, after in pairwise(bodies):
        assert starts_like(before, after)


def without_marks(body: bytes) -> bytes:
    """A request without Anthropic's cache marks."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items() if key != "cache_control"}
        return [clean(item) for item in value] if isinstance(value, list) else value

    return json.dumps(clean(json.loads(body)), ensure_ascii=False).encode()


@pytest.mark.covers("P10")
async def test_usage_is_that_of_the_current_context_with_the_window_and_the_cost_so_far(
    opened: OpenSession, home: Path, model_server: ModelServer
) -> None:
    config_file(home, MODELS)
    model_server.add(
        answer(READ, usage=Usage(input=1_000, output=100)),
        answer("Read.", usage=Usage(input=2_000, output=50, cache_read=1_000)),
        answer("Again.", usage=Usage(input=3_000, output=10)),
    )
    running, session = await opened()
    await running.prompt(session, "read")
    await running.prompt(session, "again")
    usage = running.updates(session, "usage_update")
    assert [update["used"] for update in usage] == [1_100, 2_050, 3_010]
    assert {update["size"] for update in usage} == {200_000}
    # $2 and $10 a million, $0.50 for what came from the cache
    spent = [0.002 + 0.001]
    spent.append(spent[0] + 0.002 + 0.0005 + 0.0005)
    spent.append(spent[1] + 0.006 + 0.0001)
    assert [update["cost"]["amount"] for update in usage] == pytest.approx(spent)
    assert {update["cost"]["currency"] for update in usage} == {"USD"}


@pytest.mark.covers("P10")
async def test_without_a_known_price_no_cost_is_sent(
    opened: OpenSession, home: Path, model_server: ModelServer
) -> None:
    config_file(home, MODELS)
    model_server.otherwise = answer("Yes.", usage=Usage(input=10, output=5))
    running, session = await opened()
    option = {"sessionId": session, "configId": "model", "value": "openai/small"}
    await running.request("session/set_config_option", option)
    await running.prompt(session, "hi")
    (usage,) = running.updates(session, "usage_update")
    assert (usage["used"], usage["size"]) == (15, 32_000)
    assert usage.get("cost") is None


@pytest.mark.covers("P10", "S4")
async def test_the_cost_is_the_same_after_a_restart(
    opened: OpenSession, home: Path, model_server: ModelServer, workspace_repo: Path
) -> None:
    config_file(home, MODELS)
    model_server.otherwise = answer("Yes.", usage=Usage(input=1_000_000, output=0))
    running, session = await opened()
    await running.prompt(session, "one")
    await running.stop()
    running, _ = await opened()
    await running.request("session/resume", {"sessionId": session, "cwd": str(workspace_repo)})
    await running.prompt(session, "two")
    assert running.updates(session, "usage_update")[-1]["cost"]["amount"] == pytest.approx(4.0)


async def test_no_secret_that_a_command_prints_reaches_the_model_or_the_editor(
    opened: OpenSession, model_server: ModelServer
) -> None:
    secret = "hunter2-hunter2-hunter2"
    model_server.add(
        answer(Call("shell", {"command": f"printf %s {secret[:9]}; echo {secret[9:]}"})),
        answer("Printed."),
    )
    running, session = await opened(environ={"DEPLOY_TOKEN": secret})
    await running.prompt(session, "print it")
    (result,) = [m for m in messages(model_server) if m["role"] == "tool"]
    assert secret not in json.dumps(result)
    outputs = [
        update
        for update in running.updates(session, "tool_call_update")
        if update.get("content") or update.get("rawOutput")
    ]
    assert outputs
    assert secret not in json.dumps(outputs)
