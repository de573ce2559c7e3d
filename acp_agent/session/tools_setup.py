"""A session's workspace and tools: imported when the first prompt runs, not before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.config.types import Config
from acp_agent.tools.toolset import Toolset, core_tools
from acp_agent.workspace.background_commands import BackgroundCommands
from acp_agent.workspace.editor_files import EditorBuffers
from acp_agent.workspace.files import WorkspaceFiles
from acp_agent.workspace.network import GuardedNetwork
from acp_agent.workspace.processes import EditorTerminals, LocalProcesses
from acp_agent.workspace.scrub import scrub
from acp_agent.workspace.workspace import Workspace


class Equipment(Struct, frozen=True, kw_only=True):
    """What a session works with."""

    workspace: Workspace
    toolset: Toolset


def equip(
    *,
    cwd: Path,
    directories: Sequence[Path],
    outputs: Path,
    readable: Sequence[Path] = (),
    buffers: EditorBuffers | None,
    terminals: EditorTerminals | None,
    environ: Mapping[str, str],
    config: Config,
    secrets: Callable[[], Sequence[str]],
    background: BackgroundCommands,
    finish_loop: Callable[[], bool],
) -> Equipment:
    """Build a session's workspace and the tools over it.

    Args:
        cwd: the working folder.
        directories: the further folders that may be used.
        outputs: where outputs too long for the model are kept.
        readable: further folders that may be read and not written.
        buffers: the editor's files, where it offers them.
        terminals: the editor's terminals, where it offers them and the user opted in.
        environ: the environment that commands get, before secrets are taken out.
        config: the limits, and which variables hold keys.
        secrets: gives the values that must not be kept.
        background: the commands that go on behind their calls.
        finish_loop: ends the repetition of a prompt; whether one is repeated.
    """
    key_variables = [one.api_key_env for one in config.providers.values() if one.api_key_env]
    workspace = Workspace(
        cwd=cwd,
        files=WorkspaceFiles(cwd, directories, buffers, readable=[outputs, *readable]),
        processes=LocalProcesses(
            outputs,
            environ=environ,
            hide=key_variables,
            clean=lambda text: scrub(text, secrets()),
        ),
        network=GuardedNetwork(),
        outputs=outputs,
        terminals=terminals,
        background=background,
    )
    return Equipment(
        workspace=workspace,
        toolset=core_tools(
            workspace,
            command_timeout=config.limits.command_timeout,
            finish_loop=finish_loop,
        ),
    )
