"""The profile for macOS; no test here runs it, since that needs a Mac."""

from __future__ import annotations

import platform
import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from acp_agent.config.sandbox_types import SandboxConfig
from acp_agent.sandbox import sandbox_exec
from acp_agent.sandbox.backends import Unavailable, find_backend
from acp_agent.sandbox.launch import SandboxedProgram
from acp_agent.sandbox.policy import MountKind, SandboxPolicy
from acp_agent.sandbox.sandbox_exec import SandboxExec

TABLE = tomllib.loads(Path(__file__).with_name("sandbox_exec.toml").read_text("utf-8"))
WEIRD = 'we"ird) (allow default'
Rule = list["Rule | str"]


def parsed(text: str) -> list[Rule]:
    """The lists of a text in Scheme's notation; fails where brackets or quotes do not match."""
    tokens = iter(re.findall(r'"(?:[^"\\]|\\.)*"|[()]|[^\s()"]+', re.sub(r";.*", "", text)))

    def items() -> Iterator[Rule | str]:
        for token in tokens:
            if token == ")":
                return
            yield list(items()) if token == "(" else token.strip('"')

    assert text.count("(") == text.count(")")
    return [one for one in items() if isinstance(one, list)]


class Profile:
    """A profile, read as its language says: the last rule that fits decides."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        assert argv[:2] == ("/usr/bin/sandbox-exec", "-p")
        self.text = argv[2]
        self.rules = parsed(self.text)
        self.parameters = dict(
            one.removeprefix("-D").split("=", 1) for one in argv[3 : argv.index("--")]
        )

    def allows(self, operation: str, about: str) -> bool:
        allowed = False
        for action, *rest in self.rules:
            names = [one for one in rest if isinstance(one, str)]
            filters = [one for one in rest if isinstance(one, list)]
            if action == "version" or not any(
                name == "default" or fnmatch(operation, name) for name in names
            ):
                continue
            if not filters or any(self._fits(one, about) for one in filters):
                allowed = action == "allow"
        return allowed

    def _fits(self, rule: Rule, about: str) -> bool:
        kind, value = rule
        if isinstance(value, list):
            assert value[0] == "param"
            value = self.parameters[str(value[1])]
        if kind == "subpath":
            return about == value or about.startswith(f"{value}/")
        return kind in {"literal", "global-name", "ipc-posix-name"} and about == value


@pytest.fixture
def policy(tmp_path: Path) -> SandboxPolicy:
    for folder in (
        "project/.git/hooks",
        "project/src",
        "project/hidden",
        "home/.ssh",
        f"project/{WEIRD}",
    ):
        (tmp_path / folder).mkdir(parents=True)
    return SandboxPolicy(
        roots=(f"{tmp_path}/project", f"{tmp_path}/project/{WEIRD}"),
        home=f"{tmp_path}/home",
        program_files=(),
        readable=(),
        temporary=f"{tmp_path}/temporary",
        search_path="",
        config=SandboxConfig(),
    )


@pytest.fixture
def argv(policy: SandboxPolicy, tmp_path: Path) -> tuple[str, ...]:
    kinds: dict[str, MountKind] = {
        "home/.ssh": "hide",
        "home/.config/acp-agent": "hide",
        "home/.config/acp-agent/outputs": "read",
        "project": "write",
        "project/.git": "write",
        "project/.git/config": "read",
        "project/.git/hooks": "read",
        "project/hidden": "hide",
        f"project/{WEIRD}": "write",
        "project2": "read",
        "project2/x-hidden": "hide",
    }
    mounts = [(f"{tmp_path}/{path}", kind) for path, kind in kinds.items()]
    launch = SandboxExec().launch(
        SandboxedProgram(
            ["/bin/echo", "--", "-Dx=y"],
            mounts,
            policy,
            str(tmp_path),
            {"SSH_AUTH_SOCK": "/x", "HOME": "/home"},
        )
    )
    assert launch.environ["TMPDIR"] == f"{tmp_path}/temporary"
    assert "SSH_AUTH_SOCK" not in launch.environ
    return launch.argv


@pytest.mark.parametrize("wanted", ["allowed", "denied"])
def test_the_profile_allows_and_denies(wanted: str, argv: tuple[str, ...], tmp_path: Path) -> None:
    profile = Profile(argv)
    wrong = []
    for entry in TABLE[wanted]:
        operation, _, about = entry.partition(" ")
        is_path = operation.startswith(("file-", "process-exec")) and not about.startswith("/")
        if profile.allows(operation, f"{tmp_path}/{about}" if is_path else about) != (
            wanted == "allowed"
        ):
            wrong.append(entry)
    assert wrong == []


def test_no_name_of_a_file_is_part_of_the_profile(argv: tuple[str, ...], tmp_path: Path) -> None:
    profile = Profile(argv)
    assert str(tmp_path) not in profile.text
    assert WEIRD not in profile.text
    assert any(WEIRD in value for value in profile.parameters.values())
    assert set(re.findall(r'\(param "(.*?)"\)', profile.text)) == profile.parameters.keys()
    assert argv[-3:] == ("/bin/echo", "--", "-Dx=y")


def test_on_a_mac_without_a_working_sandbox_the_user_sees_a_notice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(sandbox_exec, "PROGRAM", "/nonexistent/sandbox-exec")
    found = find_backend("/usr/bin")
    assert isinstance(found, Unavailable)
    assert found.reason.startswith("sandbox-exec does not work here (")
