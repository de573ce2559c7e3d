"""The memory tool: write, read, delete and find notes that outlive the session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from importlib.resources import files as package_files
from typing import TYPE_CHECKING, ClassVar, Literal

from acp_agent.content import DiffPart, JsonObject, text_part
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.permissions.access import NoteAccess
from acp_agent.tools.base import NOTHING, Outcome, Prepared, Progress, Tool, ToolParams, Touches
from acp_agent.tools.memory.notes import MAX_NOTE_LENGTH, Note, NoteFolders, Scope, describe_notes
from acp_agent.tools.memory.text_search import PastSession, SearchIndex, SearchResult
from acp_agent.tools.quoting import code_block, shorten
from acp_agent.tools.session_search import DatedEvent
from acp_agent.workspace.workspace import Workspace

if TYPE_CHECKING:  # only needed if an embedding model is configured
    from acp_agent.tools.memory.semantic_search import Embedding

_MAX_PASSAGES = 8  # passages per result
_EXCERPT_LENGTH = 500  # characters of each passage
_MAX_SHOWN_LENGTH = 4_000  # characters that are shown to the user
_MAX_INDEX_SECONDS = 10.0  # for adding missing sessions to the index


class EarlierSessions:
    """The earlier sessions of a project.

    Args:
        list_sessions: returns them, most recently used first.
    """

    def __init__(
        self,
        list_sessions: Callable[[], Awaitable[Sequence[PastSession]]],
        journal: Callable[[str], Awaitable[Sequence[DatedEvent]]],
    ) -> None:
        self.list_sessions = list_sessions
        self.journal = journal


class MemoryParams(ToolParams):
    """The memory tool's parameters."""

    action: Literal["save", "read", "delete", "recall"]
    name: str = ""
    text: str = ""
    scope: Scope = "project"


