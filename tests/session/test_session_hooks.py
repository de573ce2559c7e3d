"""Hooks decide about calls, prompts and the end of turns, and never widen the policy."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from acp_agent.events import NoticeShown, PermissionDecided, ToolEnded
from tests.session.agent_and_skill import write_agent, write_skill
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import Desk, home_paths, open_desk, presses

LIST = Call("shell", {"command": "echo listed"})
TOUCH = Call("shell", {"command": "touch made"})


def says(**specific: object) -> str:
    """A command line that answers with this."""
    return f"printf %s {shlex.quote(json.dumps({'hookSpecificOutput': specific}))}"


def prints(**output: object) -> str:
    """A command line that prints this as JSON."""
    return f"printf %s {shlex.quote(json.dumps(output))}"


def settings(hooks: Mapping[str, str | dict[str, Any]]) -> str:
    """The text of a settings file, from command lines or handlers by `EVENT MATCHER`."""
    groups: dict[str, list[object]] = {}
    for key, one in hooks.items():
        event, _, matcher = key.partition(" ")
        handler = {"command": one} if isinstance(one, str) else one
        group = {"matcher": matcher, "hooks": [{"type": "command", **handler}]}
        groups.setdefault(event, []).append(group)
    return json.dumps({"hooks": groups})


class Hooked(Protocol):
    def __call__(
        self, hooks: Mapping[str, str | dict[str, Any]] | None = None, **options: Any
    ) -> AbstractAsyncContextManager[Desk]: ...


@pytest.fixture
def hooked(tmp_path: Path, model_server: ModelServer) -> Hooked:
    """Opens a session whose user has hooks in their home folder."""

    @asynccontextmanager
    async def opened(
        hooks: Mapping[str, str | dict[str, Any]] | None = None, **options: Any
    ) -> AsyncIterator[Desk]:
        if hooks:
            write(home_paths(tmp_path).data_dir, settings(hooks))
        async with open_desk(tmp_path, model_server, **options) as desk:
            yield desk

    return opened


def write(folder: Path, text: str) -> None:
    (folder / ".claude").mkdir(parents=True, exist_ok=True)
    (folder / ".claude" / "settings.json").write_text(text)


def told(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


async def test_a_hook_with_exit_code_2_refuses_the_call_with_its_reason(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    line = f"cat > {tmp_path}/told; echo 'use make instead' >&2; exit 2"
    async with hooked({"PreToolUse Bash": line, "PreToolUse Write": "exit 2"}) as desk:
        model_server.add(answer(TOUCH), answer("Pity."))
        await desk.say("Do it")
        (ended,) = desk.editor.of(ToolEnded)
        assert ended.failed
        assert "use make instead" in ended.result
        assert "use make instead" in desk.results()[0]
        assert desk.editor.asked == []
        assert not (desk.folder / "made").exists()
        (decided,) = desk.editor.of(PermissionDecided)
        assert (decided.allowed, decided.rule.split()[:2]) == (False, ["deny", "hook"])
        event = told(tmp_path / "told")
        assert event["tool_name"] == "Bash"
        assert event["tool_input"] == {"command": "touch made"}
        assert event["cwd"] == str(desk.folder)
        assert event["permission_mode"] == "default"
        assert event["session_id"] == desk.session.core.id


@pytest.mark.parametrize("mine", [True, False])
async def test_only_the_users_own_hook_answers_a_question_for_them(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path, *, mine: bool
) -> None:
    hooks = {"PreToolUse": says(permissionDecision="allow"), "PermissionRequest Bash": "true"}
    if not mine:
        (tmp_path / "project").mkdir()
        write(tmp_path / "project", settings(hooks))
    async with hooked(hooks if mine else None) as desk:
        desk.editor.decide = presses("reject_once")
        model_server.add(answer(TOUCH), answer("Done."))
        await desk.say("Do it")
        assert (desk.folder / "made").exists() is mine
        assert len(desk.editor.asked) == (0 if mine else 1)


POLICY = """
[permissions]
ask = ["Bash(touch asked)"]
deny = ["Bash(touch denied)"]
"""


@pytest.mark.parametrize("command", ["touch asked", "touch denied", "rm -rf ~/x"])
async def test_a_hook_cannot_allow_calls_that_the_policy_asks_about_or_refuses(
    hooked: Hooked, model_server: ModelServer, command: str
) -> None:
    everything = {
        "PreToolUse": says(permissionDecision="allow"),
        "PermissionRequest": says(decision={"behavior": "allow"}),
    }
    async with hooked(everything, config=POLICY) as desk:
        desk.editor.decide = presses("reject_once")
        model_server.add(answer(Call("shell", {"command": command})), answer("Pity."))
        await desk.say("Do it")
        (ended,) = desk.editor.of(ToolEnded)
        assert ended.failed
        assert len(desk.editor.asked) == (0 if command == "touch denied" else 1)


async def test_a_request_that_may_change_something_is_a_fetch_that_no_hook_can_allow(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    allow = {"PreToolUse WebFetch": f"cat > {tmp_path}/told; {says(permissionDecision='allow')}"}
    post = Call("http_request", {"url": "https://example.com/", "method": "POST", "body": "x"})
    async with hooked(allow, config="http_requests = true\n") as desk:
        desk.editor.decide = presses("reject_once")
        model_server.add(answer(post), answer("Pity."))
        await desk.say("Do it")
        assert len(desk.editor.asked) == 1
        event = told(tmp_path / "told")
        assert event["tool_name"] == "WebFetch"
        assert event["tool_input"]["method"] == "POST"


async def test_a_call_that_a_hook_changed_is_judged_and_shown_as_changed(
    hooked: Hooked, model_server: ModelServer
) -> None:
    changes = says(updatedInput={"command": "touch denied"})
    async with hooked({"PreToolUse": changes}, config=POLICY) as desk:
        model_server.add(answer(LIST), answer("Pity."))
        await desk.say("Do it")
        (ended,) = desk.editor.of(ToolEnded)
        assert ended.failed
        assert "denied" in ended.result
        assert any("changed a call" in one.title for one in desk.editor.of(NoticeShown))
    changes = says(updatedInput={"file_path": "other.txt", "content": "hooked"})
    async with hooked({"PreToolUse Write": changes}) as desk:
        model_server.add(answer(Call("write", {"path": "a.txt", "content": "x"})), answer("Done."))
        await desk.say("Do it")
        assert [one.name for one in desk.folder.glob("*.txt")] == ["other.txt"]
        assert (desk.folder / "other.txt").read_text() == "hooked"
        assert desk.editor.asked[0].locations[0].path.endswith("other.txt")
        assert "other.txt" in desk.results()[0]  # the model is told


async def test_a_hook_has_the_user_asked_although_nothing_else_would(
    hooked: Hooked, model_server: ModelServer
) -> None:
    asks = says(permissionDecision="ask", permissionDecisionReason="deploys on Fridays")
    async with hooked({"PreToolUse": asks}) as desk:
        await desk.session.core.settings.change("mode", "full")
        desk.editor.decide = presses("reject_once")
        model_server.add(answer(TOUCH), answer("Pity."))
        await desk.say("Do it")
        (asked,) = desk.editor.asked
        assert "deploys on Fridays" in repr(asked.content)
        assert not (desk.folder / "made").exists()


async def test_the_model_reads_comments_of_hooks_on_a_result(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    hooks: dict[str, str | dict[str, Any]] = {
        "PostToolUse Bash": {"command": "echo format it >&2; exit 2", "if": "Bash(echo:*)"},
        "PostToolUse Read": says(updatedToolOutput="nothing to see"),
        "PostToolUseFailure": f"cat > {tmp_path}/told",
    }
    async with hooked(hooks) as desk:
        (desk.folder / "a.txt").write_text("the text")
        calls = (LIST, Call("read", {"path": "a.txt"}), Call("read", {"path": "none"}))
        model_server.add(answer(*calls), answer("Done."))
        await desk.say("Do it")
        listed, read, missing = desk.results()
        assert "listed" in listed
        assert "format it" in listed
        assert read == "nothing to see"
        assert "none" in missing
        assert "none" in told(tmp_path / "told")["error"]


async def test_prompts_are_refused_or_get_more_context(
    hooked: Hooked, model_server: ModelServer
) -> None:
    line = "if grep -q password; then echo 'no passwords' >&2; exit 2; fi; echo 'It is Monday.'"
    async with hooked({"UserPromptSubmit": line, "SessionStart startup": "echo Speak."}) as desk:
        assert await desk.say("my password is x") == "refusal"
        assert "no passwords" in repr(desk.editor.shown)
        assert model_server.requests == []
        model_server.add(answer("Hello."), answer("Hello."))
        assert await desk.say("Hi") == "end_turn"
        body = model_server.requests[-1].body
        assert b"It is Monday." in body
        assert b"Speak." in body
        assert b"my password" not in body


async def test_a_prompt_that_joins_a_turn_is_asked_about_as_well(
    hooked: Hooked, model_server: ModelServer
) -> None:
    line = "if grep -q password; then echo 'no passwords' >&2; exit 2; fi"
    async with hooked({"UserPromptSubmit": line}) as desk:
        steered = asyncio.Event()

        async def decide(*_: object) -> str:
            await steered.wait()
            return "allow_once"

        desk.editor.decide = decide
        model_server.add(answer(TOUCH), answer("Done."))
        turn = await desk.begin("Hi")
        await desk.editor.until_asked()
        assert await desk.begin("my password is x") is turn
        steered.set()
        await turn.result()
        assert "no passwords" in repr(desk.editor.shown)
        assert all(b"my password" not in request.body for request in model_server.requests)


async def test_a_stop_hook_makes_the_model_continue_but_not_endlessly(
    hooked: Hooked, model_server: ModelServer
) -> None:
    hooks = {"Stop": prints(decision="block", reason="run the tests")}
    async with hooked(hooks) as desk:
        for _ in range(6):
            model_server.add(answer("Done."))
        assert await desk.say("Do it") == "end_turn"
        assert len(model_server.requests) == 6
        assert b"run the tests" in model_server.requests[1].body


async def test_an_agents_calls_and_its_end_have_hooks_too(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    write_agent(tmp_path / "project")
    line = f"cat > {tmp_path}/told; test -e {tmp_path}/once || {{ touch {tmp_path}/once; exit 2; }}"
    hooks = {
        "PreToolUse Bash": "echo 'not for agents' >&2; exit 2",
        "SubagentStart explore": says(additionalContext="Look in src."),
        "SubagentStop": f"echo 'name the lines' >&2; {line}",
    }
    async with hooked(hooks) as desk:
        model_server.add(
            answer(Call("task", {"agent": "explore", "title": "t", "task": "Find it"})),
            answer(LIST),
            answer("Found."),
            answer("Found in line 3."),
            answer("Done."),
        )
        await desk.say("Do it")
        bodies = [request.body for request in model_server.requests]
        assert b"Look in src." in bodies[1]
        assert b"not for agents" in bodies[2]
        assert b"name the lines" in bodies[3]
        assert b"Found in line 3." in bodies[4]
        assert told(tmp_path / "told")["agent_type"] == "explore"


async def test_a_projects_hooks_are_inert_until_it_is_trusted_and_after_they_changed(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    script = project / ".claude" / "hooks" / "guard.sh"
    script.parent.mkdir(parents=True)
    script.write_text("echo 'guarded' >&2; exit 2\n")
    write(project, settings({"PreToolUse": 'sh "$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh'}))

    async def result(desk: Desk) -> str:
        model_server.add(answer(LIST), answer("Done."))
        await desk.say("Do it")
        return desk.results()[-1]

    async with hooked(trusted=False) as desk:
        desk.editor.decide = presses("reject_once")
        assert "guarded" not in await result(desk)
        assert "guard.sh" in repr(desk.editor.asked[0].content)
        desk.editor.decide = presses("allow_always")
        await desk.say("/trust")
        assert "guarded" in await result(desk)
        desk.editor.decide = presses("reject_once")
        script.write_text("echo 'changed' >&2; exit 2\n")
        assert "changed" not in await result(desk)


async def test_hooks_that_fail_stop_nothing_and_are_reported_once(
    hooked: Hooked, model_server: ModelServer
) -> None:
    hooks: dict[str, str | dict[str, Any]] = {
        "PreToolUse Bash": "exit 1",
        "PreToolUse shell": {"command": "sleep 60", "timeout": 0.05},
        "PreToolUse .*": "yes",
        "PreToolUse (": "true",
        "PreToolUse": "echo '{'",
        "NoSuchEvent": "true",
    }
    async with hooked(hooks) as desk:
        for _ in range(2):
            model_server.add(answer(LIST), answer("Done."))
            await desk.say("Do it")
            assert "listed" in desk.results()[-1]
        titles = [one.title for one in desk.editor.of(NoticeShown)]
        (failed,) = [title for title in titles if title.startswith("A hook failed")]
        for part in ("exit code 1", "longer than 0.05 s", "cannot be read", "1,000,000 bytes"):
            assert part in failed
        (unused,) = [one for one in desk.editor.of(NoticeShown) if "not used" in one.title]
        assert "NoSuchEvent" in unused.description
        assert "matcher" in unused.description


async def test_a_hook_that_must_not_fail_refuses_the_call_when_it_does(
    hooked: Hooked, model_server: ModelServer
) -> None:
    guard = {"command": "no-such-program", "onFailure": "block"}
    async with hooked({"PreToolUse": guard}) as desk:
        model_server.add(answer(LIST), answer("Pity."))
        await desk.say("Do it")
        (ended,) = desk.editor.of(ToolEnded)
        assert ended.failed
        assert "no-such-program" in ended.result


async def test_a_hook_gets_all_calls_of_an_answer_together(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    context = says(hookEventName="PostToolBatch", additionalContext="look again")
    line = f"cat > {tmp_path}/told; {context}"
    async with hooked({"PostToolBatch": line}) as desk:
        model_server.add(answer(LIST, TOUCH), answer("Done."))
        assert await desk.say("Go") == "end_turn"
        calls = told(tmp_path / "told")["tool_calls"]
        assert [one["tool_input"]["command"] for one in calls] == ["echo listed", "touch made"]
        assert {one["tool_name"] for one in calls} == {"Bash"}
        assert any("listed" in one["tool_response"] for one in calls)
        assert "look again" in str(desk.sent())


async def test_a_hook_after_all_calls_can_end_the_turn(
    hooked: Hooked, model_server: ModelServer
) -> None:
    stop = prints(**{"continue": False, "stopReason": "enough"})
    async with hooked({"PostToolBatch": stop}) as desk:
        model_server.add(answer(LIST))
        await desk.say("Go")
        assert len(model_server.requests) == 1


async def test_a_hook_can_refuse_a_command_that_the_user_chose(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    line = f"cat > {tmp_path}/told; echo 'not today' >&2; exit 2"
    async with hooked({"UserPromptExpansion skill:review": line}) as desk:
        write_skill(desk.folder)
        assert await desk.say("/skill:review the parser") == "refusal"
        event = told(tmp_path / "told")
        assert (event["command_name"], event["command_args"]) == ("skill:review", "the parser")
        assert not model_server.requests
        model_server.add(answer("Hello."))
        assert await desk.say("Hello") == "end_turn"
