"""`acp-agent setup EDITOR`: what it shows, writes, takes back, and refuses to touch."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from acp_agent.cli.editors.catalog import editors
from acp_agent.cli.editors.check import greet
from acp_agent.cli.editors.config_file import BACKUP_SUFFIX
from acp_agent.cli.editors.launch import desktop_environment, launch_command
from acp_agent.cli.main import main
from acp_agent.errors import InvalidInputError
from tests.cli.cli_process import acp_agent, environment

BEFORE = """{
  // mine
  "theme": "One Dark",
  "agent_servers": { "other": { "command": "other", "env": { "OTHER_API_KEY": "sk-secret" } } },
}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which nothing is configured yet, on Linux."""
    for name in [name for name in os.environ if name.startswith(("XDG_", "ACP_AGENT_", "NVIM_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("sys.argv", [str(Path(sys.executable).parent / "acp-agent")])
    return tmp_path


@pytest.fixture
def zed(home: Path) -> Path:
    """Zed's settings."""
    path = home / ".config" / "zed" / "settings.json"
    path.parent.mkdir(parents=True)
    path.write_text(BEFORE)
    return path


def setup(*words: str) -> int:
    """The exit status of `acp-agent setup`, run here; the agent is not started."""
    return main(["setup", *words, "--no-check"])


