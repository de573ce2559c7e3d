"""The questions that the user answered in earlier sessions, with their calls."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence

from msgspec import Struct

from acp_agent import events
from acp_agent.content import JsonObject
from acp_agent.permissions.access import (
    Access,
    CommandAccess,
    FetchAccess,
    McpAccess,
    WriteAccess,
)
from acp_agent.session.store.event_codec import readable_events
from acp_agent.session.store.records import StoredEvent
from acp_agent.session.store.store import Store

_PAGE = 200  # sessions
_DAY = 86_400_000  # ms


class Question(Struct, frozen=True):
    """A question that the user answered in a session of the folder `cwd`."""

    cwd: str
    access: Access
    allowed: bool


async def read_questions(store: Store, *, cwd: str | None, days: int) -> AsyncIterator[Question]:
    """Yield the questions of sessions, the latest session first.

    Args:
        cwd: only sessions of this folder; None for all.
        days: only sessions that were used in the last `days` days.
    """
    since = time.time() * 1000 - days * _DAY
    cursor: str | None = None
    while True:
        page = await store.list(cwd=cwd, cursor=cursor, limit=_PAGE, archived="include")
        for record in page.sessions:
            if record.updated_at < since:
                return
            for question in questions(await store.read_all(record.id), record.cwd):
                yield question
        cursor = page.next_cursor
        if cursor is None:
            return


def questions(stored: Sequence[StoredEvent], cwd: str) -> Iterator[Question]:
    """Yield the questions of one session that the user answered."""
    calls: dict[str, events.ToolCalled] = {}
    questioned: set[str] = set()
    for stored_event in readable_events(stored):
        event = events.unwrap_child_event(stored_event.event)
        match event:
            case events.ToolCalled(call=call):
                calls[call] = event
            case events.PermissionAsked(call=call):
                questioned.add(call)
            case events.PermissionDecided(call=call, by="user") if call in questioned:
                access = _access(calls[call], cwd) if call in calls else None
                if access is not None and event.why != "dismissed":
                    yield Question(cwd, access, event.allowed)


def _access(call: events.ToolCalled, cwd: str) -> Access | None:
    """Return what a call would have accessed; None if its arguments do not show it."""
    arguments = _arguments(call.arguments)
    if call.kind in {"edit", "delete", "move"}:
        paths = tuple(location.path for location in call.locations)
        return WriteAccess(paths) if paths else None
    match call.name, arguments:
        case "shell", {"command": str(command)}:
            return CommandAccess(command, cwd, (cwd,))
        case "web_fetch", {"url": str(url)}:
            return FetchAccess(url)
        case "http_request", {"url": str(url)} if arguments.get("method", "GET") in {"GET", "HEAD"}:
            return FetchAccess(url)
    if call.name.startswith("mcp__"):
        server, _, tool = call.name.removeprefix("mcp__").partition("__")
        return McpAccess(server=server, tool=tool, identity="", definition="")
    return None


def _arguments(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
