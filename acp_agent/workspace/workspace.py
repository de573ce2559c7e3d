"""The workspace of a session: tools access files, processes and the network only through it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from msgspec import Struct, field

from acp_agent.extensions.project_settings import ProjectSettings
from acp_agent.workspace.background_commands import BackgroundCommands
from acp_agent.workspace.files import WorkspaceFiles
from acp_agent.workspace.network import GuardedNetwork
from acp_agent.workspace.processes import EditorTerminals, LocalProcesses


async def _none_is_named(_files: Sequence[Sequence[str]]) -> bool:
    return False


class Workspace(Struct, frozen=True, kw_only=True):
    """Everything that a session can access.

    `outputs` is the folder for outputs that are too long for the model. `background` holds the
    commands that continue after their calls. `is_named` returns whether the user mentioned each of
    the given files that steer agents; each file is a list of its absolute paths. `settings` are the
    trusted ones of the project.
    """

    cwd: Path
    files: WorkspaceFiles
    processes: LocalProcesses
    network: GuardedNetwork
    outputs: Path
    terminals: EditorTerminals | None = None
    background: BackgroundCommands = field(default_factory=BackgroundCommands)
    is_named: Callable[[Sequence[Sequence[str]]], Awaitable[bool]] = _none_is_named
    settings: ProjectSettings = field(default_factory=ProjectSettings)
