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
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path

import pytest

from acp_agent.sandbox.sandbox import Unavailable, find_backend
from tests.sandbox.escape_cases import SECRET, load_corpus
from tests.sandbox.escape_run import NOWHERE, has_namespaces
from tests.support.ordinary_user import NOBODY

Run = tuple[str, str]  # the user, and what confines
Reached = dict[str, list[str]]

ROOT = Path(__file__).parents[2]
WORLD = "/srv/world"
SECONDS = 300
pytestmark = pytest.mark.timeout(SECONDS)
IS_ROOT = os.geteuid() == 0
USERS = ("root", "user") if IS_ROOT else ("user",)
CONFINED = ("bubblewrap", "without-bubblewrap", "old-landlock")
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


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> dict[Run, Reached]:
    """What the cases reached, with bubblewrap and where nothing confines them."""
    backend = find_backend(os.environ.get("PATH"))
    if isinstance(backend, Unavailable):
        pytest.skip(f"no sandbox: {backend.reason}")
    runs = [(user, "bubblewrap") for user in USERS]
    return run_all([*runs, ("root", "unconfined")] if IS_ROOT else runs, tmp_path_factory)


@pytest.fixture(scope="module")
def reached_landlock(tmp_path_factory: pytest.TempPathFactory) -> dict[Run, Reached]:
    """What they reached with Landlock, as the kernel has it, and as an old one has."""
    backend = find_backend(NOWHERE)
    if isinstance(backend, Unavailable):
        pytest.skip(f"no sandbox: {backend.reason}")
    runs = [(user, "without-bubblewrap") for user in USERS]
    landlock = [*runs, (USERS[-1], "old-landlock")]
    return run_all(landlock, tmp_path_factory, below=NOBODY - len(CONFINED))


def run_all(
    runs: list[Run], tmp_path_factory: pytest.TempPathFactory, *, below: int = NOBODY
) -> dict[Run, Reached]:
    """All of these at once, since each waits for much.

    Each has a user of its own, numbered from `below` downwards: the kernel counts a user's
    processes, and other runs may be going on beside these.
    """
    if ROOT.is_relative_to("/tmp"):
        pytest.skip("the programs' world has a /tmp of its own, and this clone is in /tmp")
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap, which keeps the cases from doing harm, is not installed")
    shadow = tmp_path_factory.mktemp("escapes") / "shadow"
    shadow.write_text(f"root:{SECRET}-shadow:1::::::\n")
    shadow.chmod(0o600)
    with ExitStack() as stack:
        started = {}
        for number, run in enumerate(runs):
            user = as_user(below - number) if IS_ROOT and run[0] == "user" else []
            argv = [*outer_sandbox(shadow), *user, interpreter(user)]
            argv += ["-m", "tests.sandbox.escape_run", WORLD, run[1]]
            process = subprocess.Popen(
                argv, env=python_path(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            started[run] = stack.enter_context(process)
            stack.callback(process.kill)
        found: dict[Run, Reached] = {}
        for run, process in started.items():
            output, errors = process.communicate(timeout=SECONDS)
            assert process.returncode == 0, errors.decode()[-3000:]
            found[run] = json.loads(output)
        return found


@pytest.mark.parametrize("user", ["root", "user"])
@pytest.mark.parametrize("backend", CONFINED)
def test_no_program_gets_out_of_the_sandbox(
    request: pytest.FixtureRequest, user: str, backend: str
) -> None:
    name = "reached" if backend == "bubblewrap" else "reached_landlock"
    found = request.getfixturevalue(name).get((user, backend))
    if found is None:
        pytest.skip("needs root, or another sandbox than this system has")
    corpus = load_corpus()
    known = corpus.known
    if backend != "bubblewrap" and not has_namespaces():
        known = known | corpus.known_without_namespace
    out = [
        f"{name}: {how[0]}"
        for name, how in found.items()
        if not any(fnmatch(name, pattern) for pattern in known)
    ]
    assert not out, "\n".join(out)


def test_every_program_gets_out_where_nothing_confines_it(reached: dict[Run, Reached]) -> None:
    found = reached.get(("root", "unconfined"))
    if found is None:
        pytest.skip("needs root")
    cases = [case.name for case in load_corpus().cases if not case.control]
    assert [name for name in cases if name not in found] == []
    assert len(cases) > 250
