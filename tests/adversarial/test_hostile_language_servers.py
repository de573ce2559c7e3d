"""Language servers that lie, flood, hang and die: no edit waits, others still report."""

from __future__ import annotations

import asyncio
import os
import sys
import sysconfig
import time
import tomllib
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from acp_agent.language_servers.service import LanguageServers
from acp_agent.session.turns.parts import TurnTools
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.open_session import SECRET, Desk, is_alive, open_desk
from tests.support.process_memory import resident_memory
from tests.support.waiting import until

SUPPORT = Path(__file__).parents[1] / "support"
TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
MOST_SECONDS = 50.0  # for a turn with two edits, on a busy machine
LONGEST_GAP = 0.5  # seconds in which the event loop did nothing else
MOST_MEMORY = 200 * 1024**2


def configuration(tmp_path: Path, habits: Iterable[str]) -> str:
    """The configuration of a good server and odd ones for the same files, named by their habits."""
    pids = f"pid={tmp_path / 'pids'}"
    commands = {"good": [str(SUPPORT / "language_server.py"), pids]}
    odd = [str(SUPPORT / "odd_language_server.py"), pids, f"outside={tmp_path / 'outside' / 'b'}"]
    commands |= {habit: [*odd, f"secret={SECRET}", f"odd={habit}"] for habit in habits}
    tables = [
        f"[language_servers.{name}]\n"
        f"command = {[sys.executable, '-S', *command]!r}\nextensions = ['.txt']\n"
        for name, command in commands.items()
    ]
    return 'mode = "full"\n' + "".join(tables)


async def session_servers(desk: Desk) -> LanguageServers:
    """The language servers of a session, with `a.txt` shown to them."""
    tools = cast("TurnTools", (await desk.session.resources.for_turn()).tools)
    tools.edit_checks.record_read((desk.folder / "a.txt").resolve())
    await until(lambda: tools.edit_checks.servers is not None)
    assert tools.edit_checks.servers is not None
    return tools.edit_checks.servers


def has_checked(found: LanguageServers, name: str, path: Path) -> bool:
    """Whether a server knows the problems of a file."""
    for server in found._pool.servers(found.files.roots):
        if server.spec.name == name and server.running is not None:
            document = server.running.documents.get(path)
            return document is not None and document.checked is not None
    return False


def reports(found: LanguageServers, name: str, path: Path) -> bool:
    """Whether a server has reported a problem of the second line of a file, or an odd one any."""
    for server in found._pool.servers(found.files.roots):
        if server.spec.name == name and server.running is not None:
            problems = server.running.diagnostics.snapshot().get(path, ())
            return any(problem.line == 2 or name != "good" for problem in problems)
    return False


def odd_python_server(tmp_path: Path, habit: str) -> str:
    """The configuration of an odd server for Python files, beside the installed ones."""
    command = [sys.executable, str(SUPPORT / "odd_language_server.py"), f"odd={habit}"]
    command += [f"outside={tmp_path / 'outside' / 'b'}", f"secret={SECRET}"]
    return (
        f'mode = "full"\n[language_servers.{habit}]\n'
        f"command = {command!r}\nextensions = ['.py']\n"
    )


@asynccontextmanager
async def heartbeat() -> AsyncIterator[list[float]]:
    """Measure the longest time, of the processor, in which the event loop did nothing else."""
    longest, clock = [0.0], time.thread_time

    async def beat() -> None:
        last = clock()
        while True:
            await asyncio.sleep(0.01)
            longest[0] = max(longest[0], clock() - last)
            last = clock()

    task = asyncio.create_task(beat())
    try:
        yield longest
    finally:
        task.cancel()


