"""What is outside of a sandbox is also out of reach by its other names."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs

from acp_agent.config.sandbox_types import SandboxConfig, SandboxFilesystemConfig
from acp_agent.sandbox.bubblewrap import Bubblewrap, UnixSockets
from acp_agent.sandbox.launch import Launch, SandboxedProgram
from acp_agent.sandbox.policy import SandboxPolicy, existing_paths, mount_kind
from acp_agent.sandbox.sandbox import Backend, Unavailable, find_backend

ALIASES = """
import sys
from acp_agent.sandbox.mount_aliases import find_aliases
print(*find_aliases(sys.argv[1:]), sep="\\n")
"""

# Pipes of the project and the temporary folder, devices, folders between which a file moves.
WORK = """
mkfifo pipe /tmp/pipe
for at in pipe /tmp/pipe; do { echo through > $at & cat $at; }; done
echo moved > from/file && mv from/file to/ && ln to/file from/ && : > /dev/null && : > /dev/shm/x
echo "$0 $#"
echo "limits $(ulimit -c)"
test -z "${PERL_BADLANG+set}"
"""


@pytest.fixture(params=["bubblewrap", "landlock"])
def backend(request: pytest.FixtureRequest) -> Backend:
    found = find_backend(os.environ.get("PATH"), request.param)
    if isinstance(found, Unavailable):
        pytest.skip(found.reason)
    return found


def policy_of(folder: Path, **filesystem: list[str]) -> SandboxPolicy:
    return SandboxPolicy(
        roots=(str(folder / "project"),),
        home=str(folder / "home"),
        program_files=(),
        readable=(),
        temporary=str(folder / "temporary"),
        search_path=os.environ["PATH"],
        config=SandboxConfig(filesystem=SandboxFilesystemConfig(**filesystem)),
    )


def ran(launch: Launch) -> bytes:
    with launch.start("/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        return process.communicate(timeout=20)[0]


def test_a_file_below_two_mounts_has_both_paths(tmp_path: Path) -> None:
    if isinstance(find_backend(os.environ.get("PATH"), "bubblewrap"), Unavailable):
        pytest.skip("bubblewrap makes the second mount")
    home = Path(os.path.realpath(tmp_path), "a home")
    (home / ".ssh").mkdir(parents=True)
    (home / "other").mkdir()
    second = home.parent / "second"
    second.mkdir()
    command = ["bwrap", "--dev-bind", "/", "/", "--bind", str(home), str(second), "--"]
    command += [sys.executable, "-c", ALIASES, str(home / ".ssh"), str(home / "missing")]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert str(second / ".ssh") in found.stdout.splitlines()
    assert "missing" not in found.stdout


def test_a_hidden_file_is_hidden_under_all_its_paths(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "home/.ssh").mkdir(parents=True)
    monkeypatch.setattr(
        "acp_agent.sandbox.policy.find_aliases", lambda paths: [f"/other{path}" for path in paths]
    )
    policy = policy_of(tmp_path, deny_read=[str(tmp_path / "project")])
    mounts = dict(policy.mounts(only_reads=True))
    for path in (tmp_path / "home/.ssh", tmp_path / "project"):
        assert mounts[f"/other{path}"] == "hide"


def test_sockets_are_found_by_names_that_the_kernel_does_not_list(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = Path(os.path.realpath(tmp_path))
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as relative, socket.socket(socket.AF_UNIX) as renamed:
        relative.bind("relative")
        (folder / "below").mkdir()
        renamed.bind(str(folder / "below/before"))
        (folder / "below/before").rename(folder / "below/after")
        os.mkfifo(folder / "below/pipe")
        (folder / "below/file").touch()
        found = UnixSockets().find()
    mine = {path for path in found if path.startswith(f"{folder}/")}
    assert mine == {f"{folder}/relative", f"{folder}/below/after", f"{folder}/below/pipe"}


def test_what_the_loader_obeys_holds_for_the_command_alone(
    backend: Backend, tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    policy = policy_of(tmp_path)
    (tmp_path / "temporary").mkdir()
    environ = {"PATH": os.environ["PATH"], "LD_PRELOAD": "/evil.so", "OTHER": "x"}
    launch = backend.launch(
        SandboxedProgram(
            ["/bin/sh", "-c", "/usr/bin/env"], policy.mounts(only_reads=True), policy, "/", environ
        )
    )
    assert "LD_PRELOAD" not in launch.environ
    assert launch.environ["OTHER"] == "x"
    assert b"\nLD_PRELOAD=/evil.so\n" in b"\n" + ran(launch)


def test_programs_of_the_project_may_be_changed_though_shells_find_them(tmp_path: Path) -> None:
    folders = [tmp_path / "project/.venv/bin", tmp_path / "project/node_modules/.bin"]
    for folder in folders:
        folder.mkdir(parents=True)
    policy = structs.replace(
        policy_of(tmp_path), search_path=":".join(map(str, [*folders, "/usr/bin"]))
    )
    kinds = dict(policy.mounts(only_reads=False))
    for folder in folders:
        assert mount_kind(str(folder), kinds) == "write"


def test_shells_programs_in_a_home_folder_that_is_the_project_stay_as_they_are(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    for name in ("tools/bin", "venv/bin", "node_modules/.bin"):
        (home / name).mkdir(parents=True)
    (home / "venv/pyvenv.cfg").touch()
    policy = SandboxPolicy(
        roots=(str(home),),
        home=str(home),
        program_files=(),
        readable=(),
        temporary=str(tmp_path / "temporary"),
        search_path=f"{home}/tools/bin:{home}/venv/bin:{home}/node_modules/.bin:/usr/bin",
        config=SandboxConfig(),
    )
    kinds = dict(policy.mounts(only_reads=False))
    assert kinds[f"{home}/tools/bin"] == "read"
    assert mount_kind(f"{home}/venv/bin", kinds) == "write"
    assert mount_kind(f"{home}/node_modules/.bin", kinds) == "write"


def test_package_managers_do_not_try_again_without_a_network(
    backend: Backend, tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "temporary").mkdir()
    policy = policy_of(tmp_path)
    launch = backend.launch(
        SandboxedProgram(
            ["/bin/sh", "-c", 'echo "$npm_config_fetch_retries $PIP_RETRIES"'],
            policy.mounts(only_reads=True),
            policy,
            "/",
            {"PATH": os.environ["PATH"], "PIP_RETRIES": "7"},
        )
    )
    assert ran(launch) == b"0 7\n"
    assert "PIP_RETRIES" not in policy.environ({})


@pytest.mark.parametrize("perl", [True, False], ids=["perl", "without perl"])
def test_bubblewrap_lets_a_command_use_pipes_and_devices_of_its_own(
    perl: bool, tmp_path: Path
) -> None:
    found = find_backend(os.environ.get("PATH"), "bubblewrap")
    if not isinstance(found, Bubblewrap) or found.perl is None:
        pytest.skip("no bubblewrap that restricts pipes")
    backend = Bubblewrap(found.program, new_user=found.new_user, perl=found.perl if perl else None)
    for name in ("project/from", "project/to", "temporary"):
        (tmp_path / name).mkdir(parents=True)
    policy = policy_of(tmp_path)
    launch = backend.launch(
        SandboxedProgram(
            ["/bin/sh", "-c", WORK, "name with spaces", "--", ""],
            policy.mounts(only_reads=False),
            policy,
            os.path.realpath(tmp_path / "project"),
            {"PATH": os.environ["PATH"], "LC_ALL": "missing", "TMPDIR": "/tmp"},
        )
    )
    assert ran(launch).decode() == "through\nthrough\nname with spaces 2\nlimits 0\n"
    assert (tmp_path / "project/to/file").read_text() == "moved\n"


def test_names_are_found_in_folders_of_any_size(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("some", "Other", "folder/below"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "broken").symlink_to("missing")
    names = ("some", "broken", "other", "folder/below", "folder/no", "no/below", "some/below")
    paths = [f"{tmp_path}/{name}" for name in names]
    expected = [path for path in paths if os.path.lexists(path)]
    assert len(expected) >= 3
    assert existing_paths(paths) == expected
    monkeypatch.setattr("acp_agent.sandbox.policy._FEW_ENTRIES", 2)
    assert existing_paths(paths) == expected
