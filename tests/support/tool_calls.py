"""Calls of tools on real files, in the steps in which a turn makes them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from acp_agent.content import JsonObject
from acp_agent.events import PlanEntry
from acp_agent.tools.base import Answer, CommandEnd, Outcome, Prepared, Progress, Question
from acp_agent.tools.toolset import Toolset, core_tools
from acp_agent.workspace.editor_files import EditorBuffers
from acp_agent.workspace.files import WorkspaceFiles
from acp_agent.workspace.network import GuardedNetwork
from acp_agent.workspace.processes import LocalProcesses
from acp_agent.workspace.workspace import Workspace


class RecordedProgress(Progress):
    """A `Progress` that notes what a call showed.

    `answer` is what the user answers, None: no form can be shown.
    """

    def __init__(self, answer: Answer | None = None) -> None:
        super().__init__("call_1")
        self._answer = answer
        self.behind: list[str] = []  # the names of commands that went on
        self.ended: list[CommandEnd] = []
        self.plans: list[tuple[PlanEntry, ...]] = []
        self.questions: list[Question] = []
        self.said: list[str] = []

    async def output(self, text: str) -> None:
        self.said.append(text)

    async def moved_to_background(self, name: str, command: str) -> None:
        self.behind.append(name)

    async def background_ended(self, end: CommandEnd) -> None:
        self.ended.append(end)

    async def plan(self, entries: Sequence[PlanEntry]) -> None:
        self.plans.append(tuple(entries))

    async def ask(self, question: Question) -> Answer | None:
        self.questions.append(question)
        return self._answer

    async def say(self, text: str) -> None:
        self.said.append(text)


class ToolUser:
    """A session's tools over a folder."""

    def __init__(
        self,
        folder: Path,
        *,
        directories: Sequence[Path] = (),
        buffers: EditorBuffers | None = None,
        outputs: Path | None = None,
    ) -> None:
        self.folder = folder
        outputs = outputs or folder.parent / f"{folder.name}-outputs"
        self.workspace = Workspace(
            cwd=folder,
            files=WorkspaceFiles(folder, directories, buffers, readable=[outputs]),
            processes=LocalProcesses(outputs, environ=dict(os.environ)),
            network=GuardedNetwork(),
            outputs=outputs,
        )
        self.tools: Toolset = core_tools(self.workspace)

    def title(self, name: str, **arguments: object) -> str:
        """The title of a call before anything is known of it."""
        given: JsonObject = dict(arguments)
        return self.tools.get(name).title(given)

    async def prepare(self, name: str, **arguments: object) -> Prepared:
        """A call up to the point where the user is asked."""
        tool, params, _ = self.tools.resolve(name, json.dumps(arguments))
        prepared: Prepared = await tool.prepare(params)
        return prepared

    async def call(self, name: str, **arguments: object) -> Outcome:
        """A whole call."""
        return await (await self.prepare(name, **arguments)).run(RecordedProgress())
