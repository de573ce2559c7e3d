"""The agent's side of every stable method of version 1."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from acp_agent.errors import AcpAgentError, InvalidInputError
from acp_agent.ids import SessionId
from acp_agent.server.client import client_profile
from acp_agent.server.core import Core
from acp_agent.server.errors import to_rpc_error
from acp_agent.server.negotiation import (
    SUPPORTED_VERSIONS,
    auth_methods,
    initialize_result,
    version_for,
)
from acp_agent.server.v1.editor import ClientEditor
from acp_agent.server.v1.lanes import Lanes
from acp_agent.server.v1.options import config_options, mode_state
from acp_agent.server.v1.projection import from_acp
from acp_agent.session.commands import COMMANDS
from acp_agent.session.session import Session
from acp_agent.session.store import SessionRecord
from protocol.jsonrpc.call import Call, Handler, Reply, RequestHandler
from protocol.jsonrpc.errors import INVALID_REQUEST, UNSUPPORTED_VERSION, RpcError
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
        self._initialize_params: dict[str, Any] | None = None
        self._initialize_came = False

    def table(self) -> dict[str, Handler]:
        """The handlers by method."""
        requests: dict[str, RequestHandler] = {
            "authenticate": self.authenticate,
            "logout": self.logout,
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
        table: dict[str, Handler] = {
            name: self._initialized_first(handler) for name, handler in requests.items()
        }
        return table | {"initialize": self.initialize, "session/cancel": self.cancel}

    def admit(self, method: str) -> None:
        """Refuse what arrives before any `initialize`."""
        if method == "initialize":
            self._initialize_came = True
        elif not self._initialize_came:
            raise _too_early(method)

    def _initialized_first(self, handler: RequestHandler) -> RequestHandler:
        """Refuse a request whose `initialize` failed.

        Whether it did is known when the handler starts, not when the request arrives: one sent
        right behind a good `initialize` arrives before that is handled.
        """

        async def checked(params: Any, call: Call) -> object:
            if self._initialize_params is None:
                raise _too_early(call.method)
            return await handler(params, call)

        return checked

    def map_error(self, error: Exception) -> RpcError | None:
        """The error response for an exception of ours; None for any other."""
        if not isinstance(error, AcpAgentError):
            return None
        return to_rpc_error(error, auth_methods(self._initialize_params or {}))

    def initialized(self, params: dict[str, Any]) -> None:
        """Take over the parameters of an `initialize` that was answered."""
        self._initialize_params = params
        self._initialize_came = True
        self._editor.client = client_profile(params)

    # -- connection ------------------------------------------------------------------------

    async def initialize(self, request: acp.InitializeRequest, call: Call) -> dict[str, Any]:
        """Agree on a version and say what we can do (Initialization)."""
        del call
        version = version_for(request.protocol_version)
        if version is None:
            raise RpcError(
                UNSUPPORTED_VERSION,
                f"protocolVersion: {request.protocol_version} is not supported; the versions are "
                + ", ".join(map(str, SUPPORTED_VERSIONS)),
                {
                    "requested": request.protocol_version,
                    "supported": list(SUPPORTED_VERSIONS),
                },
            )
        params: dict[str, Any] = msgspec.to_builtins(request)
        self.initialized(params)
        return initialize_result(params, version)

    async def authenticate(
        self, request: acp.AuthenticateRequest, call: Call
    ) -> acp.AuthenticateResponse:
        """Make a model usable (Authentication)."""
        del call
        methods = {method["id"]: method for method in auth_methods(self._initialize_params or {})}
        method = methods.get(request.method_id)
        if method is None:
            raise InvalidInputError(
                f"methodId: there is no method {request.method_id!r}; the methods are "
                + ", ".join(methods),
                field="methodId",
            )
        if method.get("type") == "terminal":
            raise InvalidInputError(
                f"methodId: {request.method_id!r} runs in a terminal, not over the protocol",
                field="methodId",
            )
        await (await self._core.services()).account.authenticate(request.method_id)
        return acp.AuthenticateResponse()

    async def logout(self, request: acp.LogoutRequest, call: Call) -> acp.LogoutResponse:
        """Forget the keys that a login kept; new sessions need `authenticate` again."""
        del request, call
        await (await self._core.services()).account.log_out()
        return acp.LogoutResponse()

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
        async with self._lanes.enter(request.session_id) as lane, lane.lock:
            manager = await self._core.manager()
            await manager.delete(SessionId(request.session_id))
            self._editor.forget(SessionId(request.session_id))
        return acp.DeleteSessionResponse()

    async def close(self, request: acp.CloseSessionRequest, call: Call) -> acp.CloseSessionResponse:
        """Stop what runs in a session and free it (Session Setup, Closing Sessions)."""
        del call
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
                turn = await session.prompt(content, cancelled=lambda: lane.cancels != cancels)
        return acp.PromptResponse(stop_reason=await turn.result())

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


def _too_early(method: str) -> RpcError:
    return RpcError(INVALID_REQUEST, f"{method} came before initialize; send that first")


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
