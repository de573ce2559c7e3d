"""Notes on date, mode and folders that the model is sent with a prompt when they change."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from acp_agent.permissions.access import Mode

_MODE_NOTES: dict[Mode, str] = {
    "ask": "[Mode: ask. The user is asked before files change or commands run.]",
    "accept-edits": "[Mode: accept-edits. Edits below the project need no question.]",
    "draft": (
        "[Mode: draft. Write new files below {folder} and nowhere else; overwrite nothing, and run "
        "only commands that read.]"
    ),
    "plan": (
        "[Mode: plan. Change nothing: look around with the reading tools, then answer with a plan "
        "and stop.]"
    ),
    "full": "[Mode: full. Nothing is asked; be careful.]",
}


class PromptNotes:
    """The notes that the model was sent. After a restart all are due again.

    Args:
        draft_folder: the folder in which draft mode writes.
    """

    def __init__(self, draft_folder: str = "drafts") -> None:
        self._draft_folder = draft_folder
        self._sent: dict[str, str] = {}

    def take_changed(
        self, *, today: date, mode: Mode, moved_to: tuple[Path, tuple[Path, ...]] | None
    ) -> list[str]:
        """Return the notes that have changed since they were sent, and mark them as sent.

        Args:
            moved_to: the current folders, if the system prompt may name others; otherwise None.
        """
        notes = {
            "day": f"[Today is {today:%A, %Y-%m-%d}.]",
            "mode": _MODE_NOTES[mode].format(folder=self._draft_folder),
        }
        if moved_to is not None:
            cwd, folders = moved_to
            additional = f" Further folders: {', '.join(map(str, folders))}." if folders else ""
            notes["folders"] = f"[The working folder is now {cwd}.{additional}]"
        changed = {key: note for key, note in notes.items() if self._sent.get(key) != note}
        self._sent.update(changed)
        return list(changed.values())
