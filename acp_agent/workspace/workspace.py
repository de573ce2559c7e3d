"""Every side effect goes through a workspace; tools open no file, process or socket themselves."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, field

from acp_agent.workspace.background_commands import BackgroundCommands
from acp_agent.workspace.files import WorkspaceFiles
from acp_agent.workspace.network import GuardedNetwork
from acp_agent.workspace.processes import EditorTerminals, LocalProcesses


class Workspace(Struct, frozen=True, kw_only=True):
    """All that a session may touch.

    `outputs` is the folder for outputs too long for the model; `background` has the commands that
    go on behind their calls.
    """

    cwd: Path
    files: WorkspaceFiles
    processes: LocalProcesses
    network: GuardedNetwork
    outputs: Path
    terminals: EditorTerminals | None = None
    background: BackgroundCommands = field(default_factory=BackgroundCommands)
