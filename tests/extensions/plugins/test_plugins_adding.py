"""Plugins are added, updated and removed with the real command, and work in a real session."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from acp_agent.cli.main import main
from tests.cli.cli_process import acp_agent, environment
from tests.extensions.plugins.plugin_files import MANIFEST, SKILL, write_plugin
from tests.support.model_server import Call, ModelServer, answer, model_server_in_thread

SERVER = Path(__file__).parents[1] / "mcp_program.py"
WITH_VERSION = MANIFEST.replace('"hello"', '"hello", "version": "%s"')


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    (folder / "project").mkdir(parents=True)
    for name, value in environment(folder).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    return folder


def command(*arguments: str) -> tuple[int, str]:
    """Run the command in this process; returns its status and what it said."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        return main(list(arguments)), said.getvalue()


def plugin(*arguments: str, status: int = 0) -> str:
    ended, said = command("plugin", *arguments)
    assert ended == status, said
    return said


def plugins() -> list[dict[str, str]]:
    _, said = command("plugin", "list", "--json")
    found: list[dict[str, str]] = json.JSONDecoder().raw_decode(said)[0]["plugins"]
    return found


def names() -> list[str]:
    return [one["name"] for one in plugins()]


def git(folder: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=m")
    ran = subprocess.run(
        ["git", "-C", str(folder), *settings, *arguments],
        capture_output=True,
        check=True,
        text=True,
    )
    return ran.stdout.strip()


def repository(folder: Path) -> str:
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "One")
    return git(folder, "rev-parse", "HEAD")


def test_a_folder_is_copied_once_the_user_agrees_and_works_in_a_session(
    home: Path, tmp_path: Path
) -> None:
    hook = (
        'grep -q "echo stop" || exit 0; case "$CLAUDE_PLUGIN_ROOT" in */plugins/hello) '
        "echo refused by the plugin >&2; exit 2;; esac"
    )
    source = write_plugin(
        tmp_path / "hello",
        {
            ".claude-plugin/plugin.json": '{"name": "hello", "version": "1.0"}',
            "skills/greet/SKILL.md": SKILL,
            "agents/look.md": "---\ndescription: Looks.\n---\nYou look.",
            "hooks/hooks.json": json.dumps(
                {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": hook}]}]}}
            ),
            ".mcp.json": json.dumps(
                {"mcpServers": {"one": {"command": sys.executable, "args": [str(SERVER), "echo"]}}}
            ),
        },
    )
    assert "Nothing changed" in plugin("add", str(source), status=1)
    assert names() == []
    said = plugin("add", str(source), "--yes")
    for part in ("greet", "look", "MCP server one", "hook at PreToolUse"):
        assert part in said
    shutil.rmtree(source)
    with model_server_in_thread() as server:
        server.add(
            answer(
                Call("shell", {"command": "echo stop"}),
                Call("mcp__hello_one__echo", {"text": "4712"}),
            ),
            answer("Done."),
        )
        ran = acp_agent(
            home, "run", "--allow", "all", "--cwd", str(home / "project"), "/hello:greet go",
            environ=server.environ(),
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        assert "hello:look" in json.dumps(server.requests[0].json["tools"])
        results = {
            one["tool_call_id"]: one["content"]
            for one in server.requests[1].json["messages"]
            if one["role"] == "tool"
        }
        shell, echo = results.values()
        assert "refused by the plugin" in shell
        assert "4712" in echo
        assert "Say the word 4711." in str(server.requests[0].json["messages"][1])


def test_changes_of_others_in_a_plugin_are_unused_until_it_is_updated(
    home: Path, tmp_path: Path
) -> None:
    files = {"plugin.json": WITH_VERSION % "1", "skills/greet/SKILL.md": SKILL}
    source = write_plugin(tmp_path / "hello", files)
    plugin("add", str(source), "--yes")
    copy = home / "agent" / "plugins" / "hello"
    assert "there is a plugin hello already" in plugin("add", str(source), "--yes", status=1)
    assert "hello is unchanged" in plugin("update")
    (copy / "__pycache__").mkdir()  # what programs leave behind
    assert names() == ["hello"]
    (copy / "skills" / "greet" / "SKILL.md").write_text("---\nname: greet\n---\nOther.")
    assert names() == []
    assert "others than those that were added" in plugin("list", status=1)
    data = home / "agent" / "plugins" / ".data" / "hello"
    data.mkdir(parents=True)
    (data / "kept").touch()
    write_plugin(source, {"plugin.json": WITH_VERSION % "2"})
    assert "Updated hello" in plugin("update", "--yes")
    assert "2" in plugin("list").splitlines()[1].split()
    assert (data / "kept").exists()
    plugin("disable", "hello")
    assert names() == []
    plugin("enable", "hello")
    assert names() == ["hello"]
    plugin("remove", "hello")
    assert not copy.exists()
    assert not data.exists()
    assert "no plugin hello was added" in plugin("remove", "hello", status=1)


def test_a_repository_is_pinned_to_its_commit_and_runs_nothing(home: Path, tmp_path: Path) -> None:
    source = write_plugin(tmp_path / "hello", {"plugin.json": WITH_VERSION % "1"})
    first = repository(source)
    write_plugin(source, {"plugin.json": WITH_VERSION % "2", "hooks/x": ""})
    git(source, "add", ".")
    git(source, "commit", "--quiet", "--message", "Two")
    address = f"file://{source}"
    said = plugin("add", address, "--ref", first, "--yes")
    assert first in said
    assert [(one["version"], one["revision"]) for one in plugins()] == [("1", first)]
    assert "Updated hello" in plugin("update", "--yes")
    assert not (home / "agent" / "plugins" / "hello" / ".git").exists()
    other = f"{'0' * 39}1"
    plugin("remove", "hello")
    for ref, why in (("nowhere", "failed"), (other, "failed"), ("--upload-pack=touch x", "hyphen")):
        assert why in plugin("add", address, f"--ref={ref}", "--yes", status=1)
    refused = plugin("add", f"ext::sh -c 'touch {tmp_path}/ran' x.git", "--yes", status=1)
    assert "git fetch failed" in refused
    assert not (tmp_path / "ran").exists()


def test_a_bare_repository_is_added_and_updated_by_its_path(home: Path, tmp_path: Path) -> None:
    source = write_plugin(tmp_path / "hello", {"plugin.json": WITH_VERSION % "1"})
    first, bare = repository(source), tmp_path / "team" / "plugins.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", source, bare], check=True)
    assert first in plugin("add", str(bare), "--yes")
    write_plugin(source, {"plugin.json": WITH_VERSION % "2"})
    git(source, "commit", "--quiet", "--all", "--message", "Two")
    git(source, "push", "--quiet", str(bare), "HEAD")
    assert "Updated hello" in plugin("update", "--yes")
    assert [one["version"] for one in plugins()] == ["2"]


