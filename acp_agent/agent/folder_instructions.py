"""Instruction files of subfolders, added when the model first uses a file there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Sequence
from pathlib import Path

from acp_agent.agent.resources import TurnResources
from acp_agent.content import escaped
from acp_agent.permissions.access import Access, ReadAccess, WriteAccess
from acp_agent.workspace.instructions.files import Instruction, added_instructions
from acp_agent.workspace.scrub import scrub

_MAX_FILES = 20  # files of one call that are checked


class FolderInstructions:
    """The instruction files that the calls of one answer add to those in the system prompt.

    A file that the context contains is not added again. A file is added again after a compaction or
    a rewind has removed it from the context.
    """

    def __init__(self, turn: TurnResources, prompt_files: Collection[Path] = ()) -> None:
        """Args: prompt_files: files that will be in the system prompt, if it is not written yet."""
        self._turn = turn
        self._prompt_files = prompt_files
        self._lock = asyncio.Lock()
        self._added: list[Instruction] = []  # by calls whose results are not sent yet

    async def find_added(self, access: Access) -> tuple[tuple[str, str], ...]:
        """Return the path and text of each instruction file to add for the files of a call."""
        if not isinstance(access, ReadAccess | WriteAccess):
            return ()
        async with self._lock:
            roots = self._turn.tools.workspace.files.roots
            paths = [Path(path) for path in access.paths[:_MAX_FILES]]
            added = await asyncio.to_thread(self._find, paths, roots)
            self._added += added
        hooks = self._turn.hooks
        if hooks is not None and hooks.has("InstructionsLoaded"):
            for instruction in added:
                reason, trigger = "nested_traversal", access.paths[0]
                await hooks.report_instructions(str(instruction.path), "Project", reason, trigger)
        return tuple((str(instruction.path), instruction.text) for instruction in added)

    def _find(self, paths: Sequence[Path], roots: Sequence[Path]) -> list[Instruction]:
        instructions: list[Instruction] = []
        settings = self._turn.tools.workspace.settings
        for path in paths:
            root = next((root for root in roots if path.is_relative_to(root)), None)
            if root is not None and os.path.isfile(path):
                relative = path.relative_to(root).as_posix()
                skills = [Instruction(*entry) for entry in self._turn.skills_for(relative)]
                found = added_instructions(path, root, self._is_known, settings)
                entries = (*found.entries, *skills)
                added = map(self._clean, entries)
                instructions += [
                    instruction
                    for instruction in added
                    if not self._is_known(instruction.path, instruction.text)
                ]
        return list(dict.fromkeys(instructions))

    def _is_known(self, path: Path, text: str | None = None) -> bool:
        """Return whether the model has an instruction file, or the same text from another file."""
        if path in self._prompt_files or any(
            path == instruction.path or text == instruction.text for instruction in self._added
        ):
            return True
        return self._turn.journal.context.has_instruction(str(path), text)

    def _clean(self, instruction: Instruction) -> Instruction:
        """Return an instruction without secrets and with hidden characters escaped."""
        return Instruction(
            instruction.path, escaped(scrub(instruction.text, self._turn.journal.secrets))
        )
