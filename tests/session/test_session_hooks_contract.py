"""Hooks behave as the reference of their contract says, each case through a session."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from acp_agent.errors import ModelError
from acp_agent.events import NoticeShown, ToolEnded
from tests.session.test_session_hooks import Hooked, hooked, prints, says, settings, told, write
from tests.support.model_server import Call, ModelServer, Status, answer
from tests.support.open_session import home_paths, presses

__all__ = ["hooked"]  # a fixture

TOUCH = Call("shell", {"command": "touch made"})
WRITE = Call("write", {"path": "new.txt", "content": "new\n"})
READS = Call("shell", {"command": "echo read"})


def writes(path: Path, line: str = "true") -> str:
    """A command line that keeps the event in a file, and then runs another."""
    return f"cat > {shlex.quote(str(path))}; {line}"


REFUSALS = {
    "a decision of a program that fails": prints(decision="block", reason="REASON") + "; exit 1",
    "the reason in JSON before that on stderr": (
        prints(decision="block", reason="REASON") + "; echo other >&2; exit 2"
    ),
    "stderr where the JSON does not refuse": (
        prints(systemMessage="hello") + "; echo REASON >&2; exit 2"
    ),
    "nothing that is allowed with exit code 2": (
        says(permissionDecision="allow") + "; echo REASON >&2; exit 2"
    ),
    "stderr where the JSON is wrong": "echo '{\"decision\": 7}'; echo REASON >&2; exit 2",
    "the end of the session's turn": prints(**{"continue": False, "stopReason": "REASON"}),
}


@pytest.mark.parametrize("case", REFUSALS)
async def test_a_call_is_refused_as_the_reference_says(
    hooked: Hooked, model_server: ModelServer, case: str
) -> None:
    async with hooked({"PreToolUse Bash": REFUSALS[case]}) as desk:
        desk.editor.decide = presses("allow_once")
        model_server.add(answer(TOUCH), answer("Pity."))
        await desk.say("Do it")
        (ended,) = desk.editor.of(ToolEnded)
        assert ended.failed
        assert "REASON" in ended.result
        assert not (desk.folder / "made").exists()
        stopped = case.startswith("the end")
        assert len(model_server.requests) == (1 if stopped else 2)


PATCH = """*** Begin Patch
*** Add File: new.txt
+new
*** Add File: kept.env
+new
*** End Patch"""
FORMS = {
    "a name of another agent": Call("bash", {"command": "touch kept.env"}),
    "fields of another agent": Call("run_shell_command", {"cmd": "touch kept.env"}),
    "a patch of several files": Call("apply_patch", {"input": PATCH}),
    "a command that is a patch": Call("shell", {"command": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}),
    "a path in another form": Call("write", {"path": "@./kept.env", "content": "new"}),
    "edits of several files": Call(
        "edit",
        {
            "edits": [
                {"path": "new.txt", "old": "", "new": "x"},
                {"path": "kept.env", "old": "", "new": "x"},
            ]
        },
    ),
}


@pytest.mark.parametrize("form", FORMS)
async def test_a_hook_sees_what_a_call_does_in_every_form_of_the_call(
    hooked: Hooked, model_server: ModelServer, form: str
) -> None:
    line = (
        'python3 -c \'import json, sys; made = json.load(sys.stdin)["tool_input"];'
        'text = made.get("command") or made["file_path"]; sys.exit(2 * text.endswith("/kept.env")'
        ' or 2 * text.endswith(" kept.env"))\''
    )
    async with hooked({"PreToolUse Bash|Edit|Write": line}) as desk:
        desk.editor.decide = presses("allow_once")
        model_server.add(answer(FORMS[form]), answer("Pity."))
        await desk.say("Do it")
        (ended,) = desk.editor.of(ToolEnded)
        assert "hook" in ended.result
        assert not (desk.folder / "kept.env").exists()
        assert not (desk.folder / "new.txt").exists()


async def test_a_hook_sees_each_replacement_before_and_each_file_once_after(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    line = f"cat >> {tmp_path}/told; echo >> {tmp_path}/told"
    edits = [{"old": "one", "new": "1"}, {"old": "two", "new": "2"}]
    async with hooked({"PreToolUse": line, "PostToolUse": line}) as desk:
        desk.editor.decide = presses("allow_once")
        (desk.folder / "a.txt").write_text("one two\n")
        model_server.add(answer(Call("edit", {"path": "a.txt", "edits": edits})), answer("Done."))
        await desk.say("Do it")
        assert (desk.folder / "a.txt").read_text() == "1 2\n"
        events = [json.loads(event) for event in (tmp_path / "told").read_text().splitlines()]
        made = [(event["hook_event_name"], event["tool_input"]["new_string"]) for event in events]
        assert made == [("PreToolUse", "1"), ("PreToolUse", "2"), ("PostToolUse", "1")]
        assert {event["tool_input"]["file_path"] for event in events} == {
            str(desk.folder / "a.txt")
        }


# A hook that allows a call, and has y in its texts replaced by z.
CHANGES_Y = """
import json, sys
event = json.load(sys.stdin)
texts = ("new_string", "input")
new = {k: v.replace("y", "z") if k in texts else v for k, v in event["tool_input"].items()}
name, out = event["hook_event_name"], {"permissionDecision": "allow", "updatedInput": new}
if name == "PermissionRequest":
    out = {"decision": {"behavior": "allow", "updatedInput": new}}
