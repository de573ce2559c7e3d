"""The editor's files over `fs/read_text_file` and `fs/write_text_file`."""

from __future__ import annotations

from pathlib import Path

from acp_agent.errors import WorkspaceError
from acp_agent.ids import SessionId
from acp_agent.server.client import ClientProfile
from acp_agent.server.session_requests import Requester
from protocol.jsonrpc.errors import RpcError
from protocol.v1 import types as acp
from protocol.v1.methods import FS_READ_TEXT_FILE, FS_WRITE_TEXT_FILE

ANSWER_SECONDS = 30.0  # an editor that takes longer for a file will not answer at all


class ClientBuffers:
    """`EditorBuffers` of one session over the connection."""

    def __init__(self, connection: Requester, session: SessionId, client: ClientProfile) -> None:
        self._connection = connection
        self._session = session
        self.can_read = client.reads_files
        self.can_write = client.writes_files

    async def read_text(self, path: Path) -> str:
        """The whole text of a file as the editor sees it."""
        request = acp.ReadTextFileRequest(session_id=self._session, path=str(path))
        try:
            response = await self._connection.request(
                FS_READ_TEXT_FILE, request, timeout=ANSWER_SECONDS
            )
        except (RpcError, TimeoutError, ConnectionError) as error:
            raise _failure("read", path, error) from None
        return response.content

    async def write_text(self, path: Path, text: str) -> None:
        """Let the editor change and save a file."""
        request = acp.WriteTextFileRequest(session_id=self._session, path=str(path), content=text)
        try:
            await self._connection.request(FS_WRITE_TEXT_FILE, request, timeout=ANSWER_SECONDS)
        except (RpcError, TimeoutError, ConnectionError) as error:
            raise _failure("write", path, error) from None


def _failure(what: str, path: Path, error: Exception) -> WorkspaceError:
    match error:
        case RpcError():
            return WorkspaceError(f"the editor cannot {what} {path}: {error.message}")
        case TimeoutError():
            return WorkspaceError(
                f"the editor did not {what} {path} within {ANSWER_SECONDS:.0f} seconds"
            )
        case _:
            return WorkspaceError(f"the editor is gone and cannot {what} {path}")
