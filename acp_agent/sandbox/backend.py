"""The interface of all backends that confine programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from acp_agent.sandbox.launch import CommandNetwork, Launch
from acp_agent.sandbox.policy import MountKind, SandboxPolicy


class Backend(Protocol):
    """A backend that confines programs.

    Attributes:
        has_network: whether programs can reach hosts through a proxy.
        notice: its limitations, shown to the user once; may be empty.
        for_helpers: the backend for programs other than commands; None: they are not confined.
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
        """Return the path of the temporary folder, as confined programs see it."""

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
        """Return how to start a program confined."""