@pytest.mark.parametrize("row", TABLE)
async def test_odd_servers_delay_nothing_and_leave_nothing_behind(
    tmp_path: Path, model_server: ModelServer, row: str
) -> None:
    habits: list[str] = TABLE[row]["habits"]
    reporting: list[str] = TABLE[row].get("report", [])
    outside = tmp_path / "outside"
    outside.mkdir()
    loop = asyncio.get_running_loop()
    before = resident_memory(os.getpid())
    async with open_desk(tmp_path, model_server, config=configuration(tmp_path, habits)) as desk:
        path = (desk.folder / "a.txt").resolve()
        path.write_text("one\ntwo\n")
        found = await session_servers(desk)
        waited_for = ["good", *reporting, *TABLE[row].get("begin", [])]
        await until(lambda: all(has_checked(found, name, path) for name in waited_for))
        stall = Stall()
        model_server.add(
            answer(Call("edit", {"path": "a.txt", "old": "one", "new": "new BAD"})),
            answer(Call("edit", {"path": "a.txt", "old": "two", "new": "next BAD"})),
            answer(stall, Call("shell", {"command": "true"})),
            answer("Done."),
        )
        # Floods take the cores as well; what counts is the work that they cause here.
        floods = "floods" in TABLE[row]
        clock = time.process_time if floods else loop.time
        async with heartbeat() as gap:
            began = clock()
            turn = await desk.begin("Go.")
            await model_server.arrived(3)
            await until(lambda: all(reports(found, name, path) for name in ["good", *reporting]))
            stall.release()
            await turn.result()
            took = clock() - began
        grown = resident_memory(os.getpid()) - before
        seen = [*desk.results(), *desk.words()]
        assert path.read_text() == "new BAD\nnext BAD\n"
        assert any("a.txt:1:5: error: new is bad [good bad]" in text for text in seen), seen
        assert any("a.txt:2:6: error: next is bad [good bad]" in text for text in seen), seen
        if "report" in TABLE[row]:
            assert [one for one in habits if any(f"[{one}" in text for text in seen)] == reporting
        for text in TABLE[row].get("shown", ()):
            assert any(text in one for one in seen), seen
        for one in seen:
            assert SECRET not in one
            assert len(one) < 6000
            assert all(part.isprintable() for part in one.replace("\t", " ").split("\n")), one
            assert "it is outside" not in one
        assert took < MOST_SECONDS
        assert gap[0] < LONGEST_GAP
        assert grown < MOST_MEMORY
        assert not list(outside.iterdir())
        began = loop.time()
    assert loop.time() - began < MOST_SECONDS
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) > len(habits)
    assert not [pid for pid in pids if is_alive(pid)]


@pytest.mark.parametrize(
    "habit", ["silent", "dies", "never_answers", "dies_later", "flood_of_requests", "answers_odd"]
)
async def test_a_real_server_reports_beside_an_odd_one(
    tmp_path: Path, model_server: ModelServer, habit: str
) -> None:
    config = odd_python_server(tmp_path, habit)
    environ = {"PATH": f"{sysconfig.get_path('scripts')}:/usr/bin:/bin"}
    async with open_desk(tmp_path, model_server, config=config, environ=environ) as desk:
        path = (desk.folder / "a.py").resolve()
        path.write_text("value = 1\n")
        tools = cast("TurnTools", (await desk.session.resources.for_turn()).tools)
        tools.edit_checks.record_read(path)
        await until(lambda: tools.edit_checks.servers is not None)
        servers = tools.edit_checks.servers
        assert servers is not None
        await until(lambda: has_checked(servers, "ruff", path))
        stall = Stall()
        model_server.add(
            answer(Call("edit", {"path": "a.py", "old": "value = 1", "new": "import BAD"})),
            answer(stall, Call("shell", {"command": "true"})),
            answer("Done."),
        )
        turn = await desk.begin("Go.")
        await model_server.arrived(2)
        await until(lambda: reports(servers, "ruff", path))
        stall.release()
        await turn.result()
        # With the edit or, on a busy machine, with the next request.
        texts = [*desk.results(), *desk.words()]
        assert any("a.py:1:8: warning: `BAD` imported but unused" in text for text in texts), texts
