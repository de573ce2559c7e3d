"""Report problems that the edits of an answer cause, in the result of the last edit.

Problems that are found later are added to the next request, as a note to the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from acp_agent.agent.resources import Tools, TurnResources
from acp_agent.agent.tool_calls import ProposedCall
from acp_agent.content import DiffPart, text_part
from acp_agent.events import NoticeShown
from acp_agent.ids import CallId, new_message_id
from acp_agent.permissions.access import CommandAccess, ReadAccess, WriteAccess
from acp_agent.workspace.scrub import scrub

if TYPE_CHECKING:  # not needed before a prompt runs
    from acp_agent.tools.base import Outcome, Prepared

_HEADING = "New problems after this edit:"
_MAX_MENTIONS = 10  # changed resources that a note names


class EditReports:
    """Checks the edits of one answer together, once the last one has run."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._open: set[CallId] = set()  # calls that may still change files

    def add(self, call: ProposedCall) -> None:
        """Register a call; the report waits for it if it is an edit."""
        if self._tools.toolset.call_title(call.name, call.arguments)[1] == "edit":
            self._open.add(call.call)

    def mark_ended(self, call: ProposedCall) -> None:
        """Note that a call has ended, with or without success."""
        self._open.discard(call.call)

    async def finish(self, call: ProposedCall, prepared: Prepared, outcome: Outcome) -> Outcome:
        """Return the outcome of a call, with the new problems added if no edit is open."""
        checks = self._tools.edit_checks
        self.mark_ended(call)
        match prepared.access:
            case ReadAccess(paths=(path,)):
                checks.record_read(Path(path))
            case CommandAccess(only_reads=False):
                checks.record_command()
            case WriteAccess(paths=paths) if not outcome.failed:
                for path, old in self._old_texts(paths, prepared).items():
                    checks.record_change(Path(path), old)
            case _:
                return outcome
        if self._open or not checks.has_changes:
            return outcome
        problems = await checks.problems()
        if not problems:
            return outcome
        content = prepared.content if outcome.content is None else outcome.content
        return msgspec.structs.replace(
            outcome,
            text=f"{outcome.text}\n\n{_HEADING}\n{problems}",
            content=(*content, text_part(f"```\n{problems}\n```")),
        )

    def _old_texts(self, paths: tuple[str, ...], prepared: Prepared) -> Mapping[str, str | None]:
        """Return the old texts, by path, of the files for which the call shows a diff."""
        files = self._tools.workspace.files
        opened = {str(files.editor_path(Path(path))): path for path in paths}
        return {
            opened[part.path]: part.old_text
            for part in prepared.content
            if isinstance(part, DiffPart) and part.path in opened
        }


async def report_late_problems(turn: TurnResources) -> None:
    """Add a note for the model with problems of earlier edits that were not reported yet.

    Raises:
        StoreError: the journal could not be written.
    """
    checks = turn.tools.edit_checks
    problems = await checks.problems() if checks.has_changes else checks.late_problems()
    if problems:
        problems = scrub(problems, turn.journal.secrets)
        await _add_note(
            turn,
            "The last edits caused new problems.",
            problems,
            for_model="New problems after the last edits",
        )


async def report_changed_resources(turn: TurnResources) -> None:
    """Add a note for the model with attached resources of MCP servers that have changed.

    Raises:
        StoreError: the journal could not be written.
    """
    mentions = turn.take_changed_resources()
    if mentions:
        names = "\n".join(mentions[:_MAX_MENTIONS])
        if len(mentions) > _MAX_MENTIONS:
            names += f"\nand {len(mentions) - _MAX_MENTIONS} more"
        await _add_note(
            turn,
            "Attached resources have changed.",
            names,
            for_model="Resources that were attached have changed since; read_mcp_resource reads "
            "them again",
        )


async def _add_note(turn: TurnResources, title: str, text: str, *, for_model: str) -> None:
    """Show a notice, whose text the model gets below `for_model`."""
    await turn.journal.emit(
        NoticeShown(
            severity="info",
            title=title,
            description=text,
            message=new_message_id(),
            for_model=f"[{for_model}:\n{text}]",
        )
    )
