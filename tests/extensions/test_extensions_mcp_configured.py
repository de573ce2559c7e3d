"""MCP servers of the user's configuration and of a trusted project, beside those of the client."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from acp_agent.config.load import load_config
from acp_agent.extensions.definitions.locations import find_folders
from acp_agent.extensions.mcp.config import HttpServer, ProgramServer, all_values, credentials
from acp_agent.extensions.mcp.configured import FoundServers, find_servers
from acp_agent.sandbox.sandbox import Unavailable, find_backend
from acp_agent.session.mcp.selection import file_stamps
from tests.extensions.mcp_session import (
    PROGRAM,
    OpenWithServers,
    call,
    echo,
    notices,
    offered,
    program,
    results,
)
from tests.support.editor import EVERYTHING, Editor
from tests.support.model_server import ModelServer, answer

CASES = tomllib.loads(Path(__file__).with_name("configured_servers.toml").read_text())
ENVIRON = {"TOKEN": "s3cret-token-value", "HOST": "example.org", "EMPTY": ""}


def find(folder: Path, *, trusted: bool = True, environ: dict[str, str] = ENVIRON) -> FoundServers:
    file = folder / "config.toml"
    return find_servers(
        load_config(file, {}),
        file,
        folder,
        environ,
        folders=find_folders(folder, user=folder, home=folder),
        trusts=lambda item: trusted,
    )


def shown(server: ProgramServer | HttpServer) -> list[str]:
    """A server as the table of cases has it."""
    pairs = [f"{name}={value}" for name, value in server_pairs(server)]
    if isinstance(server, HttpServer):
        return ["sse" if server.sse else "http", server.url, *pairs]
    return ["stdio", server.command, *server.args, *pairs, *([server.cwd] if server.cwd else [])]


def server_pairs(server: ProgramServer | HttpServer) -> tuple[tuple[str, str], ...]:
    return server.headers if isinstance(server, HttpServer) else server.env


@pytest.mark.parametrize("case", CASES["case"], ids=lambda case: case["name"])
def test_a_servers_table_is_read_and_an_invalid_one_is_reported(
    tmp_path: Path, case: dict[str, Any]
) -> None:
    (tmp_path / "config.toml").write_text(case.get("config", ""))
    if "project" in case:
        (tmp_path / ".mcp.json").write_text(case["project"])
    found = find(tmp_path)
    assert {server.name: shown(server) for server in found.servers} == case.get("servers", {})
    for kind, messages in (("problems", found.problems), ("notes", found.notes)):
        expected = case.get(kind, [])
        assert len(messages) == len(expected), messages
        for message, (place, part) in zip(messages, expected, strict=True):
            assert message.startswith(f"{tmp_path}/{place}: "), message
            assert part in message
            assert ENVIRON["TOKEN"] not in message


def test_claudes_settings_turn_servers_off_and_set_variables_for_those_of_the_project(
    tmp_path: Path,
) -> None:
    servers = {name: {"command": "${TOOL}"} for name in ("one", "two")}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    settings = {"env": {"TOOL": "tool-of-the-team"}, "disabledMcpjsonServers": ["two"]}
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text(json.dumps(settings))
    (tmp_path / "config.toml").write_text('[mcp_servers.mine]\ncommand = "${TOOL:-mine}"\n')
    found = {
        server.name: (shown(server)[1], server.options.enabled) for server in find(tmp_path).servers
    }
    team = "tool-of-the-team"
    assert found == {"one": (team, True), "two": (team, False), "mine": ("mine", True)}


def test_a_projects_file_is_inert_until_it_is_trusted(tmp_path: Path) -> None:
    server = {"command": "npx", "args": ["-y", "a-server"], "env": {"KEY": "${TOKEN}"}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"git": server}}))
    found = find(tmp_path, trusted=False)
    assert found.servers == ()
    (item,) = found.untrusted
    assert "npx -y a-server" in item.what
    assert "TOKEN" in item.what
    outside = tmp_path / "outside.json"
    (tmp_path / ".mcp.json").rename(outside)
    project = tmp_path / "project"
    project.mkdir()
    (project / ".mcp.json").symlink_to(outside)
    found = find(project)
    assert found.servers == ()
    assert "leads out of the project" in found.problems[0]


def test_values_of_secret_variables_are_never_shown(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        "[mcp_servers.one]\ncommand = 'serve'\nargs = ['--token', '${TOKEN}', '${HOST}']\n"
        "env_vars = ['TOKEN', 'MISSING']\n"
    )
    (server,) = find(tmp_path).servers
    assert ENVIRON["TOKEN"] in credentials(server)
    assert ENVIRON["TOKEN"] in all_values(server)
    assert ENVIRON["HOST"] not in credentials(server)


def configured(behaviour: str, **more: str) -> str:
    """The table of a server of `mcp_program.py`, without its header."""
    lines = {"command": sys.executable, "args": ["-S", str(PROGRAM), behaviour]}
    table = [f"{key} = {json.dumps(value)}" for key, value in lines.items()]
    return "\n".join([*table, *(f"{key} = {value}" for key, value in more.items())]) + "\n"


@pytest.mark.covers("S1")
async def test_configured_servers_work_in_every_client_and_the_clients_win_by_name(
    with_servers: OpenWithServers, model_server: ModelServer, workspace_repo: Path
) -> None:
    in_project = {"command": sys.executable, "args": ["-S", str(PROGRAM), "echo"]}
    servers = {"project": in_project, "users": in_project | {"args": ["-c", "exit(3)"]}}
    (workspace_repo / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    environment = configured("echo", allowed_tools='["echo", "environment"]', env_vars='["GIVEN"]')
    running, session = await with_servers(
        program("echo", name="editors"),
        editor=Editor(offers=EVERYTHING, permission="allow_once"),
        config=f"trusted_folders = ['{workspace_repo}']\n"
        f"[mcp_servers.users]\n{environment}"
        f"[mcp_servers.editors]\n{configured('dies-at-start')}"
        f"[mcp_servers.off]\n{configured('dies-at-start', enabled='false')}"
        "[mcp_servers.broken]\ncommand = 7\n",
        environ={"GIVEN": "a-given-value"},
    )
    model_server.add(
        answer(call("environment", server="users"), echo(server="project")), answer("Done.")
    )
    await running.prompt(session, "go")
    names = offered(model_server)
    assert {"mcp__users__environment", "mcp__users__echo", "mcp__editors__echo"} <= set(names)
    assert "mcp__users__look" not in names
    environment, said = results(model_server)
    assert "GIVEN=a-given-value" in environment
    assert said == "echo: hi"
    (notice,) = notices(running, session)
    assert "config.toml:" in notice
    assert "mcp_servers.broken.command" in notice


async def test_a_server_runs_in_the_sandbox_where_the_user_says_so(
    with_servers: OpenWithServers, model_server: ModelServer, home: Path
) -> None:
    if isinstance(find_backend(os.environ.get("PATH")), Unavailable):
        pytest.skip("no sandbox")
    if Path(sys.prefix).is_relative_to("/tmp"):
        pytest.skip("Python is in /tmp, which programs in the sandbox do not see")
    (home / ".ssh").mkdir()
    (home / ".ssh" / "key").write_text("a key")
    running, session = await with_servers(
        config=f"[sandbox]\nmcp_servers = true\n[mcp_servers.inside]\n{configured('gets-out')}"
        f"[mcp_servers.outside]\n{configured('gets-out', sandbox='false')}",
        environ={"ACP_AGENT_SANDBOX": "true"},
    )
    calls = [call("tries", server=server) for server in ("inside", "outside")]
    model_server.add(answer(*calls), answer("Done."))
    await running.prompt(session, "go")
    assert results(model_server) == ["[False, False, False]", "[True, True, True]"]


async def test_a_trusted_projects_servers_start_and_a_changed_file_ends_them(
    with_servers: OpenWithServers, model_server: ModelServer, workspace_repo: Path
) -> None:
    file = workspace_repo / ".mcp.json"
    server = {"command": sys.executable, "args": ["-S", str(PROGRAM), "echo"]}
    file.write_text(json.dumps({"mcpServers": {"memo": server}}))
    running, session = await with_servers(
        editor=Editor(offers=frozenset(), permission="allow_always"),
    )
    model_server.add(answer("Hello."))
    await running.prompt(session, "hi")
    assert "mcp__memo__echo" in offered(model_server)
    assert ".mcp.json" in str(running.editor.asked[0])
    running.editor.permission = "reject_once"
    file.write_text(json.dumps({"mcpServers": {"memo": server | {"env": {"A": "b"}}}}))
    model_server.add(answer("Hello."))
    await running.prompt(session, "hi")
    assert offered(model_server) == []


async def test_servers_are_shown_and_switched_in_a_session(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    running, session = await with_servers(
        program("echo"), config=f"[mcp_servers.off]\n{configured('echo', enabled='false')}"
    )
    model_server.otherwise = answer("Hello.")

    async def say(text: str) -> str:
        begin = len(running.updates(session, "agent_message_chunk"))
        await running.prompt(session, text)
        chunks = running.updates(session, "agent_message_chunk")[begin:]
        return "".join(chunk["content"]["text"] for chunk in chunks)

    await say("hi")
    shown = await say("/mcp")
    assert "`memo`: connected, 11 tools" in shown
    assert "`off`: off" in shown
    assert "`echo`: Says it again" in await say("/mcp memo")
    await say("/mcp enable off")
    await say("/mcp disable memo")
    await say("hi")
    assert {name.split("__")[1] for name in offered(model_server)} == {"off"}
    assert "Unknown MCP server `x`" in await say("/mcp restart x")
    assert "`off`: connecting" in await say("/mcp restart off")
    await say("hi")
    assert "mcp__off__echo" in offered(model_server)


OTHERS = {
    ".cursor/mcp.json": {
        "mcpServers": {
            "a": {"command": "${workspaceFolder}/serve", "env": {"T": "${env:TOKEN}"}},
            "off": {"command": "serve", "disabled": True},
        }
    },
    ".vscode/mcp.json": {
        "servers": {
            "b": {"type": "http", "url": "https://example.org/mcp"},
            "asks": {"command": "serve", "args": ["${input:key}"]},
        }
    },
    ".gemini/settings.json": {
        "theme": "x",
        "mcpServers": {"c": {"command": "c", "args": ["$HOST"]}, "excluded": {"command": "c"}},
        "mcp": {"allowed": ["c", "excluded"], "excluded": ["excluded"]},
    },
    "opencode.json": {
        "mcp": {
            "d": {"type": "local", "command": ["d", "{env:HOST}"]},
            "a": {"type": "local", "command": ["older"]},
            "asks": {"type": "local", "command": ["d", "{env:NO_SUCH}"]},
        }
    },
}
CODEX = '[mcp_servers.e]\ncommand = "e"\nenv_vars = ["HOST"]\n[mcp_servers.wrong]\ncommand = 7\n'


def write_others(folder: Path) -> None:
    for name, content in OTHERS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"// shared\n{json.dumps(content)}")
    (folder / ".codex").mkdir()
    (folder / ".codex" / "config.toml").write_text(CODEX)


def test_a_trusted_projects_servers_of_other_programs_are_used(tmp_path: Path) -> None:
    write_others(tmp_path)
    found = find(tmp_path)
    assert {one.name: shown(one) for one in found.servers} == {
        "a": ["stdio", f"{tmp_path}/serve", "T=s3cret-token-value"],
        "off": ["stdio", "serve"],
        "b": ["http", "https://example.org/mcp"],
        "c": ["stdio", "c", "example.org"],
        "d": ["stdio", "d", "example.org"],
        "e": ["stdio", "e", "HOST=example.org"],
    }
    assert [one.name for one in found.servers if not one.options.enabled] == ["off"]
    (wrong,), (asks,) = found.problems, found.notes
    assert f"{tmp_path}/.codex/config.toml:4: mcp_servers.wrong: Expected `str`" in wrong
    assert f"{tmp_path}/.vscode/mcp.json: servers.asks: values that its program asks for" in asks


def test_a_file_of_other_settings_is_trusted_by_its_servers_alone(tmp_path: Path) -> None:
    write_others(tmp_path)
    before = find(tmp_path, trusted=False)
    assert before.servers == ()
    settings = tmp_path / ".gemini" / "settings.json"
    settings.write_text(settings.read_text().replace('"x"', '"y"'))
    assert find(tmp_path, trusted=False).untrusted == before.untrusted
    settings.write_text(settings.read_text().replace('"c"]', '"d"]').replace('"$HOST"', '"$TOKEN"'))
    assert find(tmp_path, trusted=False).untrusted != before.untrusted
    (described,) = (one.what for one in before.untrusted if one.path.startswith(".codex"))
    assert "variables: HOST" in described
    settings.write_text('{"theme": "x"}')
    paths = [one.path for one in find(tmp_path, trusted=False).untrusted]
    assert ".gemini/settings.json" not in paths


def test_a_number_that_cannot_be_read_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {}, "a": ' + "7" * 5_000 + "}")
    (problem,) = find(tmp_path).problems
    assert problem == f"{tmp_path}/.mcp.json: a number has more digits than can be read"


def test_a_change_behind_a_link_is_noticed(tmp_path: Path) -> None:
    servers = tmp_path / "servers.json"
    servers.write_text("{}")
    (tmp_path / ".mcp.json").symlink_to(servers)
    folders = find_folders(tmp_path, user=tmp_path / "user", home=tmp_path / "home")
    before = file_stamps(tmp_path, folders)
    assert file_stamps(tmp_path, folders) == before
    servers.write_text('{"mcpServers": {}}')
    assert file_stamps(tmp_path, folders) != before
