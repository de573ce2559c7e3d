"""`acp-agent doctor` tells of MCP servers, hooks and workflows what a session would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.cli_process import acp_agent

Findings = dict[str, list[tuple[str, str]]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that is a trusted project, too."""
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "config.toml").write_text(f'trusted_folders = ["{tmp_path}"]\n')
    (tmp_path / ".git").mkdir()
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".acp-agent" / "flows").mkdir(parents=True)
    return tmp_path


def doctor(home: Path) -> tuple[int, Findings]:
    """Its exit status, and states and texts by part."""
    ran = acp_agent(home, "doctor", "--offline", "--json")
    findings: Findings = {}
    for finding in json.loads(ran.stdout)["findings"]:
        findings.setdefault(finding["part"], []).append((finding["state"], finding["what"]))
    return ran.returncode, findings


def test_the_doctor_omits_extensions_that_do_not_exist(tmp_path: Path) -> None:
    status, findings = doctor(tmp_path)

    assert status == 0
    assert not {"MCP servers", "Hooks", "Workflows"} & findings.keys()


def test_the_doctor_counts_existing_extensions(home: Path) -> None:
    (home / ".mcp.json").write_text('{"mcpServers": {"one": {"command": "true"}}}')
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}
    (home / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    (home / ".acp-agent" / "flows" / "f.yaml").write_text("steps: [{id: a, prompt: Go.}]\n")

    status, findings = doctor(home)

    assert status == 0
    assert findings["MCP servers"] == [("ok", "MCP servers: one")]
    assert findings["Hooks"] == [("ok", "hooks: 1")]
    assert findings["Workflows"] == [("ok", "workflows: f")]


def test_broken_files_are_problems_with_their_names(home: Path) -> None:
    for file in (".mcp.json", ".claude/settings.json", ".acp-agent/flows/f.yaml"):
        (home / file).write_text('{"hooks": [')

    status, findings = doctor(home)

    assert status == 1
    for part, file in (
        ("MCP servers", ".mcp.json"),
        ("Hooks", ".claude/settings.json"),
        ("Workflows", ".acp-agent/flows/f.yaml"),
    ):
        [(state, text)] = findings[part]
        assert state == "broken"
        assert text.startswith(str(home / file))


def test_untrusted_definitions_are_shown_as_such(home: Path) -> None:
    (home / "agent" / "config.toml").unlink()
    (home / ".mcp.json").write_text('{"mcpServers": {"one": {"command": "true"}}}')

    status, findings = doctor(home)

    assert status == 0
    why = ".mcp.json is not used until you trust it: acp-agent trust"
    assert findings["MCP servers"] == [("missing", why)]


def test_a_broken_configuration_does_not_end_the_check(home: Path) -> None:
    (home / "agent" / "config.toml").write_text("x = [")
    (home / ".mcp.json").write_text('{"mcpServers": {"one": {"command": "true"}}}')

    status, findings = doctor(home)

    assert status == 1
    assert findings["MCP servers"]


@pytest.mark.parametrize(
    ("content", "state", "why"),
    [
        ('{\n "hooks": [', "broken", ": line 2 is not JSON (Expecting value); fix the line"),
        ("[]", "broken", ": line 1: expected an object; write { first"),
        ('{\n"hooks": {\n"Nope": []}}', "missing", ":3: hooks.Nope: there is no such event here"),
        ('{\n"hooks": {\n"Stop": 5}}', "broken", ":3: hooks.Stop: Expected `array`, got `int`"),
        ('{"hooks":\n[1]}', "broken", ":1: hooks: expected an object with a list for each event"),
    ],
)
def test_a_problem_of_hooks_is_reported_with_its_line(
    home: Path, content: str, state: str, why: str
) -> None:
    file = home / ".claude" / "settings.json"
    file.write_text(content)

    _, findings = doctor(home)

    [(reported, text)] = findings["Hooks"]
    assert reported == state
    assert text.startswith(f"{file}{why}")


def test_a_folder_in_place_of_the_hooks_file_is_reported(home: Path) -> None:
    (home / ".claude" / "settings.json").mkdir()

    _, findings = doctor(home)

    file = home / ".claude" / "settings.json"
    assert findings["Hooks"] == [("broken", f"{file}: it is a folder; put a file there")]


def test_a_byte_that_is_not_text_is_reported_with_its_line(home: Path) -> None:
    plugin = home / ".agents" / "plugins" / "one"
    plugin.mkdir(parents=True)
    files = (plugin / "plugin.json", home / ".claude" / "settings.json", home / ".mcp.json")
    for file in files:
        file.write_bytes(b'{\n"name": "\xff"}')

    _, findings = doctor(home)

    [(_, of_plugin)] = [
        finding for finding in findings["Skills and agents"] if finding[0] == "broken"
    ]
    [(_, of_hooks)] = findings["Hooks"]
    [(_, of_servers)] = findings["MCP servers"]
    assert of_plugin == f"{files[0]}: line 2 is not UTF-8 text; save the file as UTF-8"
    assert of_hooks == f"{files[1]}: line 2 is not UTF-8 text; save the file as UTF-8"
    assert of_servers.startswith(str(files[2]))
