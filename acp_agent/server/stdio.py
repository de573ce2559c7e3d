"""Serve one client on a pair of descriptors, with the handlers of its protocol version."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Mapping
from typing import Literal

from acp_agent.config.paths import Paths
from acp_agent.config.secrets import Secrets
from acp_agent.platform import posix
from acp_agent.server.client_connection import ClientConnection
from acp_agent.server.core import Core
from acp_agent.server.initialize import Opening
from protocol.jsonrpc.handlers import Surface
from protocol.transports.stdio import StdioTransport

CLOSE_SECONDS = 4.0  # what ending turns, processes and the journal may take

_log = logging.getLogger(__name__)


def serve_stdio(
    input_fd: int,
    output_fd: int,
    *,
    opening: Opening,
    paths: Paths,
    secrets: Secrets,
    environ: Mapping[str, str],
    model_flag: str | None,
    trace: Callable[[Literal["in", "out"], bytes], None] | None,
) -> None:
    """Serve one client until it closes its side, or a signal ends the process.

    The process is to end when this returns: threads that are still at work, importing a model's
    SDK or waiting for the keyring to be unlocked, are not waited for.

    Args:
        input_fd: where the client's lines come from.
        output_fd: where ours go.
        opening: what was read and answered already.
        model_flag: the model named on the command line.
        trace: sees every line.
    """
    core = Core(paths, secrets=secrets, environ=environ, model_flag=model_flag)
    link = ClientConnection(
        StdioTransport(input_fd, output_fd, initial=opening.unread),
        core,
        surface_for,
        trace=trace,
        # While the client can still be sent how its turns ended.
        on_shutdown=lambda: _close(core),
    )
    if opening.params is not None:
        link.handshake.adopt(opening.params)
    loop = asyncio.new_event_loop()  # not `asyncio.run`, which waits for the threads
    on_signals(loop, link.connection.stop)
    loop.run_until_complete(link.run())


async def _close(core: Core) -> None:
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await core.close()
    except TimeoutError:
        _log.warning("not everything could be ended within %.0f seconds", CLOSE_SECONDS)


def on_signals(loop: asyncio.AbstractEventLoop, end: Callable[[], object]) -> None:
    """Call `end` in the loop on SIGTERM, SIGHUP and SIGINT.

    A handler of `signal.signal` alone does not wake a loop that waits, if the signal arrives right
    before it waits or in another thread: the interpreter writes to a pipe that the loop reads.
    `loop.add_signal_handler` does the same, but uses `inspect`, whose import takes long.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    numbers = {*posix.shutdown_signals(), signal.SIGINT}

    def read_numbers() -> None:
        if numbers.isdisjoint(os.read(reader, 256)):  # a byte for each signal that has a handler
            return
        loop.remove_reader(reader)  # a second one does nothing
        _log.info("ended by a signal")
        end()

    loop.add_reader(reader, read_numbers)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, _noop)


def _noop(*_: object) -> None:
    """Do nothing: the pipe tells the loop about the signal."""


def surface_for(client: ClientConnection, version: int) -> Surface:
    """Return the methods of a version and what answers them."""
    if version == 1:
        from acp_agent.server.v1.handlers import HandlersV1  # noqa: PLC0415 - as said above

        return HandlersV1(client).surface()
    from acp_agent.server.v2.handlers import HandlersV2  # noqa: PLC0415 - as said above

    return HandlersV2(client).surface()
