"""A real journal, copies of it with random damage, and what of it is still whole."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

from acp_agent.session.store.database_recovery import Pages
from acp_agent.session.store.write_queries import SEQ_BITS
from tests.support.agent_process import AgentProcess
from tests.support.editor import Editor
from tests.support.warm_parent import shared_parent

PROMPTS = ("hello", "read README.md", "write a file", "plan the work", "run a command")


async def real_journal(home: Path, folder: Path) -> list[str]:
    """Let the real agent with its demo model hold four conversations; their ids."""
    async with await AgentProcess.start(
        "--model",
        "demo/demo",
        home=home,
        editor=Editor(permission="allow_once"),
        launch=shared_parent().start,
    ) as agent:
        await agent.initialize()
        sessions = [await agent.new_session(folder) for _ in range(4)]
        for number, session in enumerate(sessions):
            for prompt in PROMPTS[: number + 2]:
                await agent.prompt(session, prompt)
        return sessions


def damage(source: random.Random, path: Path) -> str:
    """Damage a file in one of several ways; in which."""
    data = bytearray(path.read_bytes())
    kind = source.choice(["bits", "bits", "bytes", "run", "page", "zeros", "cut"])
    start = source.randrange(len(data))
    match kind:
        case "bits":
            for _ in range(source.choice([1, 2, 8, 64])):
                data[source.randrange(len(data))] ^= 1 << source.randrange(8)
        case "bytes":
            for _ in range(source.choice([1, 8, 64, 512])):
                data[source.randrange(len(data))] = source.randrange(256)
        case "run":
            length = source.choice([4, 40, 400])
            data[start : start + length] = source.randbytes(len(data[start : start + length]))
        case "page" | "zeros":
            start -= start % 4096
            size = len(data[start : start + 4096])
            data[start : start + 4096] = bytes(size) if kind == "zeros" else source.randbytes(size)
        case _:
            del data[start:]
    path.write_bytes(data)
    return kind


def whole_sessions(path: Path, before: dict[str, dict[int, bytes]]) -> set[str]:
    """Those of whom every record is on the pages as it was, whatever stands above them.

    None if records overlap: SQLite may not see that, and destroy one of them when it writes.
    """
    if _records_overlap(path):
        return set()
    return {name for name, rows in bodies(path).items() if rows == before.get(name)}


def _records_overlap(path: Path) -> bool:
    """Whether SQLite finds bytes of a page that belong to two records."""
    try:
        with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as database:
            return "Multiple uses for byte" in str(
                database.execute("PRAGMA quick_check(1000)").fetchall()
            )
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return False  # nothing can be written to it


def bodies(path: Path) -> dict[str, dict[int, bytes]]:
    """The events of each session as they lie on the pages of a file."""
    names: dict[int, str] = {}
    events: dict[int, dict[int, bytes]] = {}
    for rowid, values in Pages(path).records():
        if rowid is None:
            continue
        if len(values) in range(9, 12) and values[0] is None and isinstance(values[1], bytes):
            names[rowid] = values[1].decode("utf-8", "replace")
        elif len(values) == 3 and isinstance(values[2], bytes):
            key, seq = rowid >> SEQ_BITS, rowid & ((1 << SEQ_BITS) - 1)
            events.setdefault(key, {})[seq] = values[2]
    return {name: events.get(key, {}) for key, name in names.items()}
