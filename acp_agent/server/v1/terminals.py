"""The editor's terminals over `terminal/*`, for users who opted in."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

from acp_agent.errors import WorkspaceError
from acp_agent.ids import SessionId
from acp_agent.server.session_requests import Asked
from acp_agent.workspace.contract import CommandResult
from protocol.jsonrpc.errors import RpcError
from protocol.v1 import types as acp
from protocol.v1.methods import (
    TERMINAL_CREATE,
    TERMINAL_KILL,
    TERMINAL_OUTPUT,
    TERMINAL_RELEASE,
    TERMINAL_WAIT_FOR_EXIT,
)

ANSWER_SECONDS = 10.0


class ClientTerminals:
    """`EditorTerminals` of one session over the connection."""

    def __init__(self, connection: Asked, session: SessionId) -> None:
        self._connection = connection
        self._session = session

    async def run(
        self,
        command: str,
        cwd: Path,
        *,
        limit_bytes: int,
        timeout: float,
        on_start: Callable[[str], Awaitable[None]],
    ) -> CommandResult:
        """Run a command line in a terminal of the editor's.

        Raises:
            WorkspaceError: the editor refused, or did not answer.
        """
        try:
            terminal = await self._create(command, cwd, limit_bytes)
            try:
                await on_start(terminal)
                timed_out = await self._wait(terminal, timeout)
                return await self._result(terminal, timed_out=timed_out)
            finally:
                # Shielded: a terminal is given back even when the turn is cancelled.
                await asyncio.shield(self._release(terminal))
        except RpcError as error:
            raise WorkspaceError(f"the editor's terminal failed: {error.message}") from None
        except (TimeoutError, ConnectionError):
            raise WorkspaceError("the editor's terminal does not answer") from None

    async def _create(self, command: str, cwd: Path, limit_bytes: int) -> str:
        request = acp.CreateTerminalRequest(
            session_id=self._session,
            command="bash",
            args=["-c", command],
            cwd=str(cwd),
            output_byte_limit=limit_bytes,
        )
        response = await self._connection.request(TERMINAL_CREATE, request, timeout=ANSWER_SECONDS)
        return response.terminal_id

    async def _wait(self, terminal: str, timeout: float) -> bool:
        """Wait for the command's end; whether it had to be killed."""
        request = acp.WaitForTerminalExitRequest(session_id=self._session, terminal_id=terminal)
        try:
            await self._connection.request(TERMINAL_WAIT_FOR_EXIT, request, timeout=timeout)
        except TimeoutError:
            await self._connection.request(
                TERMINAL_KILL,
                acp.KillTerminalRequest(session_id=self._session, terminal_id=terminal),
                timeout=ANSWER_SECONDS,
            )
            return True
        return False

    async def _result(self, terminal: str, *, timed_out: bool) -> CommandResult:
        response = await self._connection.request(
            TERMINAL_OUTPUT,
            acp.TerminalOutputRequest(session_id=self._session, terminal_id=terminal),
            timeout=ANSWER_SECONDS,
        )
        status = response.exit_status
        return CommandResult(
            output=response.output,
            exit_code=None if status is None else status.exit_code,
            signal=None if status is None else status.signal,
            timed_out=timed_out,
            total_bytes=len(response.output.encode("utf-8", "replace")),
        )

    async def _release(self, terminal: str) -> None:
        with contextlib.suppress(RpcError, TimeoutError, ConnectionError):
            await self._connection.request(
                TERMINAL_RELEASE,
                acp.ReleaseTerminalRequest(session_id=self._session, terminal_id=terminal),
                timeout=ANSWER_SECONDS,
            )
