"""A session's memory: notes for later sessions of its project, and a search in earlier ones.

Only a folder whose code the user trusts has a memory: in other folders, files could instruct the
model to remember something, and so steer every later session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from acp_agent.content import escaped
from acp_agent.errors import InvalidInputError, ToolError
from acp_agent.events import ModelAnswered, Usage
from acp_agent.extensions.definitions.locations import project_top
from acp_agent.ids import SessionId, new_message_id
from acp_agent.session.core import SessionCore
from acp_agent.session.store.records import UnknownEvent
from acp_agent.trust.store import code_item
from acp_agent.workspace.scrub import scrub

if TYPE_CHECKING:  # only with a memory
    from acp_agent.models.embedding.embedder import Embedder
    from acp_agent.tools.memory.notes import Note, NoteFolders
    from acp_agent.tools.memory.text_search import PastSession
    from acp_agent.tools.memory.tool import MemoryTool
    from acp_agent.tools.session_search import DatedEvent
    from acp_agent.workspace.workspace import Workspace

_MAX_SESSIONS = 500  # of the project, most recent first


def note_folders(core: SessionCore) -> NoteFolders | None:
    """Return the folders of a session's notes; None if it has no memory. Reads the disk."""
    services = core.services
    if not services.config.memory:
        return None
    project = project_top(core.cwd)
    if not services.trust().trusts(code_item(project)):
        return None
    from acp_agent.tools.memory.notes import NoteFolders  # noqa: PLC0415 - only with a memory

    return NoteFolders(services.memory, project)


async def memory_index(core: SessionCore) -> str:
    """Return the index of a session's notes for the system prompt; "" if there are none."""

    def read() -> str:
        folders = note_folders(core)
        if folders is None:
            return ""
        from acp_agent.tools.memory.notes import describe_notes  # noqa: PLC0415 - likewise

        return describe_notes(folders.all())

    return escaped(scrub(await asyncio.to_thread(read), core.secrets))


def memory_tool(core: SessionCore, workspace: Workspace, folders: NoteFolders) -> MemoryTool:
    """Return the tool with which the model writes and searches notes."""
    from acp_agent.tools.memory.text_search import PastSession  # noqa: PLC0415 - only with a memory
    from acp_agent.tools.memory.tool import EarlierSessions, MemoryTool  # noqa: PLC0415 - likewise

    store = core.services.store

    async def list_sessions() -> Sequence[PastSession]:
        page = await store.list(cwd=str(core.cwd), limit=_MAX_SESSIONS, archived="include")
        return [
            PastSession(id=session.id, title=session.title or "", updated=session.updated_at)
            for session in page.sessions
            if session.id != core.id
        ]

    async def journal(session: str) -> Sequence[DatedEvent]:
        stored = await store.read_all(SessionId(session))
        return [
            (record.at, record.event)
            for record in stored
            if not isinstance(record.event, UnknownEvent)
        ]

    model = core.services.config.embedding_model

    async def open_embedding() -> Embedder:
        from acp_agent.models.embedding.embedder import open_embedder  # noqa: PLC0415 - if any

        assert model is not None
        return await open_embedder(core.services.models, model, count)

    async def count(usage: Usage) -> None:
        assert model is not None
        price = core.services.models.cost_now(model, usage)
        core.state.charge(price)
        await core.emit(
            ModelAnswered(
                message=new_message_id(), model=model, usage=usage, cost=price, discarded=True
            )
        )

    return MemoryTool(
        workspace,
        folders,
        EarlierSessions(list_sessions, journal),
        core.clean,
        None if model is None else open_embedding,
    )


async def memory_command(core: SessionCore, arguments: str) -> str:
    """Run `/memory [show|delete] [user] [NAME]`: list the notes, show one or delete one.

    Raises:
        InvalidInputError: the note cannot be deleted.
    """
    translate = core.translate
    if not core.services.config.memory:
        return translate("The memory is off: the configuration has `memory = false`.")
    folders = await asyncio.to_thread(note_folders, core)
    if folders is None:
        return translate("This folder has no memory because it is not trusted: /trust.")
    notes = await asyncio.to_thread(folders.all)
    words = arguments.split()
    if not words:
        return _list_notes(core, folders, notes)
    action, *name = words
    matches = [
        note
        for note in notes
        if action in {"show", "delete"} and name in ([note.name], [note.scope, note.name])
    ]
    if not matches:
        return translate(
            "Note not found. /memory lists the notes; use /memory show NAME or delete NAME."
        )
    note = matches[0]
    if action == "show":
        return core.clean(note.text)
    try:
        await asyncio.to_thread(folders.delete, note.scope, note.name)
    except ToolError as error:
        raise InvalidInputError(str(error), field="prompt") from error
    return translate("Deleted the note `{name}`.", name=note.name)


def _list_notes(core: SessionCore, folders: NoteFolders, notes: Sequence[Note]) -> str:
    from acp_agent.tools.quoting import escape_markdown  # noqa: PLC0415 - not at start

    translate = core.translate
    locations = translate(
        "The notes are Markdown files in `{project}` and `{user}`.",
        project=folders.folder("project"),
        user=folders.folder("user"),
    )
    if not notes:
        return f"{translate('There are no notes yet.')} {locations}"
    lines = [f"- {note.scope} `{note.name}`: {escape_markdown(note.summary)}" for note in notes]
    return core.clean("\n".join([*lines, "", locations]))
