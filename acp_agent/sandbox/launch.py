"""How a confined program is started, and its way to the hosts that it may reach."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    import subprocess

    from acp_agent.config.public_addresses import Resolve
    from acp_agent.sandbox.host_rules import HostRules
    from acp_agent.sandbox.watch import WatchedCommand

PROXY_SOCKET = "/run/acp-agent-proxy"  # as the program sees it
_PORT = 39_128  # of 127.0.0.1, in the program's own network


class Reach(Struct, frozen=True, kw_only=True):
    """What a command may reach.

    Attributes:
        confined: it runs in the sandbox.
        hosts: what it reaches from there beside the hosts that are always allowed.
        outside: it runs outside of the sandbox that there is.
    """

    confined: bool = True
    hosts: tuple[str, ...] = ()
    outside: bool = False


CONFINED = Reach()


class CommandNetwork:
    """The hosts that one command can reach.

    Args:
        path: the proxy's socket.
        rules: which hosts may be reached.
        resolve: gives a host's addresses.
    """

    def __init__(self, path: Path, rules: HostRules, resolve: Resolve) -> None:
        self.path = str(path)
        self.refused: dict[str, None] = {}
        self._rules = rules
        from acp_agent.sandbox.proxy import FilteringProxy  # noqa: PLC0415 - as above: it imports h11

        self._proxy = FilteringProxy(rules, resolve=resolve, on_refused=self._note)

    @classmethod
    async def open(cls, rules: HostRules, path: Path, resolve: Resolve) -> CommandNetwork:
        """Start the proxy. Raises OSError where its socket cannot be made."""
        network = cls(path, rules, resolve)
        await network._proxy.start(path)
        return network

    @property
    def command(self) -> list[str]:
        """The program that runs the command with its way to the proxy."""
        ports = map(str, self._rules.local_ports)
        python = [sys.executable, "-I", "-S", str(Path(__file__).with_name("relay.py"))]
        return [*python, PROXY_SOCKET, str(_PORT), *ports, "--"]

    @property
    def environ(self) -> dict[str, str]:
        """The variables that name the proxy."""
        from acp_agent.sandbox.proxy import proxy_environment  # noqa: PLC0415 - as above

        return proxy_environment(_PORT)

    async def aclose(self) -> None:
        """Drop all connections."""
        await self._proxy.aclose()

    def _note(self, host: str, port: int) -> None:
        self.refused[f"{host}:{port}"] = None


def without_loader_variables(environ: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return an environment for the program that confines, and what it must set later.

    The latter has programs load code before they do anything: it must not hold for the one that is
    not confined yet (ld.so(8)).
    """
    later = {
        name: value
        for name, value in environ.items()
        if name.startswith("LD_") or name == "GLIBC_TUNABLES"
    }
    return {name: value for name, value in environ.items() if name not in later}, later


class Launch(Struct, frozen=True):
    """How a program is started.

    Attributes:
        argv: the program and its arguments.
        environ: its environment.
        descriptors: what it inherits.
        network: the hosts that it can reach; None: it has no network, or is not confined.
        watched: what is moved away that it makes; None: it may change nothing, or anything.
        end: ends what is left when its processes here have ended; blocks.
    """

    argv: tuple[str, ...]
    environ: dict[str, str]
    descriptors: tuple[int, ...] = ()
    network: CommandNetwork | None = None
    watched: WatchedCommand | None = None
    end: Callable[[], None] | None = None

    @property
    def refused_hosts(self) -> tuple[str, ...]:
        """The hosts, with their ports, that it wanted to reach and may not."""
        return () if self.network is None else tuple(self.network.refused)

    def close_descriptors(self) -> None:
        """Close what the program inherited, once it was started."""
        for descriptor in self.descriptors:
            os.close(descriptor)

    def start(self, cwd: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start the program in a session of its own; `options` are those of `Popen`.

        Raises:
            OSError: it cannot be started.
        """
        import subprocess  # noqa: PLC0415 - heavy, and most are started by the event loop

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

    async def finish(self) -> None:
        """Move away what it made that others would run by themselves, now that it has ended."""
        if self.end is not None:
            await asyncio.to_thread(self.end)
        if self.watched is not None:
            await asyncio.to_thread(self.watched.finish)

    async def aclose(self) -> None:
        """End what served the program."""
        await self.finish()
        if self.network is not None:
            await self.network.aclose()


# Returns how a helper is started: its arguments, its environment, and the folder it starts in.
Confine = Callable[[Sequence[str], Mapping[str, str], str], Launch]

# Returns that of helpers which may change some folders, resolved.
ConfineWriting = Callable[[Sequence[str]], Confine]


def unconfined(argv: Sequence[str], environ: Mapping[str, str], cwd: str) -> Launch:
    """Return how a program is started where nothing confines it."""
    del cwd
    return Launch(tuple(argv), dict(environ))


def unconfined_writing(folders: Sequence[str]) -> Confine:
    """Return `unconfined`."""
    del folders
    return unconfined
