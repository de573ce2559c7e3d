"""Hooks are found in the files of several programs, and what is not run is named."""

from __future__ import annotations

import json
from pathlib import Path

from acp_agent.extensions.definitions.locations import find_folders
from acp_agent.hooks.sources import FoundHooks, find_hooks
from acp_agent.hooks.tool_names import matches

CODEX = """
model = "x"
[[hooks.PreToolUse]]
matcher = "Bash"
[[hooks.PreToolUse.hooks]]
type = "command"
command = "check {name}"
[hooks.state.one]
trusted_hash = "x"
"""
GROUPS = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "stop"}]}]}}


def find(folder: Path, *, trusted: bool = True) -> FoundHooks:
    home, project = folder / "home", folder / "project"
    return find_hooks(
        {},
        config_file="",
        home=home,
        folders=find_folders(project, user=folder / "user", home=home),
        cwd=project,
        trusts=lambda _: trusted,
    )


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_hooks_of_codex_are_used_the_projects_once_it_is_trusted(tmp_path: Path) -> None:
    write(tmp_path / "home" / ".codex" / "config.toml", CODEX.format(name="mine"))
    theirs = write(tmp_path / "project" / ".codex" / "config.toml", CODEX.format(name="theirs"))
    write(tmp_path / "project" / ".codex" / "hooks.json", json.dumps(GROUPS))
    found = find(tmp_path)
    assert found.problems == ()
    assert [(one.event, one.command, one.by_user) for one in found.hooks] == [
        ("PreToolUse", "check mine", True),
        ("PreToolUse", "check theirs", False),
        ("Stop", "stop", False),
    ]
    before = find(tmp_path, trusted=False)
    assert [one.command for one in before.hooks] == ["check mine"]
    theirs.write_text(CODEX.format(name="theirs").replace('"x"', '"y"', 1))
    assert find(tmp_path, trusted=False).untrusted == before.untrusted
    theirs.write_text(CODEX.format(name="others"))
    assert find(tmp_path, trusted=False).untrusted != before.untrusted


def test_a_broken_file_of_codex_is_named_with_its_line(tmp_path: Path) -> None:
    file = write(tmp_path / "project" / ".codex" / "config.toml", 'a = "1"\nb = [\n')
    (problem,) = find(tmp_path).problems
    assert problem.path == str(file)
    assert "is not TOML" in problem.why


def test_hooks_with_another_contract_are_named(tmp_path: Path) -> None:
    cursor = write(tmp_path / "project" / ".cursor" / "hooks.json", "{}")
    github = write(tmp_path / "project" / ".github" / "hooks" / "all.json", "{}").parent
    problems = find(tmp_path).problems
    assert [one.path for one in problems] == [str(cursor), str(github)]
    assert {one.why for one in problems} == {
        "hooks of this program are not run here; write them as hooks of .claude/settings.json"
    }


def test_a_file_with_the_name_of_another_programs_folder_is_no_error(tmp_path: Path) -> None:
    write(tmp_path / "project" / ".codex", "notes")
    assert find(tmp_path).problems == ()


def test_events_that_never_happen_here_are_accepted(tmp_path: Path) -> None:
    group = [{"hooks": [{"type": "command", "command": "note"}]}]
    events = {"TeammateIdle": group, "WorktreeCreate": group, "WorktreeRemove": group}
    events |= {"Stop": group, "PreSkillShellCommand": group}
    path = tmp_path / "home" / ".claude" / "settings.json"
    write(path, json.dumps({"hooks": events}))
    found = find(tmp_path)
    assert found.problems == ()
    assert [hook.event for hook in found.hooks] == ["Stop"]
    write(path, json.dumps({"hooks": {**events, "Nope": group}}))
    (problem,) = find(tmp_path).problems
    assert problem.why.startswith("hooks.Nope: ")


def test_hooks_of_gemini_are_reported_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "project" / ".gemini" / "settings.json"
    write(file, '{"hooks": {"enabled": true, "BeforeTool": []}, "mcpServers": {}}')
    assert find(tmp_path).problems == ()
    group = '[{"matcher": "run_.*", "hooks": [{"type": "command", "command": "check"}]}]'
    write(file, '{\n  // ours\n  "hooks": {"BeforeTool": ' + group + "},\n}")
    found = find(tmp_path)
    (problem,) = found.problems
    assert problem.path == f"{file}:3"
    assert problem.why.startswith("hooks of this program are not run here; ")
    assert found.hooks == ()


def test_plugins_and_tools_of_opencode_are_named_once(tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".opencode"
    for name in ("plugin/a.ts", "plugin/b.js", "tools/c.ts"):
        write(folder / name, "export default {}")
    (folder / "tool").mkdir()  # empty
    table = write(tmp_path / "project" / "opencode.json", '{\n"plugin": ["opencode-example"]}')
    write(tmp_path / "project" / "opencode.jsonc", '{"plugin": []}')
    second = write(folder / "opencode.json", '{"plugins": ["./mine"]}')
    assert [(one.path, one.why.partition(";")[0]) for one in find(tmp_path).problems] == [
        (str(folder / "plugin"), "plugins of opencode are not run here"),
        (str(folder / "tools"), "tools of opencode are not run here"),
        (f"{table}:2", "plugins of opencode are not run here"),
        (f"{second}:1", "plugins of opencode are not run here"),
    ]


def test_a_hook_that_would_wake_the_model_waits_for_nothing(tmp_path: Path) -> None:
    handler = {"type": "command", "command": "wake", "asyncRewake": True}
    settings = {"hooks": {"Stop": [{"hooks": [handler]}]}}
    write(tmp_path / "home" / ".claude" / "settings.json", json.dumps(settings))
    (hook,) = find(tmp_path).hooks
    assert hook.runs_async


def test_a_wrong_handler_leaves_the_others_of_its_event_alone(tmp_path: Path) -> None:
    groups = [
        {"hooks": [{"type": 5}, {"type": "command", "command": "first"}, "no handler"]},
        {"hooks": 5},
        "no group",
        {"matcher": "Bash", "hooks": [{"type": "command", "command": "second"}]},
    ]
    settings = json.dumps({"hooks": {"PreToolUse": groups}})
    write(tmp_path / "home" / ".claude" / "settings.json", f"\ufeff{settings}")
    found = find(tmp_path)
    assert [one.command for one in found.hooks] == ["first", "second"]
    assert [one.why for one in found.problems] == [
        "hooks.PreToolUse: Expected `str`, got `int` - at `$[0].hooks[0].type`",
        "hooks.PreToolUse: Expected `object`, got `str` - at `$[0].hooks[2]`",
        "hooks.PreToolUse: Expected `array`, got `int` - at `$[1].hooks`",
        "hooks.PreToolUse: Expected `object`, got `str` - at `$[2]`",
    ]


def test_a_matcher_can_name_a_plugins_server_as_other_programs_do() -> None:
    for matcher in (
        "mcp__plugin_hello_bell__ring",
        "mcp__plugin_hello_.*",
        "mcp__hello_bell__ring",
    ):
        assert matches(matcher, "mcp__hello_bell__ring"), matcher
    assert not matches("mcp__plugin_hello_bell__ring", "mcp__hello_bell__other")
