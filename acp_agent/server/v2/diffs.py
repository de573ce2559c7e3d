"""Changes to files as the protocol shows them (Agent Client Protocol v2, Diff)."""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.content import DiffPart
from acp_agent.server.v2.git_patch import FileChange, git_patch
from protocol.v2 import types as acp


def diff_of(part: DiffPart) -> acp.Diff:
    """A text file that a call changes or makes."""
    change = FileChange(
        operation="add" if part.old_text is None else "modify",
        path=part.path,
        old=part.old_text,
        new=part.new_text,
    )
    return diff([change])


def diff(changes: Sequence[FileChange]) -> acp.Diff:
    """Changes, and a patch of those that text can show; without one where it can show none."""
    patch = git_patch(changes)
    return acp.Diff(
        changes=[_change(change) for change in changes],
        patch=acp.DiffPatch(format="git_patch", text=patch) if patch else None,
    )


def _change(change: FileChange) -> acp.DiffChange:
    path, file_type = change.path, "binary" if change.binary else "text"
    match change.operation:
        case "add":
            return acp.DiffAddChange(path=path, file_type=file_type)
        case "delete":
            return acp.DiffDeleteChange(path=path, file_type=file_type)
        case "modify":
            return acp.DiffModifyChange(path=path, file_type=file_type)
        case "move":
            old_path = change.old_path or path
            return acp.DiffMoveChange(path=path, old_path=old_path, file_type=file_type)
        case "copy":
            old_path = change.old_path or path
            return acp.DiffCopyChange(path=path, old_path=old_path, file_type=file_type)