print(json.dumps({"hookSpecificOutput": {"hookEventName": name, **out}}))
"""


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
@pytest.mark.parametrize(
    ("name", "arguments", "written"),
    [
        (
            "edit",
            {"edits": [{"path": name, "old": "", "new": name} for name in ("x.a", "y.a")]},
            {"x.a": "x.a", "y.a": "z.a", "old.a": "x y\n"},
        ),
        (
            "edit",
            {"path": "old.a", "edits": [{"old": text, "new": text * 2} for text in "xy"]},
            {"old.a": "xx zz\n"},
        ),
        (
            "apply_patch",
            {"input": PATCH.replace("+new", "+y")},
            {"new.txt": "z\n", "kept.env": "z\n", "old.a": "x y\n"},
        ),
    ],
    ids=["files", "replacements", "patch"],
)
async def test_new_arguments_for_a_part_of_a_call_change_that_part_alone(
    hooked: Hooked,
    model_server: ModelServer,
    tmp_path: Path,
    event: str,
    name: str,
    arguments: dict[str, Any],
    written: dict[str, str],
) -> None:
    (tmp_path / "hook.py").write_text(CHANGES_Y)
    async with hooked({event: f"{sys.executable} {tmp_path}/hook.py"}) as desk:
        desk.editor.decide = presses("reject_once")
        (desk.folder / "old.a").write_text("x y\n")
        read = Call("read", {"path": "old.a"})
        model_server.add(answer(read), answer(Call(name, arguments)), answer("Done."))
        await desk.say("Do it")
        assert desk.editor.asked == []
        assert {path.name: path.read_text() for path in desk.folder.glob("*.*")} == written
        assert "A hook changed the arguments" in desk.results()[-1]


async def test_a_hook_cannot_name_another_file_for_one_of_several_replacements(
    hooked: Hooked, model_server: ModelServer
) -> None:
    edits = [{"old": "x", "new": "1"}, {"old": "y", "new": "2"}]
    changed = {"file_path": "b.txt", "old_string": "x", "new_string": "3"}
    async with hooked({"PreToolUse Edit": says(updatedInput=changed)}) as desk:
        desk.editor.decide = presses("allow_once")
        (desk.folder / "a.txt").write_text("x y\n")
        model_server.add(answer(Call("edit", {"path": "a.txt", "edits": edits})), answer("Pity."))
        await desk.say("Do it")
        # Both parts got the same file and text, so the second is not found after the first.
        assert desk.editor.of(ToolEnded)[0].failed
        assert (desk.folder / "a.txt").read_text() == "x y\n"


async def test_an_exit_code_other_than_2_does_not_hide_what_a_hook_adds(
    hooked: Hooked, model_server: ModelServer
) -> None:
    line = says(additionalContext="Mind the gap.") + "; exit 3"
    async with hooked({"PreToolUse Bash": line}) as desk:
        desk.editor.decide = presses("allow_once")
        model_server.add(answer(READS), answer("Done."))
        await desk.say("Do it")
        assert "Mind the gap." in desk.results()[0]
        assert not [one for one in desk.editor.of(NoticeShown) if "failed" in one.title]


async def test_text_in_braces_is_context_where_text_is_context(
    hooked: Hooked, model_server: ModelServer
) -> None:
    async with hooked({"SessionStart": "echo '{not json} Use tabs.'"}) as desk:
        model_server.add(answer("Hello."))
        await desk.say("Hello")
        assert "Use tabs." in json.dumps(model_server.requests[0].json["messages"])


@pytest.mark.parametrize("safe", [True, False])
async def test_a_hook_that_allows_other_arguments_has_those_judged(
    hooked: Hooked, model_server: ModelServer, *, safe: bool
) -> None:
    command = "touch other" if safe else "touch denied"
    decision = {"behavior": "allow", "updatedInput": {"command": command}}
    config = '[permissions]\ndeny = ["Bash(touch denied)"]\n'
    hooks = {"PermissionRequest Bash": says(decision=decision)}
    async with hooked(hooks, config=config) as desk:
        model_server.add(answer(TOUCH), answer("Done."))
        await desk.say("Do it")
        assert desk.editor.asked == []
        assert not (desk.folder / "made").exists()
        assert (desk.folder / "other").exists() is safe
        assert not (desk.folder / "denied").exists()


async def test_a_hook_that_refuses_for_the_user_can_end_the_turn(
    hooked: Hooked, model_server: ModelServer
) -> None:
    decision = {"behavior": "deny", "message": "Not now.", "interrupt": True}
    async with hooked({"PermissionRequest": says(decision=decision)}) as desk:
        model_server.add(answer(TOUCH))
        await desk.say("Do it")
        assert "Not now." in desk.editor.of(ToolEnded)[0].result
        assert len(model_server.requests) == 1


async def test_exit_code_2_after_all_calls_ends_the_turn(
    hooked: Hooked, model_server: ModelServer
) -> None:
    async with hooked({"PostToolBatch": "echo enough >&2; exit 2"}) as desk:
        desk.editor.decide = presses("allow_once")
        model_server.add(answer(READS))
        await desk.say("Do it")
        assert len(model_server.requests) == 1


async def test_results_of_commands_and_edits_have_the_fields_that_hooks_read(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    hooks = {
        "PostToolUse Bash": writes(tmp_path / "shell"),
        "PostToolUse Write": writes(tmp_path / "write"),
    }
    async with hooked(hooks) as desk:
        desk.editor.decide = presses("allow_once")
        model_server.add(answer(READS, WRITE), answer("Done."))
        await desk.say("Do it")
        ran = told(tmp_path / "shell")["tool_response"]
        assert "read" in ran["stdout"]
        assert (ran["stderr"], ran["interrupted"]) == ("", False)
        wrote = told(tmp_path / "write")["tool_response"]
        assert wrote["filePath"] == str(desk.folder / "new.txt")
        assert wrote["success"] is True


async def test_hooks_get_the_reason_of_a_failed_turn_and_can_match_it(
    hooked: Hooked, model_server: ModelServer, tmp_path: Path
) -> None:
    hooks = {
        "StopFailure rate_limit|billing_error": writes(tmp_path / "billing"),
        "StopFailure server_error": writes(tmp_path / "server"),
    }
    async with hooked(hooks) as desk:
        model_server.add(Status(code=402, message="no money"))
        with pytest.raises(ModelError):
            await desk.say("Do it")
        event = told(tmp_path / "billing")
        assert event["error"] == "billing_error"
        assert "no money" in event["error_details"]
        assert not (tmp_path / "server").exists()


async def test_a_shell_that_a_hook_names_runs_it(hooked: Hooked, model_server: ModelServer) -> None:
    line = "[[ $- != *z* ]] && echo ${BASH_VERSION:-none} >&2 && exit 2"
    async with hooked({"PreToolUse": {"command": line, "shell": "bash"}}) as desk:
        model_server.add(answer(TOUCH), answer("Pity."))
        await desk.say("Do it")
        (ended,) = desk.editor.of(ToolEnded)
        assert ended.failed
        assert "none" not in ended.result


def test_time_limits_are_those_of_the_reference(tmp_path: Path) -> None:
    from acp_agent.hooks.settings_files import hooks_in
    from acp_agent.hooks.types import Hook

    kinds: dict[str, dict[str, Any]] = {
        "command": {"command": "true"},
        "http": {"url": "http://127.0.0.1/"},
        "mcp_tool": {"server": "a", "tool": "b"},
        "prompt": {"prompt": "?"},
    }
    found = {}
    for event in ("PreToolUse", "UserPromptSubmit"):
        for kind, fields in kinds.items():
            groups = json.loads(settings({event: {"type": kind, **fields}}))["hooks"]
            (hook,) = hooks_in(groups, str(tmp_path), by_user=True)
            assert isinstance(hook, Hook)
            found[f"{event} {kind}"] = hook.timeout
    assert found == {
        "PreToolUse command": 600,
        "PreToolUse http": 600,
        "PreToolUse mcp_tool": 600,
        "PreToolUse prompt": 30,
        "UserPromptSubmit command": 30,
        "UserPromptSubmit http": 30,
        "UserPromptSubmit mcp_tool": 30,
        "UserPromptSubmit prompt": 30,
    }


async def test_headers_have_only_the_variables_that_a_file_names(tmp_path: Path) -> None:
    from acp_agent.extensions.definitions.locations import find_folders
    from acp_agent.hooks.sources import find_hooks
    from tests.hooks.test_hooks_running import runner
    from tests.support.web_site import Server, response

    async with Server() as server:
        server.pages = {"/hook": response(b"{}", "application/json")}
        home = home_paths(tmp_path).data_dir
        handler = {
            "type": "http",
            "url": f"http://127.0.0.1:{server.port}/hook",
            "headers": {"X-Both": "$TOKEN-${NAME}"},
            "allowedEnvVars": ["NAME"],
        }
        write(home, settings({"Stop": handler}))
        (hook,) = find_hooks(
            {},
            config_file="",
            home=home,
            folders=find_folders(tmp_path, user=home, home=home),
            cwd=tmp_path,
            trusts=lambda _: True,
        ).hooks
        assert not (await runner(tmp_path).run(hook, {})).failure
        assert "-value" in str(server.requests)
        assert "t0ken" not in str(server.requests)
