"""A process of its own that uses a journal; the tests beside it start it, watch it and kill it.

store_child.py write PATH SESSION COUNT   append numbered events, say each that is committed
store_child.py open PATH                  open and close new journals until killed
store_child.py lease PATH SESSION         take the lease, say so, hold it until stdin ends
store_child.py contend PATH SESSION COUNT take and release the lease; two inside is an error
store_child.py limited PATH BYTES         write until a file limit stops it, then without it
store_child.py small PATH                 fill a small disk, make room, go on
store_child.py look PATH SESSION          read as a user who may not write
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from pathlib import Path

from acp_agent.errors import AcpAgentError, SessionBusyError, StoreError
from acp_agent.events import AgentText, SessionStarted, TurnStarted
from acp_agent.ids import MessageId, SessionId, TurnId
from acp_agent.session.store import read_queries as _read_queries  # noqa: F401 - before rights are dropped
from acp_agent.session.store.store import Store

NOBODY = 65_534


def say(*words: object) -> None:
    os.write(1, (" ".join(str(word) for word in words) + "\n").encode())


def numbered(number: int, size: int = 200) -> AgentText:
    return AgentText(message=MessageId(f"msg_{number}"), text=f"{number}:" + "x" * size)


def start() -> list[SessionStarted | TurnStarted]:
    return [SessionStarted(cwd="/project"), TurnStarted(turn=TurnId("turn_1"))]


async def write(path: Path, session: SessionId, count: int) -> None:
    store = await Store.open(path)
    await store.create(session, start())
    say("created")

    async def one(number: int) -> None:
        await store.append(session, [numbered(number)])
        say(number)

    for first in range(0, count, 4):  # several under way, so that groups are committed
        await asyncio.gather(*(one(number) for number in range(first, first + 4)))
    await store.close()


async def open_often(path: Path) -> None:
    number = 0
    say("ready")
    while True:
        store = await Store.open(path.with_name(f"{number}.db"))
        await store.create(SessionId(f"sess_{number}"), start())
        say(number)
        if number % 2:
            await store.close()
        number += 1


async def lease(path: Path, session: SessionId) -> None:
    store = await Store.open(path)
    held = store.lease(session)
    say("held")
    await asyncio.to_thread(sys.stdin.read)
    held.release()
    await store.close()


async def contend(path: Path, session: SessionId, count: int) -> None:
    store = await Store.open(path)
    inside = path.with_name("inside")
    for _ in range(count):
        held = None
        while held is None:
            try:
                held = store.lease(session)
            except SessionBusyError:
                await asyncio.sleep(0)
        os.close(os.open(inside, os.O_CREAT | os.O_EXCL))  # fails when another is inside
        inside.unlink()
        held.release()
    say("done")
    await store.close()


async def until_refused(store: Store, session: SessionId, size: int) -> tuple[int, StoreError]:
    """How many events were committed before the first that was not, and why it was not."""
    number = 0
    while True:
        try:
            await store.append(session, [numbered(number, size)])
        except StoreError as error:
            return number, error
        number += 1


async def limited(path: Path, limit: int) -> None:
    session = SessionId("sess_limited")
    store = await Store.open(path)
    await store.create(session, start())
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    number, error = await until_refused(store, session, 5_000)
    say("refused", number, error)
    say("readable", len(await store.read_all(session)))
    try:
        await store.append(session, [numbered(-1, 5_000)])
    except StoreError:
        say("refused again")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await store.append(session, [numbered(number)])
    await store.close()


async def small(path: Path) -> None:
    filler = path.with_name("filler")
    filler.write_bytes(b"x" * 1_000_000)
    session = SessionId("sess_small")
    store = await Store.open(path)
    await store.create(session, start())
    number, error = await until_refused(store, session, 5_000)
    say("refused", number, error)
    say("readable", len(await store.read_all(session)))
    await store.close()

    store = await Store.open(path)  # a program that starts while the disk is full
    say("readable", len(await store.read_all(session)))
    number, error = await until_refused_from(store, session, number)
    say("refused", number, error)
    filler.unlink()
    await store.append(session, [numbered(number)])
    say(
        "whole",
        [stored.seq for stored in await store.read_all(session)] == list(range(1, number + 4)),
    )
    await store.close()


async def until_refused_from(
    store: Store, session: SessionId, number: int
) -> tuple[int, StoreError]:
    while True:
        try:
            await store.append(session, [numbered(number, 5_000)])
        except StoreError as error:
            return number, error
        number += 1


async def look(path: Path, session: SessionId) -> None:
    # What is imported late must be imported while the interpreter's own files can be read.
    warm = await Store.open(path.with_name("warm") / "journal.db")
    await warm.create(session, start())
    await warm.read_all(session)
    await warm.close()
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    store = await Store.open(path)
    say("listed", *(record.id for record in (await store.list()).sessions))
    say("read", len(await store.read_all(session)))
    try:
        await store.append(session, [numbered(0)])
    except StoreError as error:
        say("refused", error)
    try:
        store.lease(session)
    except StoreError as error:
        say("no lease", error)
    path.parent.chmod(0o700)
    for found in path.parent.glob("journal.db*"):
        found.chmod(0o600)
    try:
        await store.append(session, [numbered(0)])
        say("appended", len(await store.read_all(session)))
    except StoreError as error:
        say("refused", error)
    await store.close()


async def main(what: str, path: Path, *rest: str) -> None:
    match what, rest:
        case "write", (session, count):
            await write(path, SessionId(session), int(count))
        case "open", ():
            await open_often(path)
        case "lease", (session,):
            await lease(path, SessionId(session))
        case "contend", (session, count):
            await contend(path, SessionId(session), int(count))
        case "limited", (limit,):
            await limited(path, int(limit))
        case "small", ():
            await small(path)
        case "look", (session,):
            await look(path, SessionId(session))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]))
    except AcpAgentError as error:
        say("error", type(error).__name__, error)
        sys.exit(1)
