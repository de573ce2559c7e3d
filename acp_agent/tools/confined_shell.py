"""The shell tool of a session whose commands run in a sandbox."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, ClassVar

from msgspec.structs import replace
from pydantic import Field, StringConstraints

from acp_agent.content import text_part
from acp_agent.errors import AcpAgentError, ToolError
from acp_agent.permissions.paths import CommandContext
from acp_agent.permissions.policy.commands import patterns_cover_line
from acp_agent.sandbox.host_rules import HostRules, normalize_host
from acp_agent.sandbox.launch import Confinement
from acp_agent.sandbox.sandbox import Sandbox
from acp_agent.tools.base import Outcome
from acp_agent.tools.shell import ShellParams, ShellTool
from acp_agent.workspace.processes import CommandResult
from acp_agent.workspace.workspace import Workspace

_MAX_HOSTS = 20
_MAX_REPORTED_FILES = 10  # moved files in the result
# Commands that only write git settings, which the sandbox refuses: the user is asked at once.
_SET_GIT = (
    "git remote add *",
    "git remote set-url *",
    "git remote rename *",
    "git remote remove *",
    "git branch -u *",
    "git branch --set-upstream-to *",
    "git branch --set-upstream-to=*",
    "git branch --unset-upstream *",
)
# Error messages of commands that the sandbox restricts.
_SANDBOX_ERRORS = re.compile(
    r"Read-only file system|Operation not permitted|Permission denied|Network is unreachable|"
    r"[Cc]ould not resolve|[Nn]ame resolution|Name or service not known|No address associated|"
    r"EAI_AGAIN|ENOTFOUND|ENETUNREACH|EROFS|getaddrinfo|dial tcp|Device or resource busy|"
    r"Resource temporarily unavailable|[Cc]annot allocate memory|File too large|"
    r"[Cc]onnection refused|the sandbox refuses|CONNECT tunnel failed|Tunnel connection"
)
_ADVICE = (
    "\n[It ran in the sandbox, which may be why it failed: it reaches {hosts} and can write "
    "only in {roots} and {temporary}. If it needs more, call it again with `hosts` or "
    "`outside_sandbox`; the user is asked.]"
)
_MOVED_ADVICE = (
    "\n[The sandbox renamed what other programs would run or obey by themselves, in its folder: "
    "{moved}. To make such a file, use a file tool, for which the user is asked, or "
    "`outside_sandbox`.]"
)
_MOVED_NOTICE = (
    "It made files that other programs run or obey by themselves. They were renamed: {moved}. "
    "`sandbox.filesystem.allow_write` in the configuration allows them."
)
_NO_HOSTS = "the sandbox of this machine can reach no host"
_OUTSIDE_ADVICE = "call it again with `outside_sandbox` in the place of `hosts`; the user is asked"
_REFUSED_ADVICE = (
    "\n[The sandbox kept it from reaching {hosts}. If it needs that, name it in `hosts`.]"
)


class ConfinedShellParams(ShellParams):
    """The tool's parameters."""

    hosts: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=260)]],
        Field(max_length=_MAX_HOSTS, description="Hosts it must reach; the user is asked."),
    ] = Field(default_factory=list)
    outside_sandbox: Annotated[
        bool, Field(description="Run it outside the sandbox; the user is asked.")
    ] = False


