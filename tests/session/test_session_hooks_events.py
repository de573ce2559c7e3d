"""Hooks are told of more than calls: tasks, files, instructions, settings, questions, answers."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from acp_agent.events import AgentText, NoticeShown, ToolEnded
from acp_agent.workspace.environment import plain_variables
from tests.extensions.mcp_session import PROGRAM
from tests.session.test_session_hooks import Hooked, hooked, prints, says, settings, write
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import home_paths, presses

__all__ = ["hooked"]  # a fixture


def appends(path: Path, line: str = "true") -> str:
    """A command line that adds the event to a file, and then runs another."""
    return f"cat >> {shlex.quote(str(path))}; echo >> {shlex.quote(str(path))}; {line}"


def events(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def plan(**states: str) -> Call:
    return Call("todo", {"todos": [{"content": one, "status": states[one]} for one in states]})


async def test_tasks_are_reported_when_they_are_created_and_completed(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    hooks = {
        "TaskCreated": appends(tmp_path / "created"),
        "TaskCompleted": appends(tmp_path / "completed", "echo 'tests fail' >&2; exit 2"),
    }
    async with hooked(hooks) as desk:
        first, second = (
            plan(a="pending", b="pending"),
            plan(a="completed", b="pending", c="pending"),
        )
        model_server.add(answer(first), answer(second), answer("Done."))
        await desk.say("Plan it")
        created = [one["task_subject"] for one in events(tmp_path / "created")]
        assert created == ["a", "b"]  # the second plan is refused as a whole
        (completed,) = events(tmp_path / "completed")
        assert (completed["task_subject"], completed["task_id"]) == ("a", "1")
        assert [one.failed for one in desk.editor.of(ToolEnded)] == [False, True]
        assert "tests fail" in desk.results()[-1]


async def test_changes_of_watched_files_are_reported_by_name_and_by_request(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / ".env").write_text("A=1\n")
    hooks = {
        "SessionStart": says(watchPaths=[str(project / "more" / "lock")]),
        "FileChanged .envrc|.env": appends(tmp_path / "named"),
        "FileChanged": appends(tmp_path / "all"),
    }
    async with hooked(hooks) as desk:
        desk.editor.decide = presses("allow_once")
        line = "echo A=2 > .env; mkdir more; touch more/lock unwatched"
        model_server.add(answer(Call("shell", {"command": line})), answer("Done."))
        await desk.say("Do it")
        (named,) = events(tmp_path / "named")
        assert (named["file_path"], named["event"]) == (str(project / ".env"), "change")
        every = {(one["file_path"], one["event"]) for one in events(tmp_path / "all")}
        assert every == {
            (str(project / ".env"), "change"),
            (str(project / "more" / "lock"), "add"),
        }


async def test_instruction_files_are_reported_with_the_reason(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / "inner").mkdir(parents=True)
    (project / "AGENTS.md").write_text("Use tabs.\n")
    (project / "inner" / "AGENTS.md").write_text("Use spaces.\n")
    (project / "inner" / "code.py").write_text("pass\n")
    hooks = {
        "InstructionsLoaded session_start": appends(tmp_path / "start"),
        "InstructionsLoaded nested_traversal": appends(tmp_path / "nested"),
    }
    async with hooked(hooks) as desk:
        model_server.add(answer(Call("read", {"path": "inner/code.py"})), answer("Done."))
        await desk.say("Read it")
        (start,) = events(tmp_path / "start")
        assert (start["file_path"], start["memory_type"]) == (str(project / "AGENTS.md"), "Project")
        (nested,) = events(tmp_path / "nested")
        assert nested["file_path"] == str(project / "inner" / "AGENTS.md")
        assert nested["trigger_file_path"] == str(project / "inner" / "code.py")


@pytest.mark.parametrize("refused", [True, False])
async def test_a_change_of_hooks_is_reported_and_can_be_refused(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path, *, refused: bool
) -> None:
    home = home_paths(tmp_path).data_dir
    change = appends(tmp_path / "changed", "echo frozen >&2; exit 2" if refused else "true")
    async with hooked({"ConfigChange user_settings": change}) as desk:
        model_server.add(*[answer("Hello.")] * 3)
        await desk.say("One")
        write(home, settings({"UserPromptSubmit": "echo 'Use tabs.'"}))
        await desk.say("Two")
        await desk.say("Three")
        (event,) = events(tmp_path / "changed")
        assert event["file_path"] == str(home / ".claude" / "settings.json")
        assert ("Use tabs." in json.dumps(desk.sent())) is not refused
        titles = [one.title for one in desk.editor.of(NoticeShown)]
        assert any("refused" in one for one in titles) is refused


async def test_the_text_of_an_answer_passes_hooks_before_it_is_shown(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    script = tmp_path / "display.py"
    script.write_text(
        "import json, sys\n"
        "event = json.load(sys.stdin)\n"
        f"open({str(tmp_path / 'seen')!r}, 'a').write(json.dumps(event) + '\\n')\n"
        "text = event['delta'].replace('fruit', 'apple')\n"
        "print(json.dumps({'hookSpecificOutput': {'displayContent': text}}))\n"
    )
    async with hooked({"MessageDisplay": f"{sys.executable} -S {script}"}) as desk:
        model_server.add(answer("A fru", "it.\nAnd", " one more fruit"))
        await desk.say("Hello")
        shown = "".join(one.text for one in desk.editor.of(AgentText))
        assert shown == "A apple.\nAnd one more apple"
        seen = events(tmp_path / "seen")
        assert [one["delta"] for one in seen] == ["A fruit.\n", "And one more fruit"]
        assert [(one["index"], one["final"]) for one in seen] == [(0, False), (1, True)]


SERVER = """
[mcp_servers.memo]
command = "{python}"
args = ["-S", "{program}", "elicits"]
env = {{ MCP_RECORD = "{record}" }}
"""
FORMS = {
    "accept": ('{"action": "accept", "content": {"value": "Eve"}}', 0),
    "decline": ('{"action": "decline"}', 0),
    "the user": ('{"action": "decline"}', 1),
}


@pytest.mark.parametrize("by", FORMS)
async def test_hooks_answer_the_questions_of_servers_and_hear_the_answers(
    hooked: Hooked,
    model_server: ModelServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    by: str,
) -> None:
    monkeypatch.setattr("acp_agent.session.mcp.servers.READY_TIMEOUT", 60.0)
    hooks = {"ElicitationResult memo": appends(tmp_path / "result")}
    if by != "the user":
        given = {"action": by} | ({"content": {"value": "Eve"}} if by == "accept" else {})
        hooks["Elicitation memo"] = appends(tmp_path / "asked", says(**given))
    record = tmp_path / "record"
    config = SERVER.format(python=sys.executable, program=PROGRAM, record=record)
    async with hooked(hooks, config=config) as desk:
        desk.editor.decide = presses("allow_once")
        model_server.add(answer(Call("mcp__memo__name", {"text": "x"})), answer("Done."))
        await desk.say("Ask")
        expected, _ = FORMS[by]
        assert expected in desk.results()[0]
        if by == "the user":
            assert not (tmp_path / "asked").exists()
            return
        (asked,) = events(tmp_path / "asked")
        assert (asked["mcp_server_name"], asked["mode"]) == ("memo", "form")
        assert "value" in json.dumps(asked["requested_schema"])
        (result,) = events(tmp_path / "result")
        assert result["action"] == by


async def test_variables_that_a_hook_sets_are_those_of_commands(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    line = 'echo "export COLOUR=green\nexport TOOLS=$PWD/tools" >> "$CLAUDE_ENV_FILE"'
    async with hooked({"SessionStart": line}) as desk:
        desk.editor.decide = presses("allow_once")
        shell = Call("shell", {"command": "python3 -c 'import os; print(os.environ)'"})
        model_server.add(answer(shell), answer("Done."))
        await desk.say("Do it")
        (ran,) = desk.results()
        assert "'COLOUR': 'green'" in ran
        assert f"'TOOLS': '{desk.folder}/tools'" in ran


def test_commands_without_permission_get_no_variable_that_leads_to_programs() -> None:
    given = {"MODE": "test-1", "TOOLS": "./tools", "GIT_DIR": "x", "PAGER": "x", "LD_PRELOAD": "x"}
    assert plain_variables(given | {"PATH": "x", "EMPTY": ""}) == {"MODE": "test-1", "EMPTY": ""}


async def test_an_agent_reads_files_before_it_decides_for_a_hook(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "rules.txt").write_text("No touching.\n")
    agent = {"type": "agent", "prompt": "Do the rules allow this? $ARGUMENTS"}
    async with hooked({"PreToolUse": agent}) as desk:
        model_server.add(
            answer(Call("shell", {"command": "touch made"})),
            answer(Call("read", {"path": "rules.txt"})),
            answer('{"ok": false, "reason": "The rules forbid it."}'),
            answer("Pity."),
        )
        await desk.say("Do it")
        assert "No touching." in json.dumps(model_server.requests[2].json)
        assert "The rules forbid it." in json.dumps(desk.sent())
        assert not (project / "made").exists()
        offered = {one["function"]["name"] for one in model_server.requests[1].json["tools"]}
        assert offered <= {"read", "grep", "glob", "list"}


async def test_the_first_prompt_after_a_summary_begins_with_the_text_of_a_hook(
    hooked: Hooked, model_server: ModelServer
) -> None:
    hooks = {"SessionStart compact": "echo 'Remember: use Bun.'", "SessionStart startup": "true"}
    async with hooked(hooks) as desk:
        model_server.add(answer("word " * 3_000), answer("OK."), answer("Short."), answer("Fine."))
        await desk.say("word " * 3_000)
        await desk.say("Hello")
        await desk.say("/compact")
        await desk.say("Go on")
        assert "use Bun" in json.dumps(desk.sent())


async def test_a_hook_can_prevent_a_summary(hooked: Hooked, model_server: ModelServer) -> None:
    async with hooked({"PreCompact manual": prints(decision="block", reason="Not yet.")}) as desk:
        model_server.add(answer("word " * 3_000), answer("OK."))
        await desk.say("word " * 3_000)
        await desk.say("Hello")
        await desk.say("/compact names")
        assert len(model_server.requests) == 2
