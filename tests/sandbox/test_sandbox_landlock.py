from __future__ import annotations

import errno
import os
import platform
import subprocess
import tomllib
from pathlib import Path

import pytest
from msgspec import Struct, convert

from acp_agent.config.sandbox_types import SandboxConfig, SandboxFilesystemConfig
from acp_agent.sandbox.backends import Unavailable, find_backend
from acp_agent.sandbox.landlock import ruleset
from acp_agent.sandbox.landlock.backend import Landlock
from acp_agent.sandbox.landlock.path_rules import path_rules
from acp_agent.sandbox.policy import MountKind, SandboxPolicy
from acp_agent.sandbox.sandbox import Sandbox
from acp_agent.workspace.processes import LocalProcesses


class Command(Struct, frozen=True, forbid_unknown_fields=True):
    command: str
    output: str
    version: int | None = None
    deny_read: tuple[str, ...] = ()
    namespaces: tuple[bool, ...] = (False, True)  # whether it has a process namespace


COMMANDS = {
    name: convert(given, Command)
    for name, given in tomllib.loads(
        Path(__file__).with_name("landlock_work.toml").read_text("utf-8")
    ).items()
}


@pytest.fixture(scope="module")
def backend() -> Landlock:
    found = find_backend(os.environ.get("PATH"), "landlock")
    if isinstance(found, Unavailable):
        pytest.skip(found.reason)
    assert isinstance(found, Landlock)
    return found


@pytest.mark.parametrize(
    ("name", "namespace"),
    [(name, namespace) for name, case in COMMANDS.items() for namespace in case.namespaces],
)
async def test_everyday_commands_work_in_landlock(
    name: str, namespace: bool, backend: Landlock, tmp_path: Path
) -> None:
    case = COMMANDS[name]
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / ".env").write_text("secret")
    identity = {
        f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)} | identity
    subprocess.run(["git", "init", "-q", project], check=True)
    policy = SandboxPolicy(
        roots=(str(project),),
        home=str(tmp_path),
        program_files=(),
        readable=(),
        temporary=str(tmp_path / "temporary"),
        search_path=os.environ["PATH"],
        config=SandboxConfig(filesystem=SandboxFilesystemConfig(deny_read=list(case.deny_read))),
    )
    if namespace and not backend.namespace:
        pytest.skip("this system allows no process namespace")
    chosen = Landlock(case.version or backend.version, "", namespace=namespace)
    processes = LocalProcesses(
        tmp_path / "outputs", environ=environ, sandbox=Sandbox(chosen, policy)
    )
    ended = await processes.run(case.command, project, timeout=30, on_output=_ignore)
    await processes.aclose()
    lines = [line for line in ended.output.splitlines() if ": " not in line]  # what tools say
    assert ("".join(f"{line}\n" for line in lines), ended.exit_code) == (case.output, 0), (
        ended.output
    )
    assert (project / ".env").read_text() == "secret"


def test_a_folder_with_an_exception_gets_no_grant_and_what_is_in_it_does(tmp_path: Path) -> None:
    for name in ("src", ".git/hooks", "secret/part", "other"):
        (tmp_path / "project" / name).mkdir(parents=True)
    for name in ("README", ".git/config", ".git/HEAD", "secret/part/file", "secret/list"):
        (tmp_path / "project" / name).write_text("")
    (tmp_path / "project/link").symlink_to("/etc")
    root = str(tmp_path / "project")
    kinds: dict[str, MountKind] = {
        str(tmp_path): "hide",
        root: "write",
        f"{root}/.git/config": "read",
        f"{root}/.git/hooks": "read",
        f"{root}/.envrc": "read",
        f"{root}/secret/part": "hide",
    }
    rules = path_rules(kinds)
    assert {path for path in rules.write if path.startswith(root)} == {
        f"{root}/{name}" for name in ("src", "other", "README", ".git/HEAD", "secret/list")
    }
    program_files = {path for path in rules.read if path.startswith(root)}
    assert program_files == {
        f"{root}/{name}" for name in ("src", "other", "README", ".git", "secret/list", ".envrc")
    }
    assert {root, f"{root}/secret"} <= set(rules.divided)
    assert "/" not in rules.read


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_kernel_without_landlock_is_reported(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(ruleset, "landlock_version", missing)
    found = find_backend("/nonexistent")
    assert isinstance(found, Unavailable)
    assert found.reason == (
        f"bubblewrap is not installed, and the kernel has no Landlock ({os.strerror(number)})"
    )
    assert "install the package `bubblewrap`" in found.remedy


def test_a_landlock_that_knows_too_little_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ruleset, "landlock_version", lambda: 2)
    found = find_backend(os.environ.get("PATH"), "landlock")
    assert isinstance(found, Unavailable)
    assert "too old (version 2)" in found.reason


def test_the_chosen_backend_is_used_or_none(backend: Landlock) -> None:
    assert backend.why == "the configuration wants it"
    missing = find_backend("/nonexistent", "bubblewrap")
    assert isinstance(missing, Unavailable)
    other = find_backend(os.environ.get("PATH"), "sandbox-exec")
    if platform.system() == "Linux":
        assert isinstance(other, Unavailable)


async def _ignore(_text: str) -> None:
    pass
