"""The editor's files over `fs/read_text_file` and `fs/write_text_file`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from acp_agent.errors import NoEditorFileError, NoEditorMethodError, WorkspaceError
from acp_agent.ids import SessionId
from acp_agent.server.handshake import ClientProfile
from acp_agent.server.session_requests import Requester, refusal_reason
from protocol.jsonrpc.messages import METHOD_NOT_FOUND, RESOURCE_NOT_FOUND, RpcError
from protocol.v1 import types as acp
from protocol.v1.methods import FS_READ_TEXT_FILE, FS_WRITE_TEXT_FILE

ANSWER_SECONDS = 30.0  # an editor that takes longer for a file will not answer at all


class ClientBuffers:
    """`EditorBuffers` of one session over the connection.

    Args:
        session: the session whose files these are.
        secrets: gives the values that must not appear in a reason.
    """

    def __init__(
        self,
        connection: Requester,
        session: SessionId,
        client: ClientProfile,
        *,
        secrets: Callable[[], Sequence[str]],
    ) -> None:
        self._connection = connection
        self._session = session
        self._secrets = secrets
        self.can_read = client.reads_files
        self.can_write = client.writes_files

    async def read_text(self, path: Path, *, lines: int | None = None) -> str:
        """Return a file's text as the editor sees it, or only its first `lines`."""
        request = acp.ReadTextFileRequest(session_id=self._session, path=str(path), limit=lines)
        try:
            response = await self._connection.request(
                FS_READ_TEXT_FILE, request, timeout=ANSWER_SECONDS
            )
        except (RpcError, TimeoutError) as error:
            raise self._failure("read", path, error) from None
        except ConnectionError:
            raise NoEditorFileError(f"the editor is gone and cannot read {path}") from None
        return response.content

    async def write_text(self, path: Path, text: str) -> None:
        """Write a file through the editor, which saves it."""
        request = acp.WriteTextFileRequest(session_id=self._session, path=str(path), content=text)
        try:
            await self._connection.request(FS_WRITE_TEXT_FILE, request, timeout=ANSWER_SECONDS)
        except (RpcError, TimeoutError) as error:
            raise self._failure("write", path, error) from None
        except ConnectionError:
            raise WorkspaceError(f"the editor is gone and cannot write {path}") from None

    def _failure(self, action: str, path: Path, error: RpcError | TimeoutError) -> WorkspaceError:
        if isinstance(error, TimeoutError):
            return WorkspaceError(
                f"the editor did not {action} {path} within {ANSWER_SECONDS:.0f} seconds"
            )
        message = f"the editor refused to {action} {path}: {refusal_reason(error, self._secrets())}"
        if error.code == METHOD_NOT_FOUND:
            return NoEditorMethodError(message)
        if error.code == RESOURCE_NOT_FOUND and action == "read":
            return NoEditorFileError(message)
        return WorkspaceError(message)
