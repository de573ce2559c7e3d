"""Build a session's workspace and its tools. Imported when the first prompt runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.config.types import Config
from acp_agent.extensions.project_settings import ProjectSettings
from acp_agent.sandbox.launch import Confine
from acp_agent.sandbox.sandbox import Sandbox, Unavailable
from acp_agent.session.confinement import Confinement
from acp_agent.session.core import SessionCore
from acp_agent.session.turns.edit_checks import SessionEditChecks
from acp_agent.tools.base import AnyTool
from acp_agent.tools.confined_shell import ConfinedShellTool
from acp_agent.tools.shell import ShellTool
from acp_agent.tools.toolset import Toolset, core_tools
from acp_agent.workspace.background_commands import BackgroundCommands
from acp_agent.workspace.editor_files import EditorBuffers
from acp_agent.workspace.files import WorkspaceFiles
from acp_agent.workspace.network import GuardedNetwork, IsNamed
from acp_agent.workspace.processes import EditorTerminals, LocalProcesses
from acp_agent.workspace.scrub import scrub
from acp_agent.workspace.search_services import select_service
from acp_agent.workspace.workspace import Workspace


class WorkspaceTools(Struct, frozen=True, kw_only=True):
    """A workspace with the session's built-in tools and the checks of edits."""

    workspace: Workspace
    toolset: Toolset
    edit_checks: SessionEditChecks


def build_tools(
    *,
    cwd: Path,
    directories: Sequence[Path],
    outputs: Path,
    readable: Sequence[Path] = (),
    buffers: EditorBuffers | None,
    terminals: EditorTerminals | None,
    environ: Mapping[str, str],
    settings: ProjectSettings,
    config: Config,
    secrets: Callable[[], Sequence[str]],
    background: BackgroundCommands,
    sandbox: Sandbox | Unavailable | None,
    sandbox_notice: Callable[[], str],
    edit_checks: Callable[[WorkspaceFiles], SessionEditChecks],
    refused_reads: Callable[[Sequence[str]], Mapping[str, str]],
    is_named: IsNamed,
    is_named_file: Callable[[Sequence[Sequence[str]]], Awaitable[bool]],
    confine: Confine,
) -> WorkspaceTools:
    """Build a session's workspace and its tools.

    Args:
        outputs: the folder for outputs that are too long for the model.
        readable: further folders that may be read but not written.
        buffers: the client's files, if it offers them.
        terminals: the client's terminals, if it offers them and the user opted in.
        environ: the environment of commands, before secrets are removed.
        settings: the trusted settings of the project; their variables are added for commands.
        secrets: returns the values that must not be stored or sent.
        sandbox: confines commands, or says why nothing does; None if the user disabled it.
        sandbox_notice: returns a notice for the first command about missing confinement.
        refused_reads: returns the files that no search may show, with the reasons.
        is_named: returns whether the user named an address's host, or a search found the address.
        is_named_file: see `Workspace`.
        confine: launches the programs that search files or convert pages to text.
    """
    confined = sandbox if isinstance(sandbox, Sandbox) else None
    workspace = Workspace(
        cwd=cwd,
        files=WorkspaceFiles(
            cwd,
            directories,
            buffers,
            readable=[outputs, *readable],
            refused=refused_reads,
            before_write=(lambda _: None) if confined is None else confined.allow_new_file,
            confine=confine,
        ),
        processes=LocalProcesses(
            outputs,
            environ=environ,
            hide=config.key_variables,
            clean=lambda text: scrub(text, secrets()),
            sandbox=confined,
            roots=(cwd, *directories),
        ),
        network=GuardedNetwork(is_named=is_named, confine=confine),
        outputs=outputs,
        terminals=terminals,
        background=background,
        is_named=is_named_file,
        settings=settings,
    )
    workspace.processes.variables |= settings.variables
    toolset = core_tools(
        workspace,
        shell=_shell_tool(workspace, sandbox, config, sandbox_notice),
        search_service=select_service(config.web_search, environ),
    )
    if config.http_requests:
        from acp_agent.tools.http.request import HttpRequestTool  # noqa: PLC0415 - only if enabled

        toolset = toolset.with_tools([HttpRequestTool(workspace, secrets)])
    return WorkspaceTools(
        workspace=workspace, edit_checks=edit_checks(workspace.files), toolset=toolset
    )


def session_sandbox(
    core: SessionCore, roots: Sequence[Path], readable: Sequence[Path]
) -> Sandbox | Unavailable | None:
    """Return the sandbox for a session's commands. Blocks: call it in a thread.

    Args:
        roots: the folders in which they work.
        readable: files of this program that commands may read all the same.
    """
    services = core.services
    if not services.config.sandbox.enabled:
        return None
    policy = Confinement.from_services(services).policy(
        roots, services.sandboxes.temporary(core.id), readable
    )
    return services.sandboxes.make(policy, services.environ.get("PATH"))


def _shell_tool(
    workspace: Workspace,
    sandbox: Sandbox | Unavailable | None,
    config: Config,
    notice: Callable[[], str],
) -> ShellTool:
    timeout = config.limits.command_timeout
    if isinstance(sandbox, Sandbox):
        return ConfinedShellTool(
            workspace,
            default_timeout=timeout,
            reversible=config.checkpoints.enabled,
            notice=notice,
        )
    refused = ""
    if isinstance(sandbox, Unavailable) and config.sandbox.fail_if_unavailable:
        refused = f"{sandbox.reason}, and the configuration wants commands to be confined"
    return ShellTool(workspace, default_timeout=timeout, notice=notice, refused=refused)


class CachedChange:
    """A change of toolsets that caches its last result.

    Args:
        change: returns the changed toolset.
    """

    def __init__(self, change: Callable[[Toolset], Toolset]) -> None:
        self._change = change
        self._last: tuple[Toolset, Toolset] | None = None  # before and after

    def apply(self, tools: Toolset) -> Toolset:
        """Return the changed `tools`; the same object for the same `tools`."""
        if self._last is None or self._last[0] is not tools:
            self._last = (tools, self._change(tools))
        return self._last[1]


class AddedTools:
    """Tools that are added to a toolset while a condition holds.

    Args:
        when: returns whether to add them.
    """

    def __init__(
        self, when: Callable[[], bool], make: Callable[[], Sequence[AnyTool]], *, replaces: str = ""
    ) -> None:
        def change(tools: Toolset) -> Toolset:
            others = tools.filtered(lambda name: name != replaces) if replaces else tools
            return others.with_tools(make())

        self._when = when
        self._change = CachedChange(change)

    def apply(self, tools: Toolset) -> Toolset:
        """Return `tools`, with the added ones while the condition holds."""
        return self._change.apply(tools) if self._when() else tools
