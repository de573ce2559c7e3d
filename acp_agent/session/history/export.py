"""Export a session: its events as JSON lines, or the conversation as Markdown.

Secrets are removed if they are known or recognised by their form.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct

from acp_agent import events
from acp_agent.errors import InvalidInputError
from acp_agent.events import unwrap_child_event
from acp_agent.ids import SessionId
from acp_agent.session.history.transcript import Kind, Passage, transcript
from acp_agent.session.store.damaged_events import as_json
from acp_agent.session.store.event_codec import merge_adjacent, readable_events
from acp_agent.session.store.records import SessionRecord, StoredEvent, UnknownEvent
from acp_agent.session.store.store import Store
from acp_agent.workspace.scrub import scrub

ExportFormat = Literal["jsonl", "md"]

FORMAT_VERSION = 1  # of the JSON lines; the first line has it

_FENCED: frozenset[Kind] = frozenset({"output", "added", "removed"})
_HEADINGS: dict[Kind, str] = {"user": "## User", "agent": "## Agent"}
_Text = tuple[type[object], str]  # the type of a text, and its id


class ExportPage(Struct, frozen=True, kw_only=True):
    """A part of an export; `next_cursor` is None in the last part."""

    content: str
    next_cursor: str | None = None


async def export_page(
    store: Store,
    session_id: SessionId,
    *,
    form: ExportFormat,
    secrets: Sequence[str],
    limit: int,
    cursor: str | None = None,
) -> ExportPage:
    """Return a part of an export.

    A part has at most `limit` bytes in UTF-8, but at least one piece. All parts export the session
    in its state at the request of the first part.

    Args:
        session_id: the session; it may be open and written.
        limit: the maximum size in bytes.
        cursor: the `next_cursor` of the previous part.

    Raises:
        SessionNotFoundError: there is no such session.
        InvalidInputError: the cursor is invalid.
        StoreError: the session cannot be read.
    """
    record = await store.get(session_id)
    stored = await store.read_all(session_id)
    last, first = _position(cursor, stored)
    exported = [item for item in stored if item.seq <= last]
    return await asyncio.to_thread(
        lambda: _page(
            export_pieces(form, record, exported, secrets, skip=first), first, limit, last
        )
    )


def export_pieces(
    form: ExportFormat,
    record: SessionRecord,
    stored: Sequence[StoredEvent],
    secrets: Sequence[str],
    *,
    skip: int = 0,
) -> Iterator[str]:
    """Return the pieces of an export; each ends with a line break. Blocks for a long session.

    Args:
        skip: the number of pieces that the caller skips; they may be empty.
    """
    if form == "jsonl":
        return _json_lines(record, stored, secrets, skip)
    return _markdown(record, stored, secrets)


def _page(pieces: Iterator[str], first: int, limit: int, last: int) -> ExportPage:
    chunk: list[str] = []
    size = 0
    for index, piece in enumerate(pieces):
        if index < first:
            continue
        size += len(piece.encode("utf-8", "surrogatepass"))
        if chunk and size > limit:
            return ExportPage(content="".join(chunk), next_cursor=f"{last}.{index}")
        chunk.append(piece)
    return ExportPage(content="".join(chunk))


def _position(cursor: str | None, stored: Sequence[StoredEvent]) -> tuple[int, int]:
    """Return the export's last sequence number, and the index of the part's first piece."""
    if cursor is None:
        return (stored[-1].seq if stored else 0), 0
    last, _, first = cursor.partition(".")
    if not all(part.isascii() and part.isdecimal() and len(part) < 16 for part in (last, first)):
        raise InvalidInputError("cursor: it is not one of an export", field="cursor")
    return int(last), int(first)


# -- JSON lines ------------------------------------------------------------------------------


def _json_lines(
    record: SessionRecord, stored: Sequence[StoredEvent], secrets: Sequence[str], skip: int
) -> Iterator[str]:
    session = {
        "id": record.id,
        "cwd": record.cwd,
        "directories": list(record.directories),
        "title": record.title,
        "createdAt": _iso(record.created_at),
        "updatedAt": _iso(record.updated_at),
    }
    head = {"format": "acp-agent session", "version": FORMAT_VERSION, "session": session}
    yield _line(head, secrets)
    for index, item in enumerate(_join_texts(stored), 1):
        if index < skip:
            yield ""
            continue
        event = item.event
        payload = (
            as_json(event)
            if isinstance(event, UnknownEvent)
            else {"event": msgspec.to_builtins(event)}
        )
        yield _line({"seq": item.seq, "at": _iso(item.at), **payload}, secrets)


def _line(value: object, secrets: Sequence[str]) -> str:
    return msgspec.json.encode(_clean(value, secrets)).decode() + "\n"


def _clean(value: Any, secrets: Sequence[str]) -> Any:  # JSON, of any kind
    match value:
        case str():
            return scrub(value, secrets)
        case dict():
            return {key: _clean(item, secrets) for key, item in value.items()}
        case list() | tuple():
            return [_clean(item, secrets) for item in value]
        case _:
            return value


def _join_texts(stored: Sequence[StoredEvent]) -> Iterator[StoredEvent]:
    """Yield the events, with the pieces of each text joined: a secret may span two pieces.

    Events of other child sessions or other calls in between do not separate the pieces.
    """
    texts: dict[int, list[StoredEvent]] = {}  # by the index of the first piece
    last: dict[tuple[str, str], tuple[_Text | None, int]] = {}  # by child session and call
    for index, item in enumerate(stored):
        event = unwrap_child_event(item.event)
        child = item.event.session if isinstance(item.event, events.ChildWorked) else ""
        key = child, getattr(event, "call", "")
        text = _identify_text(event)
        previous, first = last.get(key, (None, index))
        if text is None or text != previous:
            first = index
        last[key] = text, first
        texts.setdefault(first, []).append(item)
    for items in texts.values():
        merged = merge_adjacent([item.event for item in items])
        for item, event in zip(items, merged, strict=False):
            yield StoredEvent(item.seq, item.at, event)


def _identify_text(event: object) -> _Text | None:
    match event:
        case events.AgentText() | events.AgentThought():
            return type(event), event.message
        case events.ToolOutput():
            return events.ToolOutput, event.call
        case events.CompactionSummaryText():
            return events.CompactionSummaryText, event.compaction
        case _:
            return None


# -- Markdown --------------------------------------------------------------------------------


def _markdown(
    record: SessionRecord, stored: Sequence[StoredEvent], secrets: Sequence[str]
) -> Iterator[str]:
    title = " ".join((record.title or "Untitled").split())
    head = (
        f"# {title}\n\n- Session: `{record.id}`\n- Folder: `{record.cwd}`\n"
        f"- From {_iso(record.created_at)} to {_iso(record.updated_at)}\n"
    )
    yield scrub(head, secrets)
    voice: Kind | None = None
    passages = transcript(readable_events(stored), thoughts=False)
    for (child, fenced), group in itertools.groupby(
        passages, key=lambda passage: (passage.child, passage.kind in _FENCED)
    ):
        if fenced:
            piece = _fence(list(group), secrets)
            yield _quote(piece) if child else piece
            continue
        for passage in group:
            piece = _passage(passage, scrub(passage.text, secrets), voice)
            yield _quote(piece, is_first=passage.kind == "child") if child else piece
            if not child:
                voice = "user" if passage.kind == "user" else "agent"


def _quote(piece: str, *, is_first: bool = False) -> str:
    """Return the text of a child session as a block quote (CommonMark 0.31, section 5.1)."""
    lines = "".join(f"> {line}\n" if line else ">\n" for line in piece[:-1].split("\n"))
    return "\n" + lines.removeprefix(">\n") if is_first else lines


def _passage(passage: Passage, text: str, voice: Kind | None) -> str:
    match passage.kind:
        case "child":
            body = f"**{' '.join(text.split())}**"
        case "user" if passage.child:
            body = f"**Task:** {text}"
        case "tool":
            body = f"**Tool:** {' '.join(text.split())}"
        case "note" | "error":
            body = "\n".join(f"> {line}".rstrip() for line in text.splitlines())
        case _:
            body = text
    same_voice = passage.child or passage.kind == voice
    heading = "" if same_voice else _HEADINGS.get(passage.kind, "")
    return f"\n{heading}\n\n{body}\n" if heading else f"\n{body}\n"


def _fence(passages: Sequence[Passage], secrets: Sequence[str]) -> str:
    """Return output and diffs in a fence longer than any in them (CommonMark 0.31, section 4.5)."""
    text = scrub("\n".join(passage.text for passage in passages), secrets)
    longest = max((len(run) for run in _backtick_runs(text)), default=0)
    fence = "`" * max(3, longest + 1)
    language = "diff" if any(passage.kind != "output" for passage in passages) else ""
    return f"\n{fence}{language}\n{text}\n{fence}\n"


def _backtick_runs(text: str) -> Iterator[str]:
    for ticks, run in itertools.groupby(text, key=lambda character: character == "`"):
        if ticks:
            yield "".join(run)


def _iso(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
