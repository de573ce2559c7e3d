"""The agent's side of every stable method of version 1."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from acp_agent.errors import AcpAgentError, InvalidInputError
from acp_agent.ids import SessionId
from acp_agent.server.core import Core
from acp_agent.server.errors import to_rpc_error
from acp_agent.server.v1.conversion import from_acp
from acp_agent.server.v1.editor import ClientEditor
from acp_agent.server.v1.handshake import Handshake
from acp_agent.server.v1.lanes import Lanes
from acp_agent.server.v1.options import config_options, mode_state
from acp_agent.session.commands import COMMANDS
from acp_agent.session.options import MODE_IDS, MODES
from acp_agent.session.session import Session
from acp_agent.session.store import SessionRecord
from protocol.jsonrpc.call import Call, Handler, Reply, RequestHandler
from protocol.jsonrpc.errors import RpcError
from protocol.v1 import types as acp


class Handlers:
    """Answers the client. It translates; the sessions hold every state of a conversation.

    Args:
        editor: the way back to the client.
        core: the sessions, and what they are built on.
    """

    def __init__(self, editor: ClientEditor, core: Core) -> None:
        self._editor = editor
        self._core = core
        self._lanes = Lanes()
        self.handshake = Handshake(editor, core)

    def table(self) -> dict[str, Handler]:
        """The handlers by method."""
        requests: dict[str, RequestHandler] = {
            "session/new": self.new,
            "session/load": self.load,
            "session/resume": self.resume,
            "session/list": self.list,
            "session/delete": self.delete,
            "session/close": self.close,
            "session/prompt": self.prompt,
            "session/set_mode": self.set_mode,
            "session/set_config_option": self.set_config_option,
        }
        return self.handshake.table(requests) | {"session/cancel": self.cancel}

    def map_error(self, error: Exception) -> RpcError | None:
        """The error response for an exception of ours; None for any other."""
        if not isinstance(error, AcpAgentError):
            return None
        return to_rpc_error(error, self.handshake.auth_methods())

    # -- sessions --------------------------------------------------------------------------

    async def new(self, request: acp.NewSessionRequest, call: Call) -> Reply:
        """Start a session (Session Setup)."""
        del call
        manager = await self._core.manager()
        session = await manager.create(request.cwd, request.additional_directories)
        options = session.settings.options()
        response = acp.NewSessionResponse(
            session_id=session.session,
            modes=mode_state(options),
            config_options=config_options(options),
        )
        return Reply(response, lambda: self._after_opening(session, request.mcp_servers))

    async def load(self, request: acp.LoadSessionRequest, call: Call) -> Reply:
        """Open a session and replay it (Session Setup, Loading Sessions)."""
        del call
        async with self._lanes.enter(request.session_id) as lane, lane.lock:
            session = await self._open(
                request.session_id, request.cwd, request.additional_directories
            )

            async def replay() -> None:
                await self._editor.replay(session.session, await session.history())

            await session.replay(replay)
        options = session.settings.options()
        response = acp.LoadSessionResponse(
            modes=mode_state(options), config_options=config_options(options)
        )
        return Reply(response, lambda: self._after_opening(session, request.mcp_servers))

    async def resume(self, request: acp.ResumeSessionRequest, call: Call) -> Reply:
        """Open a session without replaying it (Session Setup, Resuming Sessions)."""
        del call
        async with self._lanes.enter(request.session_id) as lane, lane.lock:
            session = await self._open(
                request.session_id, request.cwd, request.additional_directories
            )
        options = session.settings.options()
        response = acp.ResumeSessionResponse(
            modes=mode_state(options), config_options=config_options(options)
        )
        return Reply(response, lambda: self._after_opening(session, request.mcp_servers))

    async def _open(self, session_id: str, cwd: str, directories: Sequence[str]) -> Session:
        manager = await self._core.manager()
        return await manager.open(SessionId(session_id), cwd, directories)

    def _after_opening(self, session: Session, mcp_servers: Sequence[acp.McpServer]) -> None:
        """What the client needs once it knows the session."""
        self._editor.update(
            session.session,
            acp.AvailableCommandsUpdate(
                available_commands=[
                    acp.AvailableCommand(
                        name=command.name,
                        description=command.description,
                        input=None
                        if command.hint is None
                        else acp.UnstructuredCommandInput(hint=command.hint),
                    )
                    for command in COMMANDS
                ]
            ),
        )
        session.opened([_server_name(server) for server in mcp_servers])

    async def list(self, request: acp.ListSessionsRequest, call: Call) -> acp.ListSessionsResponse:
        """List the sessions that have a conversation (Session List)."""
        del call
        manager = await self._core.manager()
        page = await manager.list(request.cwd, request.cursor)
        return acp.ListSessionsResponse(
            sessions=[_session_info(record) for record in page.sessions],
            next_cursor=page.next_cursor,
        )

    async def delete(
        self, request: acp.DeleteSessionRequest, call: Call
    ) -> acp.DeleteSessionResponse:
        """Delete a session; one that is not there is gone as asked (Session Delete)."""
        del call
        self._cancel(request.session_id)  # what waits for its turn in the lane ends, too
        async with self._lanes.enter(request.session_id) as lane, lane.lock:
            manager = await self._core.manager()
            await manager.delete(SessionId(request.session_id))
            self._editor.forget(SessionId(request.session_id))
        return acp.DeleteSessionResponse()

    async def close(self, request: acp.CloseSessionRequest, call: Call) -> acp.CloseSessionResponse:
        """Stop what runs in a session and free it (Session Setup, Closing Sessions)."""
        del call
        self._cancel(request.session_id)  # what waits for its turn in the lane ends, too
        async with self._lanes.enter(request.session_id) as lane, lane.lock:
            manager = await self._core.manager()
            await manager.close(SessionId(request.session_id))
            self._editor.forget(SessionId(request.session_id))
        return acp.CloseSessionResponse()

    # -- turns -----------------------------------------------------------------------------

    async def prompt(self, request: acp.PromptRequest, call: Call) -> acp.PromptResponse:
        """Run a turn, or steer the one that runs (Prompt Turn)."""
        content = tuple(_supported(block) for block in request.prompt)
        async with self._lanes.enter(request.session_id) as lane:
            cancels = lane.cancels
            call.on_cancel(lambda: self._cancel(request.session_id))
            async with lane.lock:
                manager = await self._core.manager()
                session = manager.get(SessionId(request.session_id))
                said = await session.prompt(content, cancelled=lambda: lane.cancels != cancels)
        return acp.PromptResponse(stop_reason=await said.turn.result())

    async def cancel(self, notification: acp.CancelNotification) -> None:
        """Stop the turn (Prompt Turn, Cancellation).

        A coroutine, so that it starts after the requests that were sent before it.
        """
        self._cancel(notification.session_id)

    def _cancel(self, session_id: str) -> None:
        self._lanes.cancel(session_id)
        self._core.cancel(SessionId(session_id))

    async def set_mode(
        self, request: acp.SetSessionModeRequest, call: Call
    ) -> acp.SetSessionModeResponse:
        """Switch the mode (Session Modes)."""
        del call
        async with self._lanes.enter(request.session_id) as lane, lane.lock:
            session = (await self._core.manager()).get(SessionId(request.session_id))
            if request.mode_id not in MODE_IDS:
                raise InvalidInputError(
                    f"modeId: there is no mode {request.mode_id!r}; the modes are "
                    + ", ".join(mode.id for mode in MODES),
                    field="modeId",
                )
            await session.set_option("mode", request.mode_id)
        return acp.SetSessionModeResponse()

    async def set_config_option(
        self, request: acp.SetSessionConfigOptionRequest, call: Call
    ) -> acp.SetSessionConfigOptionResponse:
        """Set an option and answer with all of them (Session Config Options)."""
        del call
        if isinstance(request.value, bool):
            raise InvalidInputError(
                f"value: {request.config_id} takes one of its values, not a truth value",
                field="value",
            )
        async with self._lanes.enter(request.session_id) as lane, lane.lock:
            session = (await self._core.manager()).get(SessionId(request.session_id))
            await session.set_option(request.config_id, request.value)
        return acp.SetSessionConfigOptionResponse(
            config_options=config_options(session.settings.options())
        )


def _supported(block: acp.ContentBlock) -> Any:
    if isinstance(block, acp.AudioContent):
        raise InvalidInputError(
            "prompt: audio is not supported; send text, images or resources", field="prompt"
        )
    return from_acp(block)


def _server_name(server: acp.McpServer) -> str:
    return str(getattr(server, "name", "unnamed"))


def _session_info(record: SessionRecord) -> acp.SessionInfo:
    updated = datetime.fromtimestamp(record.updated_at / 1000, UTC)
    return acp.SessionInfo(
        session_id=record.id,
        cwd=record.cwd,
        additional_directories=list(record.directories),
        title=record.title,
        updated_at=updated.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    )