def test_a_marketplace_lists_its_plugins_and_provides_the_chosen_one(
    home: Path, tmp_path: Path
) -> None:
    far = write_plugin(tmp_path / "far", {"sub/plugin.json": MANIFEST.replace("hello", "far")})
    commit = repository(far)
    entries = [
        {"name": "near", "source": "./plugins/near", "description": "Is near."},
        {"name": "bare", "source": "./plugins/bare", "version": "3", "commands": "./deep"},
        {
            "name": "far",
            "source": {
                "source": "git-subdir",
                "url": f"file://{far}",
                "path": "sub",
                "sha": commit,
            },
        },
        {"name": "svn", "source": {"source": "svn", "url": "https://example.org/x"}},
        {"name": "out", "source": "../.."},
    ]
    market = write_plugin(
        tmp_path / "market",
        {
            ".claude-plugin/marketplace.json": json.dumps({"name": "m", "plugins": entries}),
            "plugins/near/plugin.json": MANIFEST.replace("hello", "near"),
            "plugins/bare/deep/go.md": "Go on.",
        },
    )
    offered = plugin("add", str(market), "--yes", status=2)
    assert "near: Is near." in offered
    for name in ("near", "bare", "far"):
        plugin("add", str(market), name, "--yes")
    assert sorted(names()) == ["bare", "far", "near"]
    assert "bare:go" in command("skills")[1]
    assert "not fetched here" in plugin("add", str(market), "svn", "--yes", status=1)
    assert "no folder of the marketplace" in plugin("add", str(market), "out", "--yes", status=1)
    assert "it has no plugin none" in plugin("add", str(market), "none", "--yes", status=1)
    assert "far is unchanged" in plugin("update", "far")


