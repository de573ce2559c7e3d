"""Sessions as they are named on the command line: by an id, the beginning of one, or `latest`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from acp_agent.config.paths import find_paths
from acp_agent.errors import InvalidInputError, SessionNotFoundError
from acp_agent.ids import SessionId
from acp_agent.session.store.records import SessionRecord
from acp_agent.session.store.store import Store

LATEST = "latest"

_LISTED = 5  # of the sessions that a beginning could mean


@asynccontextmanager
async def open_store() -> AsyncIterator[Store | None]:
    """The store, or None where there is none yet: looking must not make one."""
    path = find_paths(os.environ).sessions_file
    if not path.exists():
        yield None
        return
    store = await Store.open(path)
    try:
        yield store
    finally:
        await store.close()


async def find_session(store: Store, name: str) -> SessionRecord:
    """The session of an id or of an unambiguous beginning of one, or the `latest`.

    Raises:
        SessionNotFoundError: there is none.
        InvalidInputError: several begin so; the message lists them.
    """
    if name == LATEST:
        page = await store.list(limit=1)
        if not page.sessions:
            raise SessionNotFoundError(name)
        return page.sessions[0]
    try:
        return await store.get(SessionId(name))
    except SessionNotFoundError:
        found = await store.beginning_with(name, limit=_LISTED + 1) if name else []
    one = meant(name, [(record.id, record.title or record.cwd) for record in found])
    if one is None:
        raise SessionNotFoundError(name)
    return next(record for record in found if record.id == one)


async def whole_id(name: str) -> str:
    """The id that a name of a session of ours stands for; the name where there is no such session.

    Raises:
        InvalidInputError, StoreError: as `find_session` does.
    """
    async with open_store() as store:
        if store is None:
            return name
        try:
            return (await find_session(store, name)).id
        except SessionNotFoundError:
            return name


def meant(name: str, sessions: Sequence[tuple[str, str]]) -> str | None:
    """The id that `name` is, or is the beginning of; None where there is none.

    Args:
        name: what was typed.
        sessions: those there are: their ids, and what is said of each.

    Raises:
        InvalidInputError: several begin so; the message lists them.
    """
    found = [(one, about) for one, about in sessions if name and one.startswith(name)]
    if any(one == name for one, _ in found):
        return name
    if len(found) > 1:
        listed = [f"{one} ({_short(about)})" for one, about in found[:_LISTED]]
        more = ["…"] if len(found) > _LISTED else []
        raise InvalidInputError(
            f"several sessions begin with {name!r}; type more of the one that is meant: "
            f"{', '.join([*listed, *more])}",
            field="id",
        )
    return found[0][0] if found else None


def _short(about: str) -> str:
    line = " ".join(about.split())
    return line if len(line) <= 40 else f"{line[:39]}…"