class ConfinedShellTool(ShellTool):
    """Runs a command line in the session's folder, in a sandbox."""

    params: ClassVar[type[ShellParams]] = ConfinedShellParams

    def __init__(
        self,
        workspace: Workspace,
        *,
        default_timeout: float = 60.0,
        reversible: bool = False,
        notice: Callable[[], str] = str,
    ) -> None:
        """Make the tool.

        Args:
            workspace: where commands run; its processes have a sandbox.
            reversible: whether checkpoints can undo what commands do.
        """
        super().__init__(workspace, default_timeout=default_timeout, notice=notice)
        self.count_as_reversible(reversible)

    @property
    def _sandbox(self) -> Sandbox:
        sandbox = self.workspace.processes.sandbox
        assert sandbox is not None
        return sandbox

    def count_as_reversible(self, reversible: bool) -> None:
        """Set whether checkpoints can undo changes by commands."""
        self.reversible = reversible
        self.unasked = reversible and self._sandbox.policy.config.auto_allow

    def description(self) -> str:
        """Return the description, including the restrictions of the sandbox."""
        network = _host_list(self._allowed_hosts())
        sandbox_text = super().description().format(network=network)
        return f"{ShellTool(self.workspace).description()}\n{sandbox_text}"

    def confinement(self, params: ShellParams) -> Confinement:
        """Return whether a command is confined, and the hosts that it may reach.

        Raises:
            ToolError: a host cannot be named so, or is refused by the configuration.
        """
        if self._covers(self._sandbox.policy.config.excluded_commands, params.command):
            return Confinement(confined=False)
        is_outside_requested = isinstance(params, ConfinedShellParams) and params.outside_sandbox
        if is_outside_requested or self._covers(_SET_GIT, params.command):
            return Confinement(confined=False, outside=True)
        requested_hosts = params.hosts if isinstance(params, ConfinedShellParams) else []
        if requested_hosts and not self._sandbox.has_network:
            raise ToolError(_NO_HOSTS, advice=_OUTSIDE_ADVICE)
        network = self._sandbox.policy.config.network
        try:
            allowed = HostRules(network.allowed_domains, network.denied_domains)
            hosts = [host for host in requested_hosts if not _is_allowed(allowed, host)]
            rules = HostRules(hosts, network.denied_domains)
            for host in hosts:
                rules.check_host(*_split_host(host))
        except AcpAgentError as error:
            raise ToolError(f"the host cannot be reached: {error}", advice=error.advice) from None
        return Confinement(hosts=tuple(hosts))

    def explain(self, outcome: Outcome, result: CommandResult) -> Outcome:
        """Add notes for the model and the user about what the sandbox may have prevented."""
        if result.moved:
            moved = ", ".join(
                f"{file.path} is now {file.name}" for file in result.moved[:_MAX_REPORTED_FILES]
            )
            outcome = _add_notes(
                outcome, _MOVED_ADVICE.format(moved=moved), _MOVED_NOTICE.format(moved=moved)
            )
        if not result.confined or not outcome.failed:
            return outcome
        if result.refused_hosts:
            advice = _REFUSED_ADVICE.format(hosts=", ".join(result.refused_hosts))
        elif _SANDBOX_ERRORS.search(result.output):
            roots = ", ".join(str(root) for root in self.workspace.files.roots)
            hosts = _host_list(self._allowed_hosts())
            advice = _ADVICE.format(hosts=hosts, roots=roots, temporary=self._sandbox.temporary)
        else:
            return outcome
        return _add_notes(outcome, advice, "It ran in the sandbox, which may be why it failed.")

    def _allowed_hosts(self) -> list[str]:
        """Return the hosts that every command may reach."""
        if not self._sandbox.has_network:
            return []
        return self._sandbox.policy.config.network.allowed_domains

    def _covers(self, patterns: Sequence[str], command: str) -> bool:
        """Return whether the patterns cover every command of a line."""
        context = CommandContext(
            cwd=str(self.workspace.cwd),
            roots=tuple(str(root) for root in self.workspace.files.roots),
            home=self._sandbox.policy.home,
        )
        return bool(patterns) and patterns_cover_line(command, patterns, context)


def _add_notes(outcome: Outcome, advice: str, user_text: str) -> Outcome:
    """Return the outcome with added texts for the model and the user."""
    content = outcome.content
    return replace(
        outcome,
        text=outcome.text + advice,
        content=None if content is None else (*content, text_part(user_text)),
    )


def _host_list(allowed: Sequence[str]) -> str:
    return f"no other hosts than {', '.join(allowed)}" if allowed else "no network"


def _is_allowed(rules: HostRules, host: str) -> bool:
    try:
        rules.check_host(*_split_host(host))
    except AcpAgentError:
        return False
    return True


def _split_host(pattern: str) -> tuple[str, int]:
    """Return the host and the port that the model named, or the default port."""
    host, colon, port = pattern.rpartition(":")
    if colon and port.isdecimal() and not host.endswith(":"):
        return normalize_host(host.strip("[]")), int(port)
    return normalize_host(pattern.removeprefix("*.").strip("[]")), 443
