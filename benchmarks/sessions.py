"""Loading sessions: a short one beyond the start-up, a long one against reading its lines."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from pathlib import Path

from acp_agent.ids import SessionId
from acp_agent.session.store.store import Store
from benchmarks.agent import Agent
from benchmarks.journal import long_session
from benchmarks.table import Row, pairs, row

ROUNDS = 15


def rows() -> list[Row]:
    """The rows of session/load."""
    return [_short(), _long()]


def _short() -> Row:
    times: list[float] = []
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as cwd:
        with Agent("--model", "demo/demo", home=home) as agent:
            agent.initialize()
            session = agent.new_session(cwd)
            agent.answer(agent.prompt(session, "list ."))
        load = {"sessionId": session, "cwd": cwd, "mcpServers": []}
        for _ in range(ROUNDS):
            with Agent("--model", "demo/demo", home=home) as agent:
                agent.initialize()
                agent.new_session(cwd)  # what any first session costs is in the start-up rows
                began = time.perf_counter()
                agent.answer(agent.post("session/load", load))
                times.append((time.perf_counter() - began) * 1e3)
    return row("session/load of a short session", "ms", times, plus=10)


def _long() -> Row:
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as cwd:
        session = SessionId("sess_benchmark")
        asyncio.run(_write(Path(home) / "sessions.db", session))
        load = {"sessionId": session, "cwd": cwd, "mcpServers": []}
        lines: list[bytes] = []
        with Agent("--model", "demo/demo", home=home) as agent:
            agent.initialize()
            request = agent.post("session/load", load)
            while b'"id":%d,' % request not in (line := agent.line())[:60]:
                lines.append(line)
        file = Path(home) / "lines"
        file.write_bytes(b"".join(lines))

        def ours() -> float:
            with Agent("--model", "demo/demo", home=home) as agent:
                agent.initialize()
                agent.new_session(cwd)
                began = time.perf_counter()
                agent.answer(agent.post("session/load", load))
                return (time.perf_counter() - began) * 1e3

        def floor() -> float:
            with Path("/dev/null").open("wb") as out:
                began = time.perf_counter()
                with file.open("rb") as saved:
                    for line in saved:
                        out.write(json.dumps(json.loads(line)).encode() + b"\n")
                return (time.perf_counter() - began) * 1e3

        values, floors = pairs(ours, floor, ROUNDS)
    name = f"session/load of 10,000 events ({len(lines):,} updates)"
    return row(name, "ms", values, "json, the same lines", floors, times=2)


async def _write(path: Path, session: SessionId) -> None:
    store = await Store.open(path)
    await store.create(session, long_session()[:1])
    await store.append(session, long_session()[1:])
    await store.close()
