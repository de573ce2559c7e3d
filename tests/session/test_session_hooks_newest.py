"""The newest additions to the hooks' contract: fields, events, hooks in the background."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acp_agent.errors import InvalidInputError
from acp_agent.events import NoticeShown
from tests.session.agent_and_skill import TASK, write_agent, write_skill
from tests.session.test_session_hooks import LIST, Hooked, hooked, prints, says, told
from tests.support.model_server import Call, ModelServer, answer

__all__ = ["hooked"]

KEY = "sk-ant-api03-" + "a1B2" * 20


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_the_transcript_is_that_of_the_reference_and_has_no_secret(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    async with hooked({"Stop": f"cat > {tmp_path}/event"}) as desk:
        model_server.add(answer(LIST), answer("Done."), answer("Bye."))
        await desk.say(f"List it with {KEY}")
        path = Path(told(tmp_path / "event")["transcript_path"])
        assert path.stat().st_mode & 0o077 == 0
        first = lines(path)
        assert [line["type"] for line in first] == ["user", "assistant", "user", "assistant"]
        prompt, call, result, last = (line["message"] for line in first)
        assert "List it" in prompt["content"]
        assert KEY not in path.read_text()
        (use,) = call["content"]
        assert (use["type"], use["name"]) == ("tool_use", "Bash")
        assert use["input"] == {"command": "echo listed"}
        (found,) = result["content"]
        assert (found["type"], found["tool_use_id"]) == ("tool_result", use["id"])
        assert "listed" in found["content"]
        assert last["content"] == [{"type": "text", "text": "Done."}]
        await desk.say("Thanks")
        assert lines(path)[: len(first)] == first
        assert len(lines(path)) == len(first) + 2
        parents = [line["parentUuid"] for line in lines(path)]
        assert parents == [None, *(line["uuid"] for line in lines(path)[:-1])]


async def test_events_have_the_prompt_the_effort_and_how_long_a_call_took(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    hooks = {
        "UserPromptSubmit": f"cat >> {tmp_path}/prompts",
        "PostToolUse": f"cat > {tmp_path}/call",
        "SessionStart": f"cat > {tmp_path}/start",
    }
    async with hooked(hooks) as desk:
        model_server.add(answer(LIST), answer("Done."), answer("Done."))
        await desk.say("One")
        await desk.say("Two")
        first, second = (
            json.loads(text)
            for text in (tmp_path / "prompts").read_text().replace("}{", "}\n{").splitlines()
        )
        call = told(tmp_path / "call")
        assert call["prompt_id"] == first["prompt_id"] != second["prompt_id"]
        assert call["duration_ms"] >= 0
        assert call["effort"] == {"level": desk.session.core.settings.thought_level}
        assert "agent_id" not in call
        assert "effort" not in told(tmp_path / "start")


async def test_a_refusal_of_a_background_hook_makes_the_model_continue(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    line = "echo 'the tests fail' >&2; touch ran; exit 2"
    wait = Call("shell", {"command": "until test -e ran; do sleep 0.1; done; sleep 0.5"})
    async with hooked(
        {"PostToolUse Bash": {"command": line, "asyncRewake": True, "once": True}}
    ) as desk:
        model_server.add(answer(LIST), answer(wait), answer("Done."), answer("Fixed."))
        await desk.say("Do it")
        await desk.session.core.background.wait()
        notes = [notice.for_model for notice in desk.editor.of(NoticeShown)]
        assert "the tests fail" in notes[0]
        assert b"the tests fail" in model_server.requests[2].body
        assert len(model_server.requests) == 4


async def test_a_hook_can_refuse_another_model_and_is_notified_of_a_change(
    hooked: Hooked, tmp_path: Path
) -> None:
    refuses = "{ echo 'too small' >&2; exit 2; }"
    line = f"tee {tmp_path}/asked | grep -q gpt-5.4-mini && {refuses} || true"
    hooks = {"PreModelSwitch": line, "PostModelSwitch": f"cat > {tmp_path}/changed"}
    async with hooked(hooks) as desk:
        with pytest.raises(InvalidInputError, match="too small"):
            await desk.session.set_option("model", "openai/gpt-5.4-mini")
        assert desk.session.core.settings.model.id == "gpt-5"
        await desk.session.set_option("model", "openai/gpt-5.2")
        asked, changed = told(tmp_path / "asked"), told(tmp_path / "changed")
        assert (asked["from_model"], asked["to_model"]) == ("gpt-5", "gpt-5.2")
        assert (changed["source"], changed["pricing"]) == ("picker", "catalog")
        assert desk.session.core.settings.model.id == "gpt-5.2"


async def test_a_change_of_a_skill_and_of_other_settings_is_reported(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    skill = write_skill(tmp_path / "project") / "SKILL.md"
    async with hooked({"ConfigChange": f"cat >> {tmp_path}/changed"}) as desk:
        model_server.add(*[answer("Hello.")] * 2)
        await desk.say("One")
        assert not (tmp_path / "changed").exists()
        skill.write_text(skill.read_text().replace("Reviews", "Checks"))
        (tmp_path / "project" / ".claude").mkdir()
        settings = tmp_path / "project" / ".claude" / "settings.local.json"
        settings.write_text('{"permissions": {"deny": ["Bash(rm *)"]}}')
        await desk.say("Two")
        text = (tmp_path / "changed").read_text()
        assert f'"source":"skills","file_path":"{skill}"' in text
        assert f'"source":"local_settings","file_path":"{settings}"' in text


async def test_a_hook_names_the_session_and_its_text_at_the_end_continues_the_turn(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    once = f"test -e {tmp_path}/once || {{ touch {tmp_path}/once;"
    stop = f"{once} {says(additionalContext='Run it.')}; }}"
    hooks = {"UserPromptSubmit": says(sessionTitle="The port"), "Stop": stop}
    async with hooked(hooks) as desk:
        model_server.add(answer("Done."), answer("It runs."))
        await desk.say("Do it")
        assert desk.session.core.state.title == "The port"
        assert b"Run it." in model_server.requests[1].body
        assert len(model_server.requests) == 2


async def test_a_hook_of_the_session_knows_an_agent_by_its_id(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    write_agent(tmp_path / "project")
    async with hooked({"PreToolUse Bash": f"cat > {tmp_path}/event; {prints()}"}) as desk:
        model_server.add(answer(TASK), answer(LIST), answer("Port 80."), answer("Done."))
        await desk.say("Find it")
        event = told(tmp_path / "event")
        assert event["agent_type"] == "explore"
        assert event["agent_id"] not in {"", "explore", event["session_id"]}
