"""`acp-agent mcp`: list, add, remove, test and import servers."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from acp_agent.cli.mcp.importing import read_foreign
from acp_agent.config.load import load_config
from acp_agent.config.mcp_types import McpServerConfig
from tests.cli.cli_process import acp_agent
from tests.extensions.mcp_session import PROGRAM

TABLE = tomllib.loads((Path(__file__).parent / "mcp_imports.toml").read_text("utf-8"))


@pytest.mark.parametrize("agent", TABLE)
def test_servers_of_another_agent_are_read_without_their_secrets(
    agent: str, tmp_path: Path
) -> None:
    places = {"FOLDER": str(tmp_path), "ABOVE": str(tmp_path.parent), "NAME": tmp_path.name}

    def here(value: Any) -> Any:
        if isinstance(value, str):
            for word, place in places.items():
                value = value.replace(word, place)
            return value
        if isinstance(value, list):
            return [here(one) for one in value]
        return {key: here(one) for key, one in value.items()} if isinstance(value, dict) else value

    case = here(TABLE[agent])
    file = tmp_path / case["file"]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(case["text"])
    foreign = read_foreign(file, tmp_path)
    default = asdict(McpServerConfig())
    assert {
        name: {key: value for key, value in asdict(server).items() if value != default[key]}
        for name, server in foreign.servers.items()
    } == case["servers"]
    expected = case.get("notes", [])
    assert len(foreign.notes) == len(expected), foreign.notes
    for note, beginning in zip(foreign.notes, expected, strict=True):
        assert note.startswith(beginning)


def test_a_browser_is_added_by_its_name_or_its_requirements_are_shown(tmp_path: Path) -> None:
    config = tmp_path / "agent" / "config.toml"
    programs = tmp_path / "bin"
    programs.mkdir()
    path = {"PATH": str(programs)}
    for program, missing in (("npx", "needs npx: install Node.js"), ("chromium", "needs chromium")):
        refused = acp_agent(tmp_path, "mcp", "add", "browser", environ=path)
        assert (refused.returncode, missing in refused.stderr) == (1, True), refused.stderr
        (programs / program).write_text("#!/bin/sh\n")
        (programs / program).chmod(0o755)
    added = acp_agent(tmp_path, "mcp", "add", "browser", environ=path)
    assert (added.returncode, added.stderr) == (0, "")
    server = load_config(config, {}).mcp_servers["browser"]
    assert server.command == "npx"
    at = server.args.index("--executable-path")
    assert server.args[at + 1] == str(programs / "chromium")
    unknown = acp_agent(tmp_path, "mcp", "add", "browsr")
    assert unknown.returncode == 1
    assert "known are: browser" in unknown.stderr


def test_a_server_is_added_tested_listed_and_removed(tmp_path: Path) -> None:
    config = tmp_path / "agent" / "config.toml"
    config.parent.mkdir()
    config.write_text("# mine\nmode = 'ask' # kept\n")
    command = (sys.executable, "-S", str(PROGRAM), "echo")
    added = acp_agent(tmp_path, "mcp", "add", "-e", "MODE=${MODE:-a}", "memo", *command)
    assert (added.returncode, added.stderr) == (0, "")
    assert config.read_text().startswith("# mine\nmode = 'ask' # kept\n")
    added = acp_agent(tmp_path, "mcp", "add", "-H", "X-Key: ${KEY}", "web", "http://127.0.0.1:9")
    assert added.returncode == 0
    servers = load_config(config, {}).mcp_servers
    assert servers["memo"].args == list(command[1:])
    assert servers["web"].headers == {"X-Key": "${KEY}"}
    repeated = acp_agent(tmp_path, "mcp", "add", "memo", "other")
    assert repeated.returncode == 1
    assert "already" in repeated.stderr

    listed = acp_agent(tmp_path, "mcp", "list", "--json")
    assert listed.returncode == 0
    listing = json.loads(listed.stdout)
    assert [server["name"] for server in listing["servers"]] == ["memo", "web"]
    assert "KEY is not set" in listing["notes"][0]
    tested = acp_agent(tmp_path, "mcp", "test", "memo")
    assert "memo: connected\n  tools: echo, fail" in tested.stdout
    removed = acp_agent(tmp_path, "mcp", "remove", "web")
    assert removed.returncode == 0
    assert list(load_config(config, {}).mcp_servers) == ["memo"]
    assert acp_agent(tmp_path, "mcp", "list").returncode == 0
    assert "memo" in acp_agent(tmp_path, "mcp", "remove", "web").stderr


def test_an_import_is_shown_before_it_is_saved(tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text("[mcp_servers.docs]\ncommand = 'docs'\n")
    (tmp_path / ".mcp.json").write_text("{")
    preview = acp_agent(tmp_path, "mcp", "import")
    assert preview.returncode == 1
    assert ".mcp.json" in preview.stderr
    assert '[mcp_servers.docs]\ncommand = "docs"' in preview.stdout
    config = tmp_path / "agent" / "config.toml"
    assert not config.exists()
    acp_agent(tmp_path, "mcp", "import", "--save", ".codex/config.toml")
    assert load_config(config, {}).mcp_servers["docs"].command == "docs"
    assert "No new MCP servers" in acp_agent(tmp_path, "mcp", "import", ".codex/config.toml").stdout
    missing = acp_agent(tmp_path, "mcp", "import", "missing.json")
    assert (missing.returncode, missing.stderr) == (
        1, f"acp-agent: file not found: {tmp_path}/missing.json\n"
    )  # fmt: skip


def test_list_and_test_say_that_there_are_no_servers(tmp_path: Path) -> None:
    for action in ("list", "test"):
        ran = acp_agent(tmp_path, "mcp", action)
        assert ran.returncode == 0
        assert ran.stdout.startswith("No MCP servers configured. To add one, see ")
