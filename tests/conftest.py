"""Fixtures that every part of the tests may use."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.agent_process import AgentProcess, Launch, StartAgent
from tests.support.editor import Editor
from tests.support.model_server import ModelServer
from tests.support.warm_parent import WarmParent, shared_parent

# Whoever runs the tests in the background of a shell has SIGINT ignored, and children inherit that;
# with a handler here they get the default, as in a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Likewise SIGHUP, which `nohup` has ignored.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# How long a machine that others use takes to draw and to try an example says nothing of the code.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

_TESTS = Path(__file__).parent
GREETING = 'def greet(name: str) -> str:\n    return f"Hello {name}"\n'


def pytest_collection(session: pytest.Session) -> None:
    """Have each worker begin with other modules, so that each module is compiled by one of them.

    In a new clone all would compile all modules, in the same order at the same time.
    """
    worker: Mapping[str, str] = getattr(session.config, "workerinput", {})
    if not worker or session.config.getoption("file_or_dir"):
        return
    modules = sorted(_TESTS.rglob("test_*.py"))
    start = len(modules) * int(worker["workerid"].removeprefix("gw")) // int(worker["workercount"])
    for module in modules[start:] + modules[:start]:
        if str(module.parent) not in sys.path:
            sys.path.insert(0, str(module.parent))  # as pytest does
        # What fails here fails again when the module is collected, and is reported then.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(module.stem)


def pytest_collection_finish() -> None:
    """Spare the tests' own collections of garbage what pytest has collected, which stays."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder without any configuration."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def warm_parent() -> WarmParent:
    """A process that has imported the agent, to fork agents from."""
    return shared_parent()


@pytest.fixture
def launch(request: pytest.FixtureRequest) -> Launch | None:
    """How `agent` starts agents: forked after their imports.

    The mark `cold`, or ACP_AGENT_TEST_COLD=1, has them started as an editor does.
    """
    if request.node.get_closest_marker("cold") or os.environ.get("ACP_AGENT_TEST_COLD"):
        return None
    parent: WarmParent = request.getfixturevalue("warm_parent")
    return parent.start


@pytest.fixture
async def agent(home: Path, launch: Launch | None) -> AsyncIterator[StartAgent]:
    """A factory of real agents: `running = await agent("--model", "demo/demo")`.

    After the test each is ended as an editor would end it, and has to pass `AgentProcess.check`.
    """
    started: list[AgentProcess] = []

    async def start(
        *arguments: str,
        editor: Editor | None = None,
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> AgentProcess:
        one = await AgentProcess.start(
            *arguments, home=home, editor=editor, environ=environ, cwd=cwd, launch=launch
        )
        started.append(one)
        return one

    yield start
    failures: list[BaseException] = []
    for one in started:
        try:
            await one.stop()
        except (AssertionError, OSError, TimeoutError) as failure:
            failures.append(failure)
    if failures:
        raise failures[0]


@pytest.fixture
async def model_server() -> AsyncIterator[ModelServer]:
    """A scriptable model provider on 127.0.0.1."""
    async with ModelServer() as server:
        yield server


@pytest.fixture(scope="session")
def sample_repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What each `workspace_repo` is a copy of, since git takes longer than most tests."""
    folder = tmp_path_factory.mktemp("sample") / "repository"
    (folder / "src").mkdir(parents=True)
    (folder / "README.md").write_text("# Sample\n\nA repository for tests.\n")
    (folder / "greeting.py").write_text(GREETING)
    (folder / "src" / "app.py").write_text("from greeting import greet\n\nprint(greet('Ada'))\n")
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "noise.log").write_text("ignored\n")
    for arguments in (
        ("init", "-q", "-b", "main", "--template="),
        ("add", "."),
        ("-c", "user.name=Test", "-c", "user.email=test@example.com", "commit", "-qm", "Start"),
    ):
        subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def workspace_repo(sample_repo: Path, tmp_path: Path) -> Path:
    """A small git repository: README.md, greeting.py, src/app.py, an ignored file."""
    return Path(shutil.copytree(sample_repo, tmp_path / "repository"))
