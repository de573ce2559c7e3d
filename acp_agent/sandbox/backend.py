"""What every way of confining programs can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from acp_agent.sandbox.launch import CommandNetwork, Launch
from acp_agent.sandbox.policy import MountKind, SandboxPolicy


class Backend(Protocol):
    """A way of this machine to confine programs.

    Attributes:
        name: what it is called.
        has_network: whether programs can reach hosts through a proxy.
        notice: what the user is told once of what it does not do; empty: nothing.
        for_helpers: what confines programs of this machine that are no commands; None: nothing.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - see above

    @property
    def has_network(self) -> bool: ...  # noqa: D102

    @property
    def notice(self) -> str: ...  # noqa: D102

    @property
    def for_helpers(self) -> Backend | None: ...  # noqa: D102

    def temporary(self, policy: SandboxPolicy) -> str:
        """Return the path by which programs know their folder for temporary files."""
        ...

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
        """Return how a program is started so that it is confined."""
        ...
