"""Skills and agents have hooks in their front matter, which run while they are in use."""

from __future__ import annotations

import json
from pathlib import Path

from acp_agent.events import NoticeShown
from tests.session.agent_and_skill import TASK, USE, make_the_users, write_agent, write_skill
from tests.session.test_session_hooks import Hooked, hooked, says
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import home_paths

__all__ = ["hooked"]

LIST = Call("shell", {"command": "echo listed"})


def guard(tmp_path: Path, once: str = "") -> str:
    """Front matter that refuses commands and records the event, and records the end."""
    return f"""hooks:
  PreToolUse:
    - matcher: Bash
      hooks:
        - type: command
          command: cat > {tmp_path}/event; echo 'not in here' >&2; exit 2
{once}
  Stop:
    - hooks:
        - type: command
          command: cat > {tmp_path}/stopped"""


def event(path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(path.read_text())
    return found


async def test_the_hooks_of_a_skill_run_from_its_use_on_and_not_before(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    write_skill(tmp_path / "project", guard(tmp_path))
    async with hooked() as desk:
        model_server.add(answer(LIST), answer("Done."))
        await desk.say("Do it")
        assert "listed" in desk.results()[0]
        model_server.add(answer(USE), answer(LIST), answer("Done."))
        await desk.say("Review it")
        assert "not in here" in desk.results()[-1]
        assert (tmp_path / "stopped").exists()
        model_server.add(answer(LIST), answer("Done."))
        await desk.say("Again")
        assert "not in here" in desk.results()[-1]
        assert desk.editor.of(NoticeShown) == []


async def test_the_hooks_of_a_skill_that_the_user_chose_run_in_its_first_turn(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    once = "          once: true"
    write_skill(tmp_path / "project", guard(tmp_path, once))
    async with hooked() as desk:
        model_server.add(answer(LIST), answer(LIST), answer("Done."))
        await desk.say("/skill:review the parser")
        refused, allowed = desk.results()[-2:]
        assert "not in here" in refused
        assert "listed" in allowed


async def test_the_hooks_of_an_agent_run_for_its_calls_and_its_end_alone(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    write_agent(tmp_path / "project", guard(tmp_path))
    async with hooked() as desk:
        model_server.add(
            answer(TASK), answer(LIST), answer("Port 80."), answer(LIST), answer("Done.")
        )
        await desk.say("Find it")
        bodies = [request.body for request in model_server.requests]
        assert b"not in here" in bodies[2]
        assert b"not in here" not in bodies[4]
        stopped = event(tmp_path / "stopped")
        assert stopped["hook_event_name"] == "SubagentStop"
        assert stopped["agent_type"] == "explore"
        assert stopped["agent_id"] == event(tmp_path / "event")["agent_id"] != "explore"
        transcript = Path(str(stopped["agent_transcript_path"])).read_text()
        assert "Which port is used?" in transcript
        assert "Port 80." in transcript


async def test_a_projects_skill_allows_nothing_and_the_users_own_may(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    line = json.dumps(says(permissionDecision="allow"))
    more = f"hooks:\n  PreToolUse:\n    - hooks:\n      - type: command\n        command: {line}"
    touch = Call("shell", {"command": "touch made"})
    for mine in (False, True):
        write_skill(tmp_path / "project", more)
        if mine:
            make_the_users(tmp_path / "project", home_paths(tmp_path).config_file.parent)
        async with hooked() as desk:
            model_server.add(answer(USE), answer(touch), answer("Done."))
            await desk.say("Review it")
            assert (len(desk.editor.asked) == 0) is mine


async def test_an_error_in_the_hooks_of_a_skill_is_reported_with_its_line(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    write_skill(tmp_path / "project", "hooks:\n  PreToolUse:\n    - hooks: [{type: command}]")
    async with hooked() as desk:
        model_server.add(answer("Hello."))
        await desk.say("Hi")
        (notice,) = desk.editor.of(NoticeShown)
        assert "SKILL.md:5: hooks.PreToolUse: give either a command" in (notice.description or "")


async def test_a_skill_needs_trust_again_when_a_script_of_its_hooks_changes(
    tmp_path: Path,
) -> None:
    from acp_agent.extensions.definitions.reading import _item

    script = tmp_path / "check.sh"
    script.write_text("exit 0\n")
    skill = write_skill(
        tmp_path, "hooks:\n  Stop:\n    - hooks: [{type: command,\n      command: ./check.sh }]"
    )
    path = skill / "SKILL.md"
    before = _item("skills", path, path.read_bytes(), str(tmp_path))
    assert "hooks: ./check.sh" in before.what
    script.write_text("exit 2\n")
    assert _item("skills", path, path.read_bytes(), str(tmp_path)).digest != before.digest
