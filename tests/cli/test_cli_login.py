"""Logging in and out."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.cli_process import CLOSED_PORT, acp_agent, environment, provider
from tests.support.warm_parent import shared_parent

KEY = "sk-test-0123456789abcdef"


def stored_keys(home: Path) -> dict[str, str]:
    file = home / "agent" / "secrets.json"
    return dict(json.loads(file.read_text())["keys"]) if file.exists() else {}


def test_a_key_from_stdin_is_tried_and_saved_readable_only_by_its_owner(tmp_path: Path) -> None:
    with provider(KEY) as served:
        ran = acp_agent(
            tmp_path, "login", "openai", "--key-stdin",
            stdin=f"{KEY}\n", environ={"OPENAI_BASE_URL": f"{served.url}/v1"},
        )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert [path for path, _ in served.asked] == ["/v1/models"]
    assert stored_keys(tmp_path) == {"openai": KEY}
    assert stat.S_IMODE((tmp_path / "agent" / "secrets.json").stat().st_mode) == 0o600
    assert "2 models" in ran.stdout
    assert KEY not in ran.stdout + ran.stderr


def test_each_api_is_asked_in_its_own_way(tmp_path: Path) -> None:
    with provider(KEY) as served:
        ran = acp_agent(
            tmp_path, "login", "anthropic", "--key-stdin",
            stdin=KEY, environ={"ANTHROPIC_BASE_URL": served.url},
        )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    path, headers = served.asked[0]
    assert path == "/v1/models"
    assert headers["x-api-key"] == KEY
    assert headers["anthropic-version"]
    assert "authorization" not in headers


def test_a_key_that_the_provider_refuses_is_not_saved(tmp_path: Path) -> None:
    with provider("another-key-000000") as served:
        ran = acp_agent(
            tmp_path, "login", "openai", "--key-stdin",
            stdin=KEY, environ={"OPENAI_BASE_URL": served.url},
        )  # fmt: skip
    assert ran.returncode == 1
    assert "rejected the key (HTTP 401)" in ran.stderr
    assert "--no-check" in ran.stderr
    assert KEY not in ran.stderr
    assert stored_keys(tmp_path) == {}


def test_a_key_is_saved_untried_when_the_provider_does_not_answer(tmp_path: Path) -> None:
    ran = acp_agent(
        tmp_path, "login", "openai", "--key-stdin",
        stdin=KEY, environ={"OPENAI_BASE_URL": CLOSED_PORT},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "Saved without testing the key" in ran.stdout
    assert stored_keys(tmp_path) == {"openai": KEY}


def test_the_option_no_check_sends_no_request(tmp_path: Path) -> None:
    with provider("another-key-000000") as served:
        ran = acp_agent(
            tmp_path, "login", "openai", "--key-stdin", "--no-check",
            stdin=KEY, environ={"OPENAI_BASE_URL": served.url},
        )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert served.asked == []
    assert stored_keys(tmp_path) == {"openai": KEY}


def test_a_redirect_is_not_sent_the_key(tmp_path: Path) -> None:
    with provider(KEY) as served:
        served.status = 302
        ran = acp_agent(
            tmp_path, "login", "openai", "--key-stdin",
            stdin=KEY, environ={"OPENAI_BASE_URL": served.url},
        )  # fmt: skip
    assert ran.returncode == 0
    assert [path for path, _ in served.asked] == ["/models"]


def test_an_own_provider_is_found_in_the_configuration(tmp_path: Path) -> None:
    home = tmp_path / "agent"
    home.mkdir()
    with provider(KEY) as served:
        (home / "config.toml").write_text(
            f'[providers.mine]\napi = "openai"\nbase_url = "{served.url}/v1"\n'
            'api_key_env = "MINE"\n'
        )
        ran = acp_agent(tmp_path, "login", "mine", "--key-stdin", stdin=KEY)
    assert ran.returncode == 0, ran.stderr
    assert stored_keys(tmp_path) == {"mine": KEY}
    assert [path for path, _ in served.asked] == ["/v1/models"]


def test_an_unknown_provider_is_reported_with_the_closest_name(tmp_path: Path) -> None:
    ran = acp_agent(tmp_path, "login", "antropic", "--key-stdin", stdin=KEY)
    assert ran.returncode == 1
    assert "did you mean anthropic?" in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["openai"], ["--key-stdin"]])
def test_without_a_terminal_flags_are_required(tmp_path: Path, arguments: list[str]) -> None:
    ran = acp_agent(tmp_path, "login", *arguments, stdin=KEY)
    assert ran.returncode == 2
    assert "PROVIDER --key-stdin" in ran.stderr


def test_an_empty_key_is_refused(tmp_path: Path) -> None:
    ran = acp_agent(tmp_path, "login", "openai", "--key-stdin", "--no-check", stdin="\n")
    assert ran.returncode == 1
    assert "the key is empty" in ran.stderr


def test_a_variable_that_overrides_the_saved_key_is_mentioned(tmp_path: Path) -> None:
    ran = acp_agent(
        tmp_path, "login", "openai", "--key-stdin", "--no-check",
        stdin=KEY, environ={"OPENAI_API_KEY": "other-key-12345"},
    )  # fmt: skip
    assert "OPENAI_API_KEY is set and takes precedence" in ran.stdout
    assert "other-key-12345" not in ran.stdout + ran.stderr


def test_the_key_is_saved_in_the_keyring_on_request(tmp_path: Path) -> None:
    folder = tmp_path / "keyring"
    folder.mkdir()
    environ = {
        "PYTHON_KEYRING_BACKEND": "tests.config.folder_keyring.FolderKeyring",
        "TEST_KEYRING_FOLDER": str(folder),
    }
    flags = ("--key-stdin", "--no-check", "--keyring")
    ran = acp_agent(tmp_path, "login", "openai", *flags, stdin=KEY, environ=environ)
    assert ran.returncode == 0, ran.stderr
    assert stored_keys(tmp_path) == {}
    assert [file.read_text() for file in folder.iterdir()] == [KEY]
    ran = acp_agent(tmp_path, "logout", environ=environ)
    assert ran.returncode == 0, ran.stderr
    assert list(folder.iterdir()) == []


def read_until(terminal: int, text: str, seconds: float = 30.0) -> str:
    """What a terminal shows, up to `wanted`."""
    output = ""
    deadline = time.monotonic() + seconds
    while text not in output:
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"waited for {text!r}, saw {output!r}"
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            piece = b""
        assert piece, f"ended before {text!r}, saw {output!r}"
        output += piece.decode()
    return output


def test_in_a_terminal_it_asks_and_the_key_is_not_shown(tmp_path: Path) -> None:
    master_fd, slave_fd = pty.openpty()
    with provider(KEY) as served:
        child = subprocess.Popen(
            [*shared_parent().command(), "--login"],
            stdin=slave_fd, stdout=slave_fd, stderr=slave_fd, start_new_session=True,
            env=environment(tmp_path, {"KIMI_BASE_URL": served.url}),
        )  # fmt: skip
        os.close(slave_fd)
        output = read_until(master_fd, "Provider (number or name): ")
        assert "anthropic" in output
        os.write(master_fd, b"nobody\n")
        read_until(master_fd, "Provider (number or name): ")
        os.write(master_fd, b"kimi\n")
        read_until(master_fd, "(not shown): ")
        os.write(master_fd, f"{KEY}\n".encode())
        output = read_until(master_fd, "Next:")
        assert child.wait(30) == 0
    os.close(master_fd)
    assert KEY not in output
    assert stored_keys(tmp_path) == {"kimi": KEY}


def interrupt(child: subprocess.Popen[bytes]) -> int:
    """Press Ctrl+C, and again where a read that was about to begin did not notice it."""
    for _ in range(6):
        child.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.wait(10)
    pytest.fail("Ctrl+C does not end it")


def test_ctrl_c_ends_the_login_quietly_and_saves_nothing(tmp_path: Path) -> None:
    master_fd, slave_fd = pty.openpty()
    child = subprocess.Popen(
        [*shared_parent().command(), "login", "kimi"],
        stdin=slave_fd, stdout=slave_fd, stderr=slave_fd, start_new_session=True,
        env=environment(tmp_path),
    )  # fmt: skip
    os.close(slave_fd)
    read_until(master_fd, "(not shown): ")
    assert interrupt(child) == 130
    output = b""
    while select.select([master_fd], [], [], 0)[0]:
        try:
            output += os.read(master_fd, 4096)
        except OSError:
            break
    os.close(master_fd)
    assert b"Traceback" not in output
    assert stored_keys(tmp_path) == {}


def login(home: Path, *names: str) -> None:
    for name in names:
        ran = acp_agent(home, "login", name, "--key-stdin", "--no-check", stdin=KEY)
        assert ran.returncode == 0, ran.stderr


def test_logout_removes_the_only_key_without_a_provider_name(tmp_path: Path) -> None:
    login(tmp_path, "openai")
    ran = acp_agent(tmp_path, "logout")
    assert (ran.returncode, ran.stdout) == (0, "Deleted the key of openai.\n")
    assert stored_keys(tmp_path) == {}
    assert (
        acp_agent(tmp_path, "logout").stdout
        == "No keys are saved; save one with `acp-agent login`.\n"
    )


def test_logout_asks_which_of_several_keys_to_remove(tmp_path: Path) -> None:
    login(tmp_path, "openai", "kimi", "moonshot")
    ran = acp_agent(tmp_path, "logout")
    assert ran.returncode == 1
    assert "kimi, openai" in ran.stderr
    assert acp_agent(tmp_path, "logout", "qwen").returncode == 1
    assert acp_agent(tmp_path, "logout", "moonshot").returncode == 0
    assert stored_keys(tmp_path) == {"openai": KEY}
    login(tmp_path, "kimi")
    assert acp_agent(tmp_path, "logout", "--all").returncode == 0
    assert stored_keys(tmp_path) == {}


@pytest.mark.parametrize("name", ["nope", "none", "x"])
def test_an_unknown_name_without_a_close_match_gets_the_list_of_providers(
    tmp_path: Path, name: str
) -> None:
    ran = acp_agent(tmp_path, "login", name, "--key-stdin", stdin="sk-test")
    assert "did you mean" not in ran.stderr
    assert "known are openai, anthropic, " in ran.stderr
