"""The way of a session's confined programs to the hosts that the user allowed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from acp_agent.config.public_addresses import Resolve
from acp_agent.config.sandbox_types import SandboxNetworkConfig
from acp_agent.sandbox.policy import TEMPORARY

if TYPE_CHECKING:
    from acp_agent.sandbox.proxy import FilteringProxy

PORT = 39_128  # of the proxy on 127.0.0.1, in the namespace of each program
_SOCKET = ".acp-agent-proxy"
_RELAY = Path(__file__).with_name("relay.py")


class SandboxNetwork:
    """Starts the filtering proxy when a program is first given the way to it.

    Args:
        config: the hosts that may be reached.
        temporary: the folder that programs have as /tmp, where the proxy's socket is.
        resolve: gives a host's addresses.
    """

    def __init__(self, config: SandboxNetworkConfig, temporary: str, resolve: Resolve) -> None:
        self._config = config
        self._socket = Path(temporary, _SOCKET)
        self._resolve = resolve
        self._lock = asyncio.Lock()
        self._proxy: FilteringProxy | None = None
        self._local_ports: tuple[int, ...] = ()

    async def command(
        self, argv: Sequence[str], environ: Mapping[str, str]
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        """Return a program and its environment with the way to the proxy.

        Raises:
            OSError: the proxy cannot listen; the temporary folder's name may be too long.
            ConfigError: what the configuration names is not a host.
        """
        from acp_agent.sandbox.proxy import proxy_environment  # noqa: PLC0415 - few need it

        async with self._lock:
            if self._proxy is not None and not await asyncio.to_thread(self._socket.exists):
                await self._close()  # a program removed its socket
            if self._proxy is None:
                await self._start()
        ports = [str(port) for port in (PORT, *self._local_ports)]
        relay = [sys.executable, "-I", "-S", str(_RELAY), f"{TEMPORARY}/{_SOCKET}", *ports, "--"]
        return [*relay, *argv], {**environ, **proxy_environment(PORT)}

    async def aclose(self) -> None:
        """Stop the proxy and drop its connections."""
        async with self._lock:
            await self._close()

    async def _start(self) -> None:
        from acp_agent.sandbox.host_rules import HostRules  # noqa: PLC0415 - few need it
        from acp_agent.sandbox.proxy import FilteringProxy  # noqa: PLC0415 - it imports h11

        rules = HostRules(self._config.allowed_domains, self._config.denied_domains)
        self._local_ports = tuple(port for port in rules.local_ports if port != PORT)
        await asyncio.to_thread(self._prepare_folder)
        proxy = FilteringProxy(rules, resolve=self._resolve)
        await proxy.start(self._socket)
        self._proxy = proxy

    def _prepare_folder(self) -> None:
        os.makedirs(self._socket.parent, mode=0o700, exist_ok=True)  # noqa: PTH103 - has the mode
        self._socket.unlink(missing_ok=True)

    async def _close(self) -> None:
        proxy, self._proxy = self._proxy, None
        if proxy is not None:
            await proxy.aclose()
