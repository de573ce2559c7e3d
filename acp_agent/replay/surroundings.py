"""Substitutes for the sandbox and the repositories of the recorded machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acp_agent.sandbox.launch import CommandNetwork, Launch
from acp_agent.sandbox.policy import TEMPORARY, MountKind, SandboxPolicy
from acp_agent.sandbox.sandbox import Sandbox, Unavailable
from acp_agent.session.services import SharedSandboxes
from acp_agent.workspace.git_repositories import GitRepositories, Repository


class _NoBackend:
    """A `Backend` that confines nothing, since nothing runs."""

    name = ""
    has_network = True
    notice = ""

    for_helpers = None

    def temporary(self, policy: SandboxPolicy) -> str:
        del policy
        return TEMPORARY

    def launch(
        self,
        argv: Sequence[str],
        *,
        mounts: Sequence[tuple[str, MountKind]],
        policy: SandboxPolicy,
        cwd: str,
        environ: Mapping[str, str],
        network: CommandNetwork | None = None,
    ) -> Launch:
        raise NotImplementedError


class RecordedSandboxes(SharedSandboxes):
    """Reports a sandbox if the record had one; it cannot run anything."""

    def __init__(self, *, confined: bool) -> None:
        super().__init__()
        self._confined = confined

    def notice(self) -> str:
        """Return "": the record contains the notice."""
        return ""

    def make(self, policy: SandboxPolicy, search_path: str | None) -> Sandbox | Unavailable:
        """Return a sandbox that cannot run anything, or `Unavailable`."""
        del search_path
        if not self._confined:
            return Unavailable("the recorded machine had no sandbox", "")
        return Sandbox(_NoBackend(), policy)


class PlainRepositories(GitRepositories):
    """Reports that no repository makes git run another program, without running git."""

    def used_in(self, folder: str) -> tuple[Repository, ...]:
        """Return no repositories; see `GitRepositories.used_in`."""
        del folder
        return ()
