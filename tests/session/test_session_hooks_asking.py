"""Hooks that ask a model or a tool of an MCP server: they refuse, and allow nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from acp_agent.events import NoticeShown, ToolEnded
from tests.extensions.mcp_session import PROGRAM
from tests.session.test_session_hooks import settings, write
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import MODEL, Desk, home_paths, open_desk, presses

TOUCH = Call("shell", {"command": "touch made"})
CONFIG = 'titles = "prompt"\n'
DENY = {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "Frozen."}}
ALLOW = {"hookSpecificOutput": {"permissionDecision": "allow"}}


class Asking(Protocol):
    def __call__(
        self, hooks: Mapping[str, dict[str, Any]], config: str = ""
    ) -> AbstractAsyncContextManager[Desk]: ...


@pytest.fixture
def asking(tmp_path: Path, model_server: ModelServer) -> Asking:
    """Opens a session whose user has hooks, and an MCP server `memo` that repeats."""
    table = f"""
[limits]
mcp_ready_timeout = 60
mcp_connect_timeout = 60
[mcp_servers.memo]
command = "{sys.executable}"
args = ["-S", "{PROGRAM}", "repeats"]
env = {{ MCP_RECORD = "{tmp_path}/record" }}
"""

    @asynccontextmanager
    async def opened(hooks: Mapping[str, dict[str, Any]], config: str = "") -> AsyncIterator[Desk]:
        write(home_paths(tmp_path).data_dir, settings(dict(hooks)))
        servers = table if any("server" in one for one in hooks.values()) else ""
        async with open_desk(tmp_path, model_server, config=CONFIG + config + servers) as desk:
            yield desk

    return opened


def judges(prompt: str = "May this run? $ARGUMENTS", **more: Any) -> dict[str, Any]:
    return {"type": "prompt", "prompt": prompt, **more}


def says(**judgement: Any) -> Any:
    return answer(json.dumps(judgement))


def repeats(text: object, **more: Any) -> dict[str, Any]:
    """A hook that gets an answer of this text from the server."""
    text = text if isinstance(text, str) else json.dumps(text)
    asked = {"server": "memo", "tool": "repeat", "input": {"text": text}}
    return {"type": "mcp_tool", **asked, **more}


def failures(desk: Desk) -> list[str]:
    return [one.title for one in desk.editor.of(NoticeShown) if "hook failed" in one.title]


async def test_a_model_refuses_a_call_and_the_request_counts(
    asking: Asking, model_server: ModelServer
) -> None:
    async with asking({"PreToolUse Bash": judges()}) as desk:
        model_server.add(answer(TOUCH), says(ok=False, reason="Use make."), answer("Pity."))
        await desk.say("Do it")
        (ended,) = desk.editor.of(ToolEnded)
        assert ended.failed
        assert "Use make." in ended.result
        assert not (desk.folder / "made").exists()
        assert desk.editor.asked == []
        asked = model_server.requests[1].json["messages"]
        assert "data" in asked[0]["content"]
        assert "May this run? {" in asked[1]["content"]
        assert '"command":"touch made"' in asked[1]["content"]
        assert not model_server.requests[1].json.get("tools")


async def test_a_model_that_agrees_leaves_the_question_to_the_user(
    asking: Asking, model_server: ModelServer
) -> None:
    hooks = {"PreToolUse Bash": judges(), "PermissionRequest Bash": judges("And this?")}
    async with asking(hooks) as desk:
        desk.editor.decide = presses("reject_once")
        yes = {"ok": True, "permissionDecision": "allow", "decision": "approve"}
        model_server.add(answer(TOUCH), says(**yes), says(**yes), answer("Pity."))
        await desk.say("Do it")
        assert len(desk.editor.asked) == 1
        assert not (desk.folder / "made").exists()
        assert failures(desk) == []


async def test_an_answer_that_is_no_judgement_blocks_only_where_the_hook_says_so(
    asking: Asking, model_server: ModelServer
) -> None:
    async with asking({"PreToolUse Bash": judges()}) as desk:
        model_server.add(answer(TOUCH), answer("Sure, go ahead!"), answer("Done."))
        await desk.say("Do it")
        assert (desk.folder / "made").exists()
        assert "no judgement" in failures(desk)[0]
    async with asking({"PreToolUse Bash": judges(onFailure="block")}) as desk:
        (desk.folder / "made").unlink()
        model_server.add(answer(TOUCH), answer("Sure, go ahead!"), answer("Done."))
        await desk.say("Do it")
        assert not (desk.folder / "made").exists()


async def test_a_stop_hook_with_a_model_sees_the_answer_and_makes_the_session_continue(
    asking: Asking, model_server: ModelServer
) -> None:
    async with asking({"Stop": judges("Is it done? $ARGUMENTS")}) as desk:
        fenced = answer('```json\n{"ok": false, "reason": "Run the tests."}\n```')
        model_server.add(
            answer("I wrote it."), fenced, answer("They pass."), says(ok=False, impossible=True)
        )
        assert await desk.say("Do it") == "end_turn"
        assert "I wrote it." in model_server.requests[1].json["messages"][1]["content"]
        assert b"Run the tests." in model_server.requests[2].body
        assert len(model_server.requests) == 4


@pytest.mark.parametrize("goes_on", [False, True])
async def test_after_a_call_the_turn_ends_unless_the_hook_lets_it_continue(
    asking: Asking, model_server: ModelServer, *, goes_on: bool
) -> None:
    async with asking({"PostToolUse Bash": judges(continueOnBlock=goes_on)}) as desk:
        model_server.add(answer(TOUCH), says(ok=False, reason="Wrong file."), answer("Sorry."))
        await desk.say("Do it")
        assert len(model_server.requests) == (3 if goes_on else 2)
        assert "Wrong file." in str([*desk.editor.of(ToolEnded), *desk.editor.of(NoticeShown)])


async def test_the_model_of_a_hook_is_asked_where_there_is_one_and_the_budget_holds(
    asking: Asking, model_server: ModelServer
) -> None:
    hooks = {
        "PreToolUse Bash": judges(model="openai/blind"),
        "PostToolUse": judges(model="nobodys/model"),
    }
    async with asking(hooks) as desk:
        model_server.add(answer(TOUCH), says(ok=True), says(ok=True), answer("Done."))
        await desk.say("Do it")
        asked = [request.json["model"] for request in model_server.requests]
        assert asked == ["gpt-5", "blind", "gpt-5", "gpt-5"]
        assert MODEL == "openai/gpt-5"
    hook = {"UserPromptSubmit": judges("x" * 40_000)}
    async with asking(hook, "[budget]\nsession_tokens = 8_000\n") as desk:
        model_server.add(answer("Hello."))
        before = len(model_server.requests)
        await desk.say("Hi")
        assert len(model_server.requests) == before + 1  # the hook's request is not made
        assert failures(desk)


async def test_a_tool_of_a_server_refuses_and_is_given_what_the_event_has(
    asking: Asking, model_server: ModelServer, tmp_path: Path
) -> None:
    hooks = {
        "PreToolUse Bash": repeats(DENY),
        "UserPromptSubmit": repeats("${prompt} in ${session_id}${no.such}: ${prompt}"),
    }
    async with asking(hooks) as desk:
        model_server.add(answer(TOUCH), answer("Pity."))
        await desk.say("Do it")
        (ended,) = desk.editor.of(ToolEnded)
        assert "Frozen." in ended.result
        assert not (desk.folder / "made").exists()
        told = f"Do it in {desk.session.core.id}: Do it"
        assert told in (tmp_path / "record").read_text()
        assert told.encode() in model_server.requests[0].body  # text is context at a prompt


async def test_a_tool_of_a_server_allows_nothing(asking: Asking, model_server: ModelServer) -> None:
    allows = {"hookSpecificOutput": {"decision": {"behavior": "allow"}}}
    async with asking({"PreToolUse": repeats(ALLOW), "PermissionRequest": repeats(allows)}) as desk:
        desk.editor.decide = presses("reject_once")
        model_server.add(answer(TOUCH), answer("Pity."))
        await desk.say("Do it")
        assert len(desk.editor.asked) == 1
        assert not (desk.folder / "made").exists()


@pytest.mark.parametrize(
    ("change", "config", "why"),
    [
        ({"tool": "fail"}, "", "failed: text"),
        ({"tool": "none"}, "", "no tool 'none'"),
        ({"server": "nobody"}, "", "'nobody' is not connected"),
        ({}, '[permissions]\ndeny = ["mcp__memo__repeat"]\n', "is refused"),
    ],
)
async def test_a_tool_that_cannot_be_called_stops_nothing_and_is_reported(
    asking: Asking, model_server: ModelServer, change: dict[str, Any], config: str, why: str
) -> None:
    async with asking({"PreToolUse Bash": repeats("text", **change)}, config) as desk:
        model_server.add(answer(TOUCH), answer("Done."))
        await desk.say("Do it")
        assert (desk.folder / "made").exists()
        assert why in failures(desk)[0]