def test_the_change_is_shown_written_and_exactly_removed(
    zed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert setup("zed", "--yes") == 0
    output = capsys.readouterr().out
    assert f"--- {zed}\n+++ {zed}\n" in output
    assert '"acp-agent": {"type": "custom", ' in output
    assert "sk-secret" not in output
    assert "start a new acp-agent thread" in output
    assert "// mine" in zed.read_text()
    assert zed.with_name(zed.name + BACKUP_SUFFIX).read_text() == BEFORE
    settings_text = zed.read_text()

    assert setup("zed", "--yes") == 0
    assert "needs no change" in capsys.readouterr().out
    assert zed.read_text() == settings_text

    assert setup("zed", "--undo", "--yes") == 0
    assert zed.read_text() == BEFORE
    assert list(zed.parent.iterdir()) == [zed]
    assert setup("zed", "--undo", "--yes") == 0
    assert zed.read_text() == BEFORE


def test_the_diff_shows_no_key_of_another_agent(
    zed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hidden = ["plain-1", "plain-2", "plain-3", "plain-4", f"ghp_{'a1b2c3' * 6}"]
    other_agent = {
        "command": "other",
        "args": ["--api-key", hidden[0], f"--token={hidden[1]}", "--verbose", "shown"],
        "env": {"OTHER_API_KEY": hidden[2], "client.secret": hidden[3], "GH": hidden[4]},
    }
    zed.write_text(json.dumps({"agent_servers": {"other": other_agent}}))
    assert setup("zed", "--yes") == 0
    output = capsys.readouterr().out
    assert [secret for secret in hidden if secret in output] == []
    assert '"--verbose", "shown"' in output
    assert all(secret in zed.read_text() for secret in hidden)


def test_the_diff_of_a_line_of_200_000_characters_is_short_and_fast(
    zed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = json.dumps({"long": "key" * 50_000, "API_KEY": "plain-1", "other": "x" * 60_000})
    zed.write_text(before)
    started = time.process_time()
    assert setup("zed", "--yes") == 0
    assert time.process_time() - started < 10  # of many minutes
    output = capsys.readouterr().out
    assert len(output) < 5000
    assert '"agent_servers": {"acp-agent": ' in output
    assert setup("zed", "--undo", "--yes") == 0
    assert zed.read_text() == before


def test_an_entry_written_with_escapes_is_exactly_removed(zed: Path) -> None:
    before = r'{"agent\u005fservers": {"x": {"command": "y"}}}'
    zed.write_text(before)
    assert setup("zed", "--yes") == 0
    assert "acp-agent" in zed.read_text()
    assert setup("zed", "--undo", "--yes") == 0
    assert zed.read_text() == before
    assert list(zed.parent.iterdir()) == [zed]


def test_removing_keeps_later_changes(zed: Path) -> None:
    setup("zed", "--yes")
    zed.write_text(zed.read_text().replace("One Dark", "One Light"))
    assert setup("zed", "--undo", "--yes") == 0
    assert zed.read_text() == BEFORE.replace("One Dark", "One Light")


def test_taking_back_after_a_second_setup_takes_the_entry_out(
    zed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup("zed", "--yes")
    moved = zed.parents[2] / "bin" / "acp-agent"
    moved.parent.mkdir()
    moved.write_text("#!/bin/sh\n")
    moved.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(moved)])
    setup("zed", "--yes")
    assert str(moved) in zed.read_text()
    assert setup("zed", "--undo", "--yes") == 0
    assert zed.read_text() == BEFORE


def test_a_created_file_is_removed_again(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / ".jetbrains" / "acp.json"
    assert setup("jetbrains", "--yes") == 0
    assert "has no configuration yet" in capsys.readouterr().out
    entry = json.loads(path.read_text())["agent_servers"]["acp-agent"]
    assert Path(entry["command"]).name == "acp-agent"
    assert setup("jetbrains", "--undo", "--yes") == 0
    assert list(path.parent.iterdir()) == []


def test_without_consent_nothing_is_written_and_the_lines_are_printed(
    zed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert setup("zed") != 0
    output = capsys.readouterr()
    assert "--yes" in output.err
    printed = output.out.partition(f"# {zed}\n")[2]
    assert "acp-agent" in json.loads(printed)["agent_servers"]
    assert zed.read_text() == BEFORE
    assert list(zed.parent.iterdir()) == [zed]


def test_print_only_prints(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in editors():
        assert setup(name, "--print") == 0
    assert list(home.iterdir()) == []
    assert capsys.readouterr().out.count("acp-agent") >= len(editors())


@pytest.mark.parametrize("content", ['{"a": 1,,}', "[]", '{"agent_servers": 1}', "\x00"])
def test_a_file_that_cannot_be_changed_stays_and_the_lines_are_printed(
    zed: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    zed.write_text(content)
    assert setup("zed", "--yes") == 1
    output = capsys.readouterr()
    assert f"{zed} was not changed: " in output.err
    assert '"acp-agent"' in output.out
    assert zed.read_text() == content
    assert list(zed.parent.iterdir()) == [zed]


def test_a_second_installation_is_found_and_one_refusal_does_not_stop_the_other(
    zed: Path, home: Path
) -> None:
    flatpak = home / ".var" / "app" / "dev.zed.Zed" / "config" / "zed" / "settings.json"
    flatpak.parent.mkdir(parents=True)
    zed.write_text("{")
    assert setup("zed", "--yes") == 1
    assert zed.read_text() == "{"
    assert "acp-agent" in json.loads(flatpak.read_text())["agent_servers"]


def test_the_folders_of_the_system_and_of_the_user_are_known(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "xdg"))
    monkeypatch.setenv("NVIM_APPNAME", "mine")
    setup("zed", "--yes")
    setup("codecompanion", "--yes")
    setup("vscode", "--insiders", "--yes")
    (home / ".vscode-server" / "data" / "Machine").mkdir(parents=True)
    setup("vscode", "--yes")
    assert {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()} == {
        "xdg/zed/settings.json",
        "xdg/mine/after/plugin/acp-agent-codecompanion.lua",
        "xdg/Code - Insiders/User/settings.json",
        ".vscode-server/data/Machine/settings.json",
    }
    monkeypatch.setattr("sys.platform", "darwin")
    setup("zed", "--yes")
    setup("vscode-insiders", "--yes")
    assert (home / ".config" / "zed" / "settings.json").is_file()
    assert (home / "Library/Application Support/Code - Insiders/User/settings.json").is_file()


def test_each_installed_extension_gets_the_setting_that_it_reads(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / ".config" / "Code" / "User" / "settings.json"
    setup("vscode", "--yes")
    assert list(json.loads(path.read_text())) == ["acpAgent.agents"]
    assert "The extension that reads this setting is not installed yet" in capsys.readouterr().out
    path.unlink()
    (home / ".vscode" / "extensions" / "formulahendry.acp-client-0.2.0").mkdir(parents=True)
    setup("vscode", "--yes")
    assert list(json.loads(path.read_text())) == ["acp.agents"]
    assert "No extension" not in capsys.readouterr().out
    (home / ".vscode" / "extensions" / "acp-agent.acp-agent-vscode-0.1.0").mkdir()
    setup("vscode", "--yes")
    assert list(json.loads(path.read_text())) == ["acp.agents", "acpAgent.agents"]
    setup("vscode", "--undo", "--yes")
    assert "acp-agent" not in path.read_text()


def test_the_agents_of_an_extension_that_got_no_entry_stay_to_the_byte(home: Path) -> None:
    path = home / ".config" / "Code" / "User" / "settings.json"
    path.parent.mkdir(parents=True)
    before = '{\n  "acpAgent.agents": { /* none */ },\n  "acp.agents": {},\n}\n'
    path.write_text(before)
    assert setup("vscode", "--yes") == 0
    assert path.read_text().count('"acp-agent": {') == 1
    assert setup("vscode", "--undo", "--yes") == 0
    assert path.read_text() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_switch_that_was_off_is_off_again(home: Path) -> None:
    path = home / ".config" / "marimo" / "marimo.toml"
    path.parent.mkdir(parents=True)
    before = "[experimental]\nexternal_agents = false  # mine\n"
    path.write_text(before)
    assert setup("marimo", "--yes") == 0
    assert tomllib.loads(path.read_text())["experimental"]["external_agents"] is True
    assert setup("marimo", "--undo", "--yes") == 0
    assert path.read_text() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_toml_file_keeps_its_comments(home: Path) -> None:
    path = home / ".config" / "marimo" / "marimo.toml"
    path.parent.mkdir(parents=True)
    before = '# mine\n[display]\ntheme = "dark" # at night\n\n[experimental]\nmarkdown = true\n'
    path.write_text(before)
    assert setup("marimo", "--yes") == 0
    assert path.read_text().startswith(before)
    assert tomllib.loads(path.read_text())["experimental"]["external_agents"] is True
    assert setup("marimo", "--undo", "--yes") == 0
    assert path.read_text() == before
    path.write_text(
        "[display]\ntheme = 'dark'\n\n[experimental]\nexternal_agents = true\nmore = 1\n"
    )
    assert setup("marimo", "--undo", "--yes") == 0
    assert tomllib.loads(path.read_text()) == {
        "display": {"theme": "dark"},
        "experimental": {"more": 1},
    }
    for unusable in ("[display\n", f"a = {'[' * 2000}{']' * 2000}\n", f"a = {'1' * 5000}\n"):
        path.write_text(unusable)
        assert setup("marimo", "--yes") == 1
        assert path.read_text() == unusable


def test_a_lua_file_of_another_program_is_not_replaced(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / ".config" / "nvim" / "plugin" / "acp-agent.lua"
    path.parent.mkdir(parents=True)
    path.write_text("-- my own\n")
    assert setup("neovim", "--yes") == 1
    assert setup("neovim", "--undo", "--yes") == 1
    assert path.read_text() == "-- my own\n"
    assert "not written by this command" in capsys.readouterr().err


def test_emacs_gets_lines_to_add_and_no_file(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert setup("emacs", "--yes") == 0
    assert '/acp-agent.el")' in capsys.readouterr().out
    assert list(home.iterdir()) == []


def test_a_misspelt_editor_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert setup("vs-code") == 1
    assert "did you mean vscode?" in capsys.readouterr().err


def test_a_path_with_quotes_is_a_string_in_every_language(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = home / 'b"in\\' / "acp-agent"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(program)])
    setup("acpx", "--yes")
    settings = json.loads((home / ".acpx" / "config.json").read_text())
    assert settings == {"agents": {"acp-agent": {"argv": [str(program)]}}}
    setup("avante", "--print")
    assert '"' + str(program).replace("\\", "\\\\").replace('"', '\\"') + '"' in (
        capsys.readouterr().out
    )


def test_the_command_is_one_that_the_desktop_finds(tmp_path: Path) -> None:
    program, link = tmp_path / "venv" / "acp-agent", tmp_path / "bin" / "acp-agent"
    for folder in (program.parent, link.parent):
        folder.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    link.symlink_to(program)
    assert launch_command(str(program), {}, platform="linux") == [str(program)]
    # A link on the PATH outlives what it leads to.
    on_path = {"PATH": str(link.parent)}
    assert launch_command(str(program), on_path, platform="linux") == [str(link)]
    # What a runner keeps in its cache may be gone tomorrow.
    cached = tmp_path / "uv" / "archive-v0" / "x" / "acp-agent"
    cached.parent.mkdir(parents=True)
    program.rename(cached)
    (link.parent / "uvx").symlink_to("/bin/true")
    assert launch_command(str(cached), on_path, platform="linux") == [
        str(link.parent / "uvx"),
        "--from",
        "acp-agent-server",
        "acp-agent",
    ]


def test_a_plugin_in_a_runners_cache_is_reported(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cached = home / "archive-v0" / "x" / "bin" / "acp-agent"
    cached.parent.mkdir(parents=True)
    cached.write_text("#!/bin/sh\n")
    cached.chmod(0o755)
    (home / "uvx").symlink_to("/bin/true")
    monkeypatch.setattr("sys.argv", [str(cached)])
    monkeypatch.setenv("PATH", str(home))
    setup("neovim", "--yes")
    assert "uv tool install acp-agent-server" in capsys.readouterr().out
    setup("zed", "--yes")
    assert "uv tool install" not in capsys.readouterr().out


def test_the_environment_of_the_desktop_has_no_keys_and_few_folders() -> None:
    shell = {"HOME": "/h", "PATH": "/h/bin", "OPENAI_API_KEY": "sk", "XDG_CONFIG_HOME": "/h/c"}
    desktop = desktop_environment(shell, platform="darwin")
    assert desktop == {"HOME": "/h", "XDG_CONFIG_HOME": "/h/c", "PATH": desktop["PATH"]}
    assert "/usr/bin" in desktop["PATH"].split(":")
    assert "/h/bin" not in desktop["PATH"].split(":")


@pytest.mark.timeout(20)
def test_a_program_that_is_no_agent_is_reported_with_its_last_output(tmp_path: Path) -> None:
    script = tmp_path / "agent"
    for body, why in [
        ("echo broken >&2; exit 3", "status 3 without an answer; it said: broken"),
        ("echo hello", "without an answer; it said: hello"),
        ("sleep 60", "did not answer within"),
    ]:
        script.write_text(f"#!/bin/sh\n{body}\n")
        script.chmod(0o755)
        with pytest.raises(InvalidInputError) as raised:
            greet([str(script)], {"PATH": os.environ["PATH"]}, seconds=0.5)
        assert why in str(raised.value)
    with pytest.raises(InvalidInputError, match="No such file"):
        greet([str(tmp_path / "none")], {})


def test_the_agent_answers_and_a_missing_key_leads_to_the_login(tmp_path: Path) -> None:
    ran = acp_agent(tmp_path, "setup", "jetbrains", "--yes")
    assert ran.returncode == 0, ran.stderr
    assert "acp-agent 0." in ran.stdout
    assert "acp-agent login" in ran.stdout


def test_a_key_that_only_the_shell_has_is_reported(tmp_path: Path) -> None:
    ran = acp_agent(
        tmp_path, "setup", "jetbrains", "--yes", environ={"ANTHROPIC_API_KEY": "sk-ant-1234567890"}
    )
    assert ran.returncode == 0, ran.stderr
    assert "A model is available in this shell only" in ran.stdout
    assert "sk-ant" not in ran.stdout


def test_an_editor_that_is_started_from_the_shell_has_its_keys(tmp_path: Path) -> None:
    ran = acp_agent(
        tmp_path, "setup", "acpx", "--yes", environ={"ANTHROPIC_API_KEY": "sk-ant-1234567890"}
    )
    assert ran.returncode == 0, ran.stderr
    assert "Model: anthropic/" in ran.stdout


@pytest.mark.parametrize(
    ("user_fields", "message"),
    [
        ({"args": ["--model", "demo/demo"]}, "Model: demo/demo (from its arguments)."),
        ({"args": [], "env": {"OPENAI_API_KEY": "sk-own"}}, "Model: openai/"),
        ({"args": ["version"]}, "the agent fails when the editor starts it"),
    ],
)
def test_the_users_own_arguments_and_variables_are_tried(
    tmp_path: Path, user_fields: dict[str, object], message: str
) -> None:
    path = tmp_path / ".jetbrains" / "acp.json"
    path.parent.mkdir()
    entry = {"command": "/moved/acp-agent", **user_fields}
    path.write_text(json.dumps({"agent_servers": {"acp-agent": entry}}))
    ran = acp_agent(tmp_path, "setup", "jetbrains", "--yes")
    assert message in ran.stdout + ran.stderr
    assert ran.returncode == (1 if "fails" in message else 0)
    assert "sk-own" not in ran.stdout + ran.stderr
    assert json.loads(path.read_text())["agent_servers"]["acp-agent"]["args"] == user_fields["args"]


def test_a_person_is_asked_and_may_say_no(tmp_path: Path) -> None:
    path = tmp_path / ".jetbrains" / "acp.json"
    assert "Nothing changed." in ask(tmp_path, "n\n")
    assert not path.exists()
    assert "Wrote " in ask(tmp_path, "y\n")
    assert path.exists()


def ask(home: Path, answer: str) -> str:
    """What `acp-agent setup` says in a terminal to one who answers."""
    master_fd, slave_fd = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "acp_agent", "setup", "jetbrains", "--no-check"],
        stdin=slave_fd,
        stdout=slave_fd,
        stderr=slave_fd,
        env=environment(home),
    ) as process:
        os.close(slave_fd)
        os.write(master_fd, answer.encode())
        output = b""
        while True:
            try:
                output += os.read(master_fd, 4096)
            except OSError:  # the other end is closed
                break
        process.wait(30)
    os.close(master_fd)
    return output.decode()
