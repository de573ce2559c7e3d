"""What a sandbox backend is given and returns, and the proxy through which programs reach hosts."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    import subprocess

    from acp_agent.config.network_addresses import Resolve
    from acp_agent.sandbox.host_rules import HostRules
    from acp_agent.sandbox.policy import MountKind, SandboxPolicy
    from acp_agent.sandbox.watch import WatchedCommand

PROXY_SOCKET = "/run/acp-agent-proxy"  # path inside the sandbox
_END_LIMIT = 30.0  # seconds for a container to be gone
_PORT = 39_128  # on 127.0.0.1, in the network namespace of the program

_log = logging.getLogger(__name__)


class Confinement(Struct, frozen=True, kw_only=True):
    """Where a command runs, and which hosts it may reach.

    Attributes:
        confined: whether it runs in the sandbox.
        hosts: hosts in addition to those that the configuration allows.
        outside: whether it runs outside although there is a sandbox.
    """

    confined: bool = True
    hosts: tuple[str, ...] = ()
    outside: bool = False


CONFINED = Confinement()


class CommandNetwork:
    """The hosts that one command can reach.

    Args:
        path: the proxy's socket.
    """

    def __init__(self, path: Path, rules: HostRules, resolve: Resolve) -> None:
        self.path = str(path)
        self.refused: dict[str, None] = {}
        self._rules = rules
        from acp_agent.sandbox.proxy import FilteringProxy  # noqa: PLC0415 - as above: it imports h11

        self._proxy = FilteringProxy(rules, resolve=resolve, on_refused=self._record_refusal)

    @classmethod
    async def open(cls, rules: HostRules, path: Path, resolve: Resolve) -> CommandNetwork:
        """Start the proxy and return the network. Raises OSError if that fails."""
        network = cls(path, rules, resolve)
        await network._proxy.start(path)
        return network

    @property
    def command(self) -> list[str]:
        """The relay program, which connects the command to the proxy and then executes it."""
        ports = map(str, self._rules.local_ports)
        python = [sys.executable, "-I", "-S", str(Path(__file__).with_name("relay.py"))]
        return [*python, PROXY_SOCKET, str(_PORT), *ports, "--"]

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables that name the proxy."""
        from acp_agent.sandbox.proxy import proxy_environment  # noqa: PLC0415 - as above

        return proxy_environment(_PORT)

    async def aclose(self) -> None:
        """Stop the proxy and drop all connections."""
        await self._proxy.aclose()

    def _record_refusal(self, host: str, port: int) -> None:
        self.refused[f"{host}:{port}"] = None


def without_loader_variables(environ: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split an environment into variables for the launcher and those that it must set later.

    The later ones make the dynamic loader run code in a program (ld.so(8)). They must not affect
    the launcher, which is not confined yet.
    """
    loader_variables = {
        name: value
        for name, value in environ.items()
        if name.startswith("LD_") or name == "GLIBC_TUNABLES"
    }
    return {
        name: value for name, value in environ.items() if name not in loader_variables
    }, loader_variables


class Launch(Struct, frozen=True):
    """How to start a program.

    Attributes:
        network: the hosts that it can reach; None: it has no network, or is not confined.
        watched: renames files that run automatically; None: it can write nothing, or is not
            confined.
        end: a command that ends processes that are not our children, such as a container's; it
            may run more than once. Empty: there are none.
    """

    argv: tuple[str, ...]
    environ: dict[str, str]
    descriptors: tuple[int, ...] = ()
    network: CommandNetwork | None = None
    watched: WatchedCommand | None = None
    end: tuple[str, ...] = ()

    @property
    def refused_hosts(self) -> tuple[str, ...]:
        """Hosts, with ports, that the proxy refused."""
        return () if self.network is None else tuple(self.network.refused)

    def close_descriptors(self) -> None:
        """Close the inherited descriptors in this process, after the start."""
        for descriptor in self.descriptors:
            os.close(descriptor)

    def start(self, cwd: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start the program in a new session; `options` are those of `Popen`. Raises OSError."""
        import subprocess  # noqa: PLC0415 - heavy, and most programs are started by the event loop

        descriptors = (*self.descriptors, *options.pop("pass_fds", ()))
        try:
            return subprocess.Popen(
                self.argv,
                cwd=cwd,
                env=self.environ,
                pass_fds=descriptors,
                start_new_session=True,
                **options,
            )
        finally:
            self.close_descriptors()

    def end_others(self) -> None:
        """Run `end`, if there is one; blocks."""
        import subprocess  # noqa: PLC0415 - as above

        if not self.end:
            return
        try:
            subprocess.run(
                self.end,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_END_LIMIT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            _log.warning("processes may still run (`%s`): %s", " ".join(self.end), error)

    async def finish(self) -> None:
        """Rename files that run automatically. Call it after all processes have ended."""
        if self.end:
            await asyncio.to_thread(self.end_others)
        if self.watched is not None:
            await asyncio.to_thread(self.watched.finish)

    async def aclose(self) -> None:
        """Call `finish`, then stop the proxy."""
        await self.finish()
        if self.network is not None:
            await self.network.aclose()


# Returns how to start a helper, given its arguments, environment and folder.
Confine = Callable[[Sequence[str], Mapping[str, str], str], Launch]

# Returns a `Confine` for helpers that may change these folders, resolved.
ConfineWriting = Callable[[Sequence[str]], Confine]


def unconfined(argv: Sequence[str], environ: Mapping[str, str], _cwd: str) -> Launch:
    """Return how to start a program unconfined."""
    return Launch(tuple(argv), dict(environ))


def unconfined_writing(_folders: Sequence[str]) -> Confine:
    """Return `unconfined`."""
    return unconfined


class SandboxedProgram(NamedTuple):
    """A program to confine, and what it may reach.

    Attributes:
        mounts: paths with their kinds; see `SandboxPolicy.mounts`.
        policy: the rights of the session.
        environ: the variables that it would have without a sandbox.
        network: the hosts that it can reach; None for none.
    """

    argv: Sequence[str]
    mounts: Sequence[tuple[str, MountKind]]
    policy: SandboxPolicy
    cwd: str
    environ: Mapping[str, str]
    network: CommandNetwork | None = None


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

    def launch(self, program: SandboxedProgram) -> Launch:
        """Return how to start a program confined."""
