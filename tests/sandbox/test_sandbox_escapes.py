"""Programs that try to get out of the sandbox, as root and as an ordinary user.

Each run stands in an outer sandbox with a read-only root and namespaces of its own, so that nothing
is harmed where the agent's sandbox fails.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from fnmatch import fnmatch
from pathlib import Path

import pytest

from acp_agent.sandbox.sandbox import Unavailable, find_backend
from tests.sandbox.escape_cases import SECRET, load_corpus
from tests.sandbox.escape_run import NOWHERE, has_namespaces
from tests.support.ordinary_user import NOBODY

Reached = dict[str, list[str]]

ROOT = Path(__file__).parents[2]
WORLD = "/srv/world"
SECONDS = 300
pytestmark = pytest.mark.timeout(SECONDS)
IS_ROOT = os.geteuid() == 0
CONFINED = ("bubblewrap", "without-bubblewrap", "old-landlock")
ALL = "ACP_AGENT_TEST_ALL_ESCAPES" in os.environ  # `make escapes`
RUNS = [("user", confinement) for confinement in CONFINED]
if IS_ROOT:
    RUNS = [("root", "bubblewrap"), ("user", "without-bubblewrap"), ("root", "unconfined")]
    if ALL:
        RUNS += [("user", "bubblewrap"), ("root", "without-bubblewrap"), ("user", "old-landlock")]
NO_RIGHTS = ("SYS_BOOT", "SYS_MODULE", "SYS_RAWIO", "SYS_TIME", "MKNOD", "AUDIT_CONTROL")


def as_user(number: int) -> list[str]:
    """The command line that what follows runs behind, as an ordinary user."""
    argv = ["setpriv", f"--reuid={number}", f"--regid={NOBODY}", "--clear-groups"]
    # `env`, since setpriv still has the right to start programs that the user cannot read.
    return [*argv, "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "env"]


def interpreter(prefix: list[str]) -> str:
    """A Python that the user of a command line may start, with the packages of this one."""
    for path in (os.path.realpath(sys.executable), "/usr/bin/python3"):
        tried = subprocess.run(
            [*prefix, path, "-c", "import msgspec"],
            env=python_path(),
            capture_output=True,
            check=False,
        )
        if tried.returncode == 0:
            return path
    pytest.skip("no Python of this version that an ordinary user may start")


def python_path() -> dict[str, str]:
    folders = (str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    return os.environ | {"PYTHONPATH": os.pathsep.join(folders)}


def outer_sandbox(shadow: Path) -> list[str]:
    """The command line that what follows runs behind, without harm to this machine."""
    argv = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", "/srv"]
    for folder in ("/tmp", "/run", "/dev/shm", WORLD):  # in memory: a disk that others use is slow
        argv += ["--perms", "1777", "--tmpfs", folder]
    argv += ["--ro-bind", str(shadow), "/etc/shadow"]
    argv += ["--unshare-net", "--unshare-ipc", "--unshare-uts", "--die-with-parent"]
    if ROOT.is_relative_to("/tmp"):
        argv += ["--ro-bind", str(ROOT), str(ROOT)]
    argv += ["--chdir", str(ROOT)]
    if not IS_ROOT:
        return [*argv, "--unshare-user", "--unshare-pid", "--proc", "/proc", "--"]
    for right in NO_RIGHTS:
        argv += ["--cap-drop", f"CAP_{right}"]
    argv[1:1] = ["--cap-add", "ALL"]
    # A process namespace whose /proc has nothing mounted over it: others can be made within.
    outermost = ["unshare", "--fork", "--pid", "--mount-proc", "--kill-child"]
    return [*outermost, *argv, "--bind", "/proc", "/proc", "--"]


def run_cases(tmp_path: Path, user: str, confinement: str) -> Reached:
    """What the cases reached, run as a user and confined in a way.

    Each run has a user of its own: the kernel counts a user's processes, and other runs may be
    going on at the same time.
    """
    backend = find_backend(os.environ.get("PATH") if confinement == "bubblewrap" else NOWHERE)
    if confinement in CONFINED and isinstance(backend, Unavailable):
        pytest.skip(f"no sandbox: {backend.reason}")
    if ROOT.is_relative_to("/tmp"):
        pytest.skip("the programs' world has a /tmp of its own, and this clone is in /tmp")
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap, which keeps the cases from doing harm, is not installed")
    shadow = tmp_path / "shadow"
    shadow.write_text(f"root:{SECRET}-shadow:1::::::\n")
    shadow.chmod(0o600)
    number = NOBODY - RUNS.index((user, confinement))
    prefix = as_user(number) if IS_ROOT and user == "user" else []
    argv = [*outer_sandbox(shadow), *prefix, interpreter(prefix)]
    done = subprocess.run(
        [*argv, "-m", "tests.sandbox.escape_run", WORLD, confinement],
        env=python_path(),
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    found: Reached = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("user", "backend"), [run for run in RUNS if run[1] in CONFINED])
def test_no_program_escapes_the_sandbox(tmp_path: Path, user: str, backend: str) -> None:
    corpus = load_corpus()
    known = corpus.known
    if backend != "bubblewrap" and not has_namespaces():
        known = known | corpus.known_without_namespace
    out = [
        f"{name}: {how[0]}"
        for name, how in run_cases(tmp_path, user, backend).items()
        if not any(fnmatch(name, pattern) for pattern in known)
    ]
    assert not out, "\n".join(out)


@pytest.mark.skipif(not IS_ROOT, reason="needs root")
@pytest.mark.skipif(not ALL, reason="make escapes lets them out")
def test_every_program_escapes_without_confinement(tmp_path: Path) -> None:
    found = run_cases(tmp_path, "root", "unconfined")
    cases = [case.name for case in load_corpus().cases if not case.control]
    assert [name for name in cases if name not in found] == []
    assert len(cases) > 250
