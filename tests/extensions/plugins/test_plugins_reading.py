"""What is read of a plugin's folder: that of the standard, and those of other programs."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from acp_agent.config.types import Config
from acp_agent.extensions.definitions.discovery import find_definitions
from acp_agent.extensions.definitions.locations import DefinitionFolders
from acp_agent.extensions.definitions.reading import Problem
from acp_agent.extensions.mcp.config import HttpServer, ProgramServer
from acp_agent.extensions.plugins.servers import plugin_servers
from acp_agent.trust.store import Item
from tests.extensions.plugins.plugin_files import MANIFEST, SKILL, places_of, write_plugin

CASES = tomllib.loads(Path(__file__).with_name("plugin_cases.toml").read_text())["case"]


def shown(server: ProgramServer | HttpServer) -> list[str]:
    if isinstance(server, HttpServer):
        return [server.url, *(f"{name}={value}" for name, value in server.headers)]
    own = {"PLUGIN_ROOT", "PLUGIN_DATA", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA"}
    pairs = [f"{name}={value}" for name, value in server.env if name not in own]
    folder = [f"in {server.cwd}"] if server.cwd else []
    return [server.command, *server.args, *pairs, *folder]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_plugin_is_read_as_the_standard_says(tmp_path: Path, case: dict[str, Any]) -> None:
    places = places_of(tmp_path)
    root = write_plugin(tmp_path / "user" / "plugins" / "folder", case["files"])
    found = find_definitions(places, Config(), lambda _: True)
    wrong: list[str] = []
    servers = {one.name: one for one in plugin_servers(places, {}, lambda _: True, wrong, [])}
    said = json.dumps({name: shown(one) for name, one in servers.items()})
    data = str(tmp_path / "user" / "plugins" / ".data" / "folder")
    said = said.replace(data, "{data}").replace(str(root), "{root}")
    assert json.loads(said) == case.get("servers", {})
    assert sorted(skill.name for skill in found.skills) == case.get("skills", [])
    assert sorted(agent.name for agent in found.agents) == case.get("agents", [])
    problems = [f"{one.path}: {one.why}" for one in found.problems] + wrong
    expected = case.get("problems", [])
    assert len(problems) == len(expected), problems
    for part in expected:
        assert any(part in problem for problem in problems), (part, problems)


def test_parts_of_a_plugin_name_each_other_without_its_name(tmp_path: Path) -> None:
    files = {
        ".claude-plugin/plugin.json": '{"name": "hello"}',
        "skills/greet/SKILL.md": SKILL.replace("---\nSay", "context: fork\nagent: host\n---\nSay"),
        "agents/host.md": "---\nname: host\ndescription: Receives.\nskills: greet\n"
        "tools: Read, mcp__plugin_hello_bell__ring\n---\nBe kind.",
        "agents/overview.md": "No agent.",
    }
    write_plugin(tmp_path / "user" / "plugins" / "hello", files)
    found = find_definitions(places_of(tmp_path), Config(), lambda _: True)
    (skill,), (agent,) = found.skills, found.agents
    assert skill.agent == agent.name == "hello:host"
    assert "Say the word 4711." in agent.prompt
    assert agent.uses.allows("mcp__hello_bell__ring")
    assert not agent.uses.allows("mcp__hello_bell__other")
    assert [(problem.path.name, problem.is_note) for problem in found.problems] == [
        ("overview.md", True)
    ]


def test_no_part_of_a_plugin_leads_out_of_it_by_a_link(tmp_path: Path) -> None:
    places = places_of(tmp_path)
    secret = tmp_path / "secret" / "one"
    secret.mkdir(parents=True)
    (secret / "SKILL.md").write_text(SKILL)
    root = write_plugin(
        tmp_path / "user" / "plugins" / "p",
        {
            "plugin.json": MANIFEST,
            "mcp.json": '{"$schema": "MCP", "mcpServers": {'
            '"a": {"type": "stdio", "command": "./bin"},'
            '"b": {"type": "stdio", "command": "serve", "cwd": "./away"}}}',
            "real/skills/greet/SKILL.md": SKILL,
        },
    )
    (root / "bin").symlink_to("/bin/sh")
    (root / "away").symlink_to(tmp_path)
    (root / "skills").mkdir()
    (root / "skills" / "out").symlink_to(secret)
    (root / "skills" / "greet").symlink_to(root / "real" / "skills" / "greet")
    wrong: list[str] = []
    assert list(plugin_servers(places, {}, lambda _: True, wrong, [])) == []
    assert len(wrong) == 2
    found = find_definitions(places, Config(), lambda _: True)
    assert [skill.name for skill in found.skills] == ["hello:greet"]
    (problem,) = found.problems
    assert "leads out" in problem.why
    (root / "skills").rename(root / "other")
    (root / "skills").symlink_to(secret.parent)
    found = find_definitions(places, Config(), lambda _: True)
    assert (found.skills, len(found.problems)) == ((), 1)
    (root / "plugin.json").unlink()
    (tmp_path / "plugin.json").write_text(MANIFEST)
    (root / "plugin.json").symlink_to(tmp_path / "plugin.json")
    found = find_definitions(places, Config(), lambda _: True)
    assert "leads out" in found.problems[0].why


def test_broken_files_are_reported_with_their_line(tmp_path: Path) -> None:
    places = places_of(tmp_path)
    own = tmp_path / "user" / "plugins"
    write_plugin(own / "one", {"plugin.json": '{\n  "name": "p"\n  7}'})
    (write_plugin(own / "two", {"x": ""}) / "plugin.json").write_bytes(b'{\n"name": "\xff"}')
    (write_plugin(own / "three", {"x": ""}) / "plugin.json").write_bytes(b"[" * 100_000)
    (write_plugin(own / "four", {"x": ""}) / "plugin.json").write_bytes(b" " * 2_000_000)
    (write_plugin(own / "five", {"x": ""}) / "plugin.json").symlink_to("plugin.json")
    (own / "six").symlink_to("six")
    found = {one.path.relative_to(own): one.why for one in broken(places)}
    assert {str(path) for path in found} == {
        *(f"{name}/plugin.json" for name in ("one", "two", "three", "four", "five")),
        "six",
    }
    assert "line 3 " in found[Path("one/plugin.json")]
    assert "line 2 is not UTF-8" in found[Path("two/plugin.json")]
    assert "larger than" in found[Path("four/plugin.json")]
    assert "leads nowhere" in found[Path("six")]


def broken(places: DefinitionFolders) -> tuple[Problem, ...]:
    return find_definitions(places, Config(), lambda _: True).problems


def test_a_projects_plugin_is_inert_until_it_is_trusted_with_all_of_its_files(
    tmp_path: Path,
) -> None:
    places = places_of(tmp_path)
    root = write_plugin(
        tmp_path / "project" / ".agents" / "plugins" / "hello",
        {
            "plugin.json": MANIFEST,
            "skills/greet/SKILL.md": SKILL,
            "mcp.json": '{"$schema": "MCP", "mcpServers": '
            '{"s": {"type": "stdio", "command": "./x"}}}',
            "x": "one",
        },
    )
    found = find_definitions(places, Config(), lambda _: False)
    assert found.skills == ()
    (item,) = found.untrusted
    assert (item.kind, item.path) == ("plugin", ".agents/plugins/hello")
    assert "greet" in item.what
    assert "./x" in item.what
    trusted: set[Item] = {item}
    wrong: list[str] = []
    assert [one.name for one in plugin_servers(places, {}, trusted.__contains__, wrong, [])] == [
        "hello:s"
    ]
    (root / "x").write_text("two")
    assert list(plugin_servers(places, {}, trusted.__contains__, wrong, [])) == []


def test_the_users_plugin_takes_precedence_over_a_projects(tmp_path: Path) -> None:
    places = places_of(tmp_path)
    own = write_plugin(
        tmp_path / "home" / ".agents" / "plugins" / "hello",
        {"plugin.json": MANIFEST, "skills/greet/SKILL.md": SKILL},
    )
    write_plugin(
        tmp_path / "project" / ".acp-agent" / "plugins" / "hello",
        {"plugin.json": MANIFEST, "skills/greet/SKILL.md": SKILL},
    )
    found = find_definitions(places, Config(), lambda _: True)
    assert [skill.path for skill in found.skills] == [own / "skills" / "greet" / "SKILL.md"]
    assert [one.why for one in found.problems] == [
        f"{own} has the same name, hello, and counts; take one out"
    ]
