"""The editor's terminals over `terminal/*`, for users who opted in."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from acp_agent.errors import WorkspaceError
from acp_agent.ids import SessionId
from acp_agent.server.session_requests import Requester, refusal_reason
from acp_agent.workspace.environment import added_variables
from acp_agent.workspace.processes import CommandResult
from protocol.jsonrpc.messages import RpcError
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
    """`EditorTerminals` of one session over the connection.

    Args:
        session: gives the session in whose calls the terminals are shown.
        secrets: gives the values that must not appear in a reason.
    """

    def __init__(
        self,
        connection: Requester,
        session: Callable[[], SessionId],
        *,
        secrets: Callable[[], Sequence[str]],
    ) -> None:
        self._secrets = secrets
        self._connection = connection
        self._session = session
        self._release_tasks: set[asyncio.Task[None]] = set()

    async def run(
        self,
        command: str,
        cwd: Path,
        *,
        limit_bytes: int,
        timeout: float,
        only_reads: bool,
        on_start: Callable[[str], Awaitable[None]],
    ) -> CommandResult:
        """Run a command line in a terminal of the editor's.

        The terminal is given back, and with that its command ended, whatever happens; also where
        the editor makes it when nobody waits for it any more.

        Raises:
            WorkspaceError: the editor refused, or did not answer.
        """
        session = self._session()
        try:
            environ = added_variables(os.environ, only_reads=only_reads)
            terminal = await self._create(session, command, cwd, limit_bytes, environ)
            try:
                await on_start(terminal)
                timed_out = await self._wait(session, terminal, timeout)
                return await self._result(session, terminal, timed_out=timed_out)
            finally:
                self._release_soon(session, terminal)
        except RpcError as error:
            reason = refusal_reason(error, self._secrets())
            raise WorkspaceError(f"the editor's terminal failed: {reason}") from None
        except (TimeoutError, ConnectionError):
            raise WorkspaceError("the editor's terminal does not answer") from None

    async def _create(
        self,
        session: SessionId,
        command: str,
        cwd: Path,
        limit_bytes: int,
        environ: Mapping[str, str],
    ) -> str:
        request = acp.CreateTerminalRequest(
            session_id=session,
            command="bash",
            args=["-c", command],
            cwd=str(cwd),
            env=[acp.EnvVariable(name=name, value=value) for name, value in environ.items()],
            output_byte_limit=limit_bytes,
        )
        response = await self._connection.request(
            TERMINAL_CREATE,
            request,
            timeout=ANSWER_SECONDS,
            on_late_result=lambda response: self._release_soon(session, response.terminal_id),
        )
        return response.terminal_id

    async def _wait(self, session: SessionId, terminal: str, timeout: float) -> bool:
        """Wait for the command's end; whether it had to be killed."""
        request = acp.WaitForTerminalExitRequest(session_id=session, terminal_id=terminal)
        try:
            await self._connection.request(TERMINAL_WAIT_FOR_EXIT, request, timeout=timeout)
        except TimeoutError:
            await self._connection.request(
                TERMINAL_KILL,
                acp.KillTerminalRequest(session_id=session, terminal_id=terminal),
                timeout=ANSWER_SECONDS,
            )
            return True
        return False

    async def _result(self, session: SessionId, terminal: str, *, timed_out: bool) -> CommandResult:
        response = await self._connection.request(
            TERMINAL_OUTPUT,
            acp.TerminalOutputRequest(session_id=session, terminal_id=terminal),
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

    def _release_soon(self, session: SessionId, terminal: str) -> None:
        """Release a terminal. Nobody waits for the answer: a turn that is stopped ends at once."""
        task = asyncio.get_running_loop().create_task(self._release(session, terminal))
        self._release_tasks.add(task)
        task.add_done_callback(self._release_tasks.discard)

    async def _release(self, session: SessionId, terminal: str) -> None:
        with contextlib.suppress(RpcError, TimeoutError, ConnectionError):
            await self._connection.request(
                TERMINAL_RELEASE,
                acp.ReleaseTerminalRequest(session_id=session, terminal_id=terminal),
                timeout=ANSWER_SECONDS,
            )
