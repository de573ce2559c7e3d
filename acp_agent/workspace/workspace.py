"""Every side effect goes through a workspace; tools open no file, process or socket themselves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from msgspec import Struct, field

from acp_agent.workspace.background_commands import BackgroundCommands
from acp_agent.workspace.files import WorkspaceFiles
from acp_agent.workspace.network import GuardedNetwork
from acp_agent.workspace.processes import EditorTerminals, LocalProcesses


async def _none_is_named(files: Sequence[Sequence[str]]) -> bool:
    del files
    return False


class Workspace(Struct, frozen=True, kw_only=True):
    """All that a session may touch.

    `outputs` is the folder for outputs too long for the model; `background` has the commands that
    go on behind their calls. `is_named` tells whether the user named each of the files that steers
    agents, by the absolute paths that each is known by.
    """

    cwd: Path
    files: WorkspaceFiles
    processes: LocalProcesses
    network: GuardedNetwork
    outputs: Path
    terminals: EditorTerminals | None = None
    background: BackgroundCommands = field(default_factory=BackgroundCommands)
    is_named: Callable[[Sequence[Sequence[str]]], Awaitable[bool]] = _none_is_named