def test_a_link_follows_the_folder_and_its_author_can_check_it(home: Path, tmp_path: Path) -> None:
    source = write_plugin(tmp_path / "hello", {"plugin.json": MANIFEST})
    plugin("add", str(source), "--link", "--yes")
    write_plugin(source, {"skills/greet/SKILL.md": SKILL})
    assert "hello:greet" in command("skills")[1]
    assert "No errors found" in plugin("check", str(source))
    (source / "mcp.json").write_text("{")
    assert "is not JSON" in plugin("check", str(source), status=1)
    plugin("remove", "hello")
    assert source.is_dir()
    assert "no such folder" in plugin("add", "./none", "--yes", status=1)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("installed.json", b"{"),
        ("installed.json", b"[1]"),
        ("installed.json", b'{"plugins": {"\xff": {}}}'),
    ],
)
def test_a_broken_list_of_plugins_is_reported_and_stops_no_session(
    home: Path, model_server: ModelServer, file: str, content: bytes
) -> None:
    del model_server
    place = home / "agent" / "plugins"
    write_plugin(place / "off", {"plugin.json": MANIFEST, "skills/greet/SKILL.md": SKILL})
    (place / file).write_bytes(content)
    assert "correct it, or delete it" in plugin("list", status=1)
    ran = acp_agent(home, "run", "--model", "demo/demo", "--cwd", str(home / "project"), "hello")
    assert ran.returncode == 0
    assert "greet" not in command("skills")[1]  # it may have been turned off


def test_the_plugins_that_a_team_enabled_in_another_program_are_added(
    home: Path, tmp_path: Path
) -> None:
    entries = [{"name": name, "source": f"./{name}"} for name in ("one", "two", "three")]
    market = write_plugin(
        tmp_path / "market",
        {
            ".claude-plugin/marketplace.json": json.dumps({"name": "team", "plugins": entries}),
            **{f"{one['name']}/commands/go.md": "Go on." for one in entries},
        },
    )
    repository(market)
    source = {"source": "url", "url": f"file://{market}"}
    settings = {
        "extraKnownMarketplaces": {"team": {"source": source}},
        "enabledPlugins": {"one@team": True, "two@team": True, "three@team": False},
    }
    project = home / "project"
    write_plugin(project, {".claude/settings.json": json.dumps(settings)})
    local = {"enabledPlugins": {"two@team": False, "lost@nowhere": True}}
    write_plugin(project, {".claude/settings.local.json": json.dumps(local)})
    said = plugin("import", "--cwd", str(project), "--yes", status=1)
    assert "the location of the marketplace nowhere is unknown" in said
    assert names() == ["one"]
    (project / ".claude" / "settings.local.json").write_text("{")
    assert "is not JSON" in plugin("import", "--cwd", str(project), "--yes", status=1)
    assert names() == ["one", "two"]
    (project / ".claude" / "settings.local.json").unlink()
    assert "No new plugins" in plugin("import", "--cwd", str(project), "--yes")


def test_a_plugin_with_a_marketplace_is_one_only_if_it_offers_itself_or_nothing_is_chosen(
    home: Path, tmp_path: Path
) -> None:
    def write(name: str, source: str) -> str:
        entries = [{"name": "hello", "source": source}]
        files = {
            ".cursor-plugin/plugin.json": MANIFEST.replace("hello", "outer"),
            ".claude-plugin/marketplace.json": json.dumps({"name": "m", "plugins": entries}),
            "inner/plugin.json": MANIFEST,
        }
        return str(write_plugin(tmp_path / name, files))

    assert "hello" in plugin("add", write("market", "./inner"), "--yes", status=2)
    plugin("add", write("both", "./"), "--yes")
    assert names() == ["outer"]
    plugin("add", str(tmp_path / "market"), "hello", "--yes")
    assert sorted(names()) == ["hello", "outer"]
    market = tmp_path / "both" / ".claude-plugin" / "marketplace.json"
    market.write_text("{")
    plugin("remove", "outer")
    plugin("add", str(tmp_path / "both"), "--yes")
    assert sorted(names()) == ["hello", "outer"]


def test_a_folder_that_is_no_plugin_is_named_as_the_user_named_it(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    output = plugin("add", str(tmp_path / "empty"), "--yes", status=1)
    assert f"{tmp_path / 'empty'}: it has no plugin.json" in output
