"""Find sessions named on the command line by an ID, its first characters, or `latest`."""

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

_MAX_LISTED = 5  # matching sessions listed in an error


@asynccontextmanager
async def open_store() -> AsyncIterator[Store | None]:
    """Open the store; None if it does not exist yet, as reading must not create it."""
    path = find_paths(os.environ).sessions_file
    if not path.exists():
        yield None
        return
    store = await Store.open(path)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def existing_store() -> AsyncIterator[Store]:
    """Open the store for a command that needs a session.

    Raises:
        InvalidInputError: there are no sessions yet.
    """
    async with open_store() as store:
        if store is None:
            raise _no_sessions()
        yield store


async def find_session(store: Store, name: str) -> SessionRecord:
    """Return the session with an ID, its first characters, or `latest`.

    Raises:
        SessionNotFoundError: there is none.
        InvalidInputError: several IDs match, and the message lists them; or there are no
            sessions.
    """
    if name == LATEST:
        page = await store.list(limit=1)
        if not page.sessions:
            raise _no_sessions()
        return page.sessions[0]
    try:
        return await store.get(SessionId(name))
    except SessionNotFoundError:
        records = await store.find_by_prefix(name, limit=_MAX_LISTED + 1) if name else []
    session_id = match_id(name, [(record.id, record.title or record.cwd) for record in records])
    if session_id is None:
        raise SessionNotFoundError(name, "; list sessions with `acp-agent sessions list`")
    return next(record for record in records if record.id == session_id)


async def full_id(name: str) -> str:
    """Return the full ID for a name; the name itself if there is no such session.

    Raises:
        InvalidInputError, StoreError: as for `find_session`.
    """
    async with open_store() as store:
        if store is None:
            return name
        try:
            return (await find_session(store, name)).id
        except SessionNotFoundError:
            return name


def match_id(name: str, sessions: Sequence[tuple[str, str]]) -> str | None:
    """Return the ID that equals or begins with `name`; None if there is none.

    Raises:
        InvalidInputError: several IDs match; the message lists them.
    """
    matches = [
        (session_id, description)
        for session_id, description in sessions
        if name and session_id.startswith(name)
    ]
    if any(session_id == name for session_id, _ in matches):
        return name
    if len(matches) > 1:
        candidates = [
            f"{session_id} ({_short(description)})"
            for session_id, description in matches[:_MAX_LISTED]
        ]
        more = ["…"] if len(matches) > _MAX_LISTED else []
        raise InvalidInputError(
            f"several session IDs begin with {name!r}; type more characters: "
            f"{', '.join([*candidates, *more])}",
            field="id",
        )
    return matches[0][0] if matches else None


def _no_sessions() -> InvalidInputError:
    return InvalidInputError(
        "there are no sessions yet; start one with `acp-agent chat` or in your editor", field="id"
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 40 else f"{line[:39]}…"