class MemoryTool(Tool[MemoryParams]):
    """Stores notes, and finds notes and earlier sessions.

    Args:
        open_embedding: opens the embedding model; None if there is none.
    """

    name: ClassVar[str] = "memory"
    kind: ClassVar[ToolKind] = "think"
    effect: ClassVar[Literal["reads", "writes"]] = "writes"
    params: ClassVar[type[MemoryParams]] = MemoryParams

    def __init__(
        self,
        workspace: Workspace,
        folders: NoteFolders,
        sessions: EarlierSessions,
        clean: Callable[[str], str],
        open_embedding: Callable[[], Awaitable[Embedding]] | None = None,
    ) -> None:
        super().__init__(workspace)
        self._folders = folders
        self._sessions = sessions
        self._clean = clean
        self._open_embedding = open_embedding

    def description(self) -> str:
        """Return the description for the model."""
        return (package_files(__package__) / "memory.md").read_text("utf-8").strip()

    def title(self, arguments: JsonObject) -> str:
        """Return a title such as "Save the note build-commands"."""
        name, text = (shorten(str(arguments.get(key, "")), 80) for key in ("name", "text"))
        match arguments.get("action"):
            case "save":
                return f"Save the note {name}"
            case "delete":
                return f"Delete the note {name}"
            case "recall":
                return f"Recall {' '.join(text.split())}"
            case _:
                return f"Read the note {name}" if name else "Memory"

    def call_kind(self, arguments: JsonObject) -> ToolKind:
        """Return the kind of a call, which depends on its action."""
        match arguments.get("action"):
            case "save":
                return "edit"
            case "delete":
                return "delete"
            case "recall":
                return "search"
            case _:
                return "read"

    def touches(self, params: MemoryParams) -> Touches:
        """Return what a call touches: changes to notes are serialised."""
        return Touches(writes=("notes",)) if params.action in {"save", "delete"} else NOTHING

    async def prepare(self, params: MemoryParams) -> Prepared:
        """Read the current note, and prepare the action."""
        title = self.title(params.model_dump())
        if params.action == "recall":
            if not params.text.strip():
                raise ToolError("there is nothing to look for", advice="give words in `text`")
            return Prepared(title=title, run=lambda _: self._recall(params.text))
        path = self._folders.path(params.scope, params.name)
        before = await asyncio.to_thread(self._folders.find, params.scope, params.name)
        if params.action == "save":
            return self._save(params, title, before)
        if before is None:
            raise await asyncio.to_thread(self._unknown_note, params)
        if params.action == "read":
            return Prepared(title=title, run=lambda _: _read(before))

        async def delete(_: Progress) -> Outcome:
            await asyncio.to_thread(self._folders.delete, params.scope, params.name)
            return Outcome(text=f"The note {params.name} is deleted.")

        diff = DiffPart(path=str(path), old_text=before.text, new_text="")
        access = _access(params)
        return Prepared(title=title, run=delete, access=access, content=(diff,))

    def _save(self, params: MemoryParams, title: str, before: Note | None) -> Prepared:
        text = f"{params.text.strip()}\n"
        if len(text) < 2 or len(text) > MAX_NOTE_LENGTH:
            raise ToolError(
                f"a note has 1 to {MAX_NOTE_LENGTH:,} characters, and this one has "
                f"{len(text) - 1:,}",
                advice="keep what later sessions need, in your own words",
            )
        if self._clean(text) != text:
            raise ToolError(
                "the text has something in it that looks like a secret; no note may have one",
                advice="write where it is stored instead",
            )

        async def save(_: Progress) -> Outcome:
            await asyncio.to_thread(self._folders.save, params.scope, params.name, text)
            return Outcome(text=f"The note {params.name} is saved for later sessions.")

        path = self._folders.path(params.scope, params.name)
        diff = DiffPart(path=str(path), old_text=before.text if before else None, new_text=text)
        return Prepared(title=title, run=save, access=_access(params), content=(diff,))

    def _unknown_note(self, params: MemoryParams) -> ToolError:
        index = describe_notes(self._folders.all())
        advice = f"there are:\n{index}" if index else "there are no notes yet"
        return ToolError(f"the {params.scope} has no note {params.name!r}", advice=advice)

    async def _recall(self, words: str) -> Outcome:
        folder = self._folders.folder("project")
        index = SearchIndex(folder / "recall.db")
        notes = await asyncio.to_thread(self._folders.all)
        sessions = await self._sessions.list_sessions()
        missing = await asyncio.to_thread(index.missing, sessions)
        start, skipped = time.monotonic(), 0
        for session in missing:
            if time.monotonic() - start > _MAX_INDEX_SECONDS:
                skipped += 1
                continue
            journal = await self._sessions.journal(session.id)
            await asyncio.to_thread(index.add, session, journal)
        await asyncio.to_thread(index.replace_notes, notes)
        nearest_ids: Sequence[int] = ()
        remark = ""
        if self._open_embedding is not None:
            from acp_agent.tools.memory.semantic_search import find_nearest  # noqa: PLC0415 - likewise

            nearest = await find_nearest(index, self._open_embedding, words, self._clean)
            nearest_ids, remark = nearest.passages, nearest.remark
        hits = await asyncio.to_thread(index.find, words, _MAX_PASSAGES, nearest_ids)
        text = "\n\n".join(_format_hit(hit, words) for hit in hits)
        text = self._clean(text) or "No note and no earlier session has any of these words."
        if remark:
            text += f"\n\n{remark}"
        if skipped:
            text += f"\n\n[{skipped} older sessions are not in the index yet: ask again.]"
        return Outcome(
            text=text, content=(text_part(code_block(shorten(text, _MAX_SHOWN_LENGTH), "")),)
        )


async def _read(note: Note) -> Outcome:
    return Outcome(text=note.text)


def _access(params: MemoryParams) -> NoteAccess:
    return NoteAccess(params.name, everywhere=params.scope == "user")


def _format_hit(hit: SearchResult, words: str) -> str:
    timestamp = datetime.fromtimestamp(hit.at / 1_000, UTC).astimezone()
    head = f"[note {hit.speaker}, {timestamp:%Y-%m-%d}]"
    if hit.session:
        head = (
            f"[session {hit.title!r}, turn {hit.turn}, {timestamp:%Y-%m-%d %H:%M}, {hit.speaker}]"
        )
    text, folded = hit.text, hit.text.casefold()
    offsets = [folded.find(word.strip('"').casefold()) for word in words.split()]
    first = max(
        0, min((offset for offset in offsets if offset >= 0), default=0) - _EXCERPT_LENGTH // 3
    )
    excerpt = text[first : first + _EXCERPT_LENGTH].strip()
    start = "… " if first else ""
    end = " …" if first + _EXCERPT_LENGTH < len(text) else ""
    return f"{head}\n{start}{excerpt}{end}"
