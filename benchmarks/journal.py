"""The cost of the journal: open it, append to it, load a long session.

`rows()` measures and gives back one `Row` a measurement. Each is paired with its floor: the two
are taken in turn in the same run, so that whatever else the machine does meets both. On its own:
`python -m benchmarks journal`.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from acp_agent.content import DiffPart, Location
from acp_agent.events import (
    AgentText,
    AnyEvent,
    SessionStarted,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    TurnStarted,
)
from acp_agent.ids import CallId, MessageId, SessionId, TurnId
from acp_agent.session.store.store import Store
from benchmarks.table import Row, row

SESSION = SessionId("sess_benchmark")
EVENTS = 10_000
ROUNDS = 15
APPENDS = 400


def long_session() -> list[AnyEvent]:
    """A session of 10,000 events as real work makes them: text, calls, results, edits."""
    events: list[AnyEvent] = [SessionStarted(cwd="/project")]
    number = 0
    while len(events) < EVENTS:
        number += 1
        call, message = CallId(f"call_{number}"), MessageId(f"msg_{number}")
        events += [
            TurnStarted(turn=TurnId(f"turn_{number}")),
            AgentText(message=message, text="Let me look at how the parser reads a line. " * 4),
            ToolCalled(
                call=call,
                message=message,
                name="read",
                arguments='{"path": "/project/src/parser.py", "limit": 200}',
                title="Read src/parser.py",
                kind="read",
                locations=(Location("/project/src/parser.py", 1),),
            ),
            ToolEnded(
                call=call,
                result="    def parse(self, line):\n        return line.split()\n" * 12,
                content=(DiffPart("/project/src/parser.py", "new text\n" * 8, "old text\n" * 8),),
            ),
            TurnEnded(turn=TurnId(f"turn_{number}"), stop_reason="end_turn"),
        ]
    return events[:EVENTS]


async def _timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    result = run()
    if asyncio.iscoroutine(result):
        await result
    return (time.perf_counter() - start) * 1_000


async def _paired(
    ours: Callable[[], object], floor: Callable[[], object], rounds: int
) -> tuple[list[float], list[float]]:
    """Milliseconds of both, taken in turn."""
    found = [(await _timed(ours), await _timed(floor)) for _ in range(rounds)]
    return [one for one, _ in found], [other for _, other in found]


async def _open(folder: Path) -> Row:
    """Opening and closing, against a bare connection that reads one row."""
    path = folder / "open.db"
    store = await Store.open(path)
    await store.create(SESSION, [SessionStarted(cwd="/project")])
    await store.close()

    async def ours() -> None:
        await (await Store.open(path)).close()

    def floor() -> None:
        connection = sqlite3.connect(path)
        connection.execute("SELECT count(*) FROM sessions").fetchone()
        connection.close()

    pair = await _paired(ours, floor, ROUNDS * 4)
    return row("open and close the journal", "ms", pair[0], "sqlite3 alone", pair[1])


async def _append(folder: Path) -> Row:
    """One small event committed, against the same kind of transaction without loop and thread."""
    event = AgentText(message=MessageId("msg_1"), text="a few words of an answer, as they come")
    body = msgspec.json.encode(event)
    store = await Store.open(folder / "append.db")
    await store.create(SESSION, [SessionStarted(cwd="/project")])
    bare = sqlite3.connect(folder / "bare.db", isolation_level=None)
    bare.execute("PRAGMA journal_mode = WAL")
    bare.execute("PRAGMA synchronous = NORMAL")
    bare.execute("CREATE TABLE events (place INTEGER PRIMARY KEY, at INTEGER, body TEXT)")

    def floor() -> None:
        bare.execute("BEGIN IMMEDIATE")
        bare.execute("INSERT INTO events (at, body) VALUES (?, CAST(? AS TEXT))", (1, body))
        bare.execute("COMMIT")

    pair = await _paired(lambda: store.append(SESSION, [event]), floor, APPENDS)
    bare.close()
    await store.close()
    name = "append an event and have it committed"
    return row(name, "ms", pair[0], "sqlite3 alone", pair[1])


async def _load(folder: Path) -> Row:
    """Loading 10,000 events, against reading and printing their lines with `json`."""
    events = long_session()
    lines = folder / "session.jsonl"
    lines.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))
    store = await Store.open(folder / "load.db")
    await store.create(SESSION, events)
    assert [stored.event for stored in await store.read_all(SESSION)] == events

    def floor() -> None:
        with lines.open(encoding="utf-8") as source, Path("/dev/null").open("w") as target:
            for line in source:
                print(json.dumps(json.loads(line)), file=target)

    pair = await _paired(lambda: store.read_all(SESSION), floor, ROUNDS)
    await store.close()
    return row("load 10,000 events", "ms", pair[0], "json, line by line", pair[1], times=2)


async def _rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return [await measure(Path(folder)) for measure in (_open, _append, _load)]


def rows() -> list[Row]:
    """Measure everything here, once; takes some five seconds."""
    return asyncio.run(_rows())
