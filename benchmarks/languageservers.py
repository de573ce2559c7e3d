"""The cost of language server checks: problems after an edit in a project of 200 files.

Measured with the servers that are installed next to this Python or in PATH.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from acp_agent.language_servers.edit_checks import EditChecks
from acp_agent.language_servers.pool import ServerPool
from acp_agent.language_servers.service import LanguageServers
from acp_agent.workspace.files import WorkspaceFiles
from benchmarks.agent import Agent
from benchmarks.table import Row, pairs, row
from tests.support.model_server import Call, ModelServer, answer, model_server_in_thread

FILES = 200
FUNCTIONS = 30  # in each file
ROUNDS = 6
WARM = 60.0  # seconds for the servers to know the project, also on a busy machine
LONGEST = 300.0  # milliseconds after an edit
SERVERS = {
    "ruff": ("ruff",),
    "ruff and ty": ("ruff", "ty"),
    "ruff and basedpyright": ("ruff", "basedpyright-langserver"),
}
FIRST = "def total(items: list[int]) -> int:"
SECOND = "def total(items: list[int], more: Missing) -> int:"


def rows() -> list[Row]:
    """Milliseconds of a prompt with one edit, against the same without any server."""
    found = [row("checks of an edit where no server is installed", "ms", _without(), plus=1.0)]
    for name, programs in SERVERS.items():
        if all(_program(one) for one in programs):
            found.append(_row(f"new problems after an edit, {name}", programs, LONGEST))
    return found


def _without() -> list[float]:
    """Milliseconds that an edit waits where no server is installed."""
    with tempfile.TemporaryDirectory() as cwd:
        root = Path(cwd)
        make_project(root)
        return asyncio.run(_checks(root))


async def _checks(root: Path) -> list[float]:
    pool = ServerPool({"PATH": "/nowhere"})
    servers = LanguageServers(pool, WorkspaceFiles(root), {}, lambda: False)
    checks = EditChecks(servers)
    taken: list[float] = []
    for number in range(FILES):
        began = time.perf_counter()
        checks.record_change(root / "shop" / f"m{number}.py", "")
        await checks.problems()
        taken.append((time.perf_counter() - began) * 1e3)
    await pool.aclose()
    return taken


def _row(name: str, programs: tuple[str, ...], plus: float) -> Row:
    with _edits(programs) as ours, _edits(None) as floor:
        values, floors = pairs(ours, floor, ROUNDS)
    return row(name, "ms", values, "servers off", floors, times=1.0, plus=plus)


@contextmanager
def _edits(programs: tuple[str, ...] | None) -> Iterator[Callable[[], float]]:
    """A function that makes an edit and its opposite; it returns the milliseconds of each.

    Args:
        programs: the language servers that are found; None: none is used, and a file is edited
            whose syntax is not checked either.
    """
    with (
        model_server_in_thread() as server,
        tempfile.TemporaryDirectory() as home,
        tempfile.TemporaryDirectory() as cwd,
        tempfile.TemporaryDirectory() as found,
    ):
        for name in programs or ():
            Path(found, name).symlink_to(_program(name) or "")
        make_project(Path(cwd))
        path = "shop/m0.py" if programs else "shop/m0.txt"
        Path(cwd, path).write_text(Path(cwd, "shop/m0.py").read_text())
        off = "use_language_servers = false\n" if programs is None else ""
        (Path(home) / "config.toml").write_text(f'{off}mode = "full"\ntitles = "prompt"\n')
        folders = os.pathsep.join([found, "/usr/bin", "/bin"])
        extra = {**server.environ("openai"), "PATH": folders}
        with Agent("--model", "openai/gpt-5", home=home, extra=extra) as agent:
            agent.initialize()
            session = agent.new_session(cwd)
            server.add(answer(Call("read", {"path": path})), answer("Read."))
            agent.answer(agent.prompt(session, "read"))
            if programs:
                time.sleep(WARM)

            def edit() -> float:
                taken = [
                    _edit(server, agent, session, path, FIRST, SECOND),
                    _edit(server, agent, session, path, SECOND, FIRST),
                ]
                if programs:
                    bodies = b"".join(request.body for request in server.requests[-4:])
                    for name in programs:
                        source = name.removesuffix("-langserver").encode()
                        assert b"[%b " % source in bodies.lower(), f"{name} reported nothing"
                return sum(taken) / len(taken)

            edit()
            yield edit


def _edit(server: ModelServer, agent: Agent, session: str, path: str, old: str, new: str) -> float:
    server.add(answer(Call("edit", {"path": path, "old": old, "new": new})), answer("Done."))
    began = time.perf_counter()
    agent.answer(agent.prompt(session, "edit"))
    return (time.perf_counter() - began) * 1e3


def make_project(root: Path) -> None:
    """Write a package of `FILES` modules, each of which uses the one before."""
    package = root / "shop"
    package.mkdir()
    (root / "pyproject.toml").write_text('[project]\nname = "shop"\nversion = "1"\n')
    (package / "__init__.py").write_text("")
    for number in range(FILES):
        before = (
            f"from shop.m{number - 1} import total as before\n"
            if number
            else "def before(items: list[int]) -> int:\n    return sum(items)\n"
        )
        functions = "".join(
            f"\n\ndef helper_{one}(value: int) -> str:\n    return str(value + {one})\n"
            for one in range(FUNCTIONS)
        )
        total = f"\n\n{FIRST}\n    return before(items) + {number}\n"
        (package / f"m{number}.py").write_text(before + total + functions)


def _program(name: str) -> str | None:
    folders = [sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)]
    return shutil.which(name, path=os.pathsep.join(folders))
