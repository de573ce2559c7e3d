"""The handlers that only version 2 has, and its conversions for the shared ones."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from acp_agent.errors import InvalidInputError, SessionNotFoundError
from acp_agent.ids import CallId, SessionId
from acp_agent.server.client_connection import ClientConnection
from acp_agent.server.conversion import merge_updates
from acp_agent.server.extensions.meta import while_running
from acp_agent.server.handlers import Handlers, Json
from acp_agent.server.v2.conversion import available_commands, config_options, prompt_block
from acp_agent.server.v2.editor import EditorV2
from acp_agent.session.session import Session
from protocol.jsonrpc.handlers import Call, Reply, Surface
from protocol.v2 import types as acp
from protocol.v2.methods import AGENT_METHODS

if TYPE_CHECKING:
    from acp_agent.extensions.mcp.config import Channel, ServerConfig
    from protocol.v1 import types as v1
    from protocol.v2 import unstable


class HandlersV2(Handlers):
    """Answers a client that speaks version 2."""

    version = 2
    prompt_modules = ("acp_agent.server.v2.session_tree",)

    def __init__(self, client: ClientConnection) -> None:
        self.editor = EditorV2(client.connection, client.handshake, client.core, client.on_child)
        super().__init__(client, self.editor)

    def surface(self) -> Surface:
        """Return the version's methods with their handlers."""
        return self._surface(
            AGENT_METHODS,
            {
                "auth/login": self.answer_rare,
                "auth/logout": self.answer_rare,
                "session/resume": self.resume,
                "session/prompt": self.prompt,
                "session/status": self.status,
                "tool_call/cancel": self.cancel_tool_call,
                "terminal/cancel": self.cancel_terminal,
            },
            merge=merge_updates,
            batches=True,
        )

    # -- sessions --------------------------------------------------------------------------

    async def resume(self, request: acp.ResumeSessionRequest, _: Call) -> Reply:
        """Open a session, and replay it if the client asks for that (Session Setup)."""
        replay = _wants_replay(request.replay_from)

        async def show(session: Session) -> None:
            is_active = session.turn is not None or session.resources.has_background
            events = await session.core.history() if replay or is_active else ()
            if replay:
                await self.editor.replay(session.id, events)
            if is_active:
                self.editor.catch_up(session.id, events)
            if is_active and not replay:
                self.editor.announce_work(session.id)
            self.editor.show_state(session.id)

        return await self._open(request, show)

    def _mcp_server(self, field: str, server: object, channel: Channel) -> ServerConfig:
        from acp_agent.server.mcp_servers import server_v2  # noqa: PLC0415 - where there are any

        return server_v2(field, server, channel)

    def _text(self, block: acp.ContentBlock) -> str | None:
        return block.text if isinstance(block, acp.TextContent) else None

    def _settings(self, session: Session) -> Json:
        return {
            "configOptions": config_options(session.core.settings.options()),
            "availableCommands": available_commands(session.extensions.commands),
        }

    async def close(
        self, request: v1.CloseSessionRequest | acp.CloseSessionRequest, _: Call
    ) -> Json:
        """Close a session. Does nothing if it is not open."""
        self.operations.refuse_child(request.session_id)
        with contextlib.suppress(SessionNotFoundError):
            await self.operations.close(request.session_id)
        return {}

    async def status(self, request: unstable.SessionStatusRequest, call: Call) -> Json:
        """Return whether a session is open, and what it is doing (unstable)."""
        response = await self.answer_rare(request, call)
        opened = self.client.core.active_manager
        session = None if opened is None else opened.find(SessionId(request.session_id))
        if response["status"] == "open" and session is not None:
            response["state"] = await _state(session)
        return response

    # -- turns -----------------------------------------------------------------------------

    async def prompt(self, request: acp.PromptRequest, call: Call) -> acp.PromptResponse:
        """Submit a prompt, whether or not a turn runs (Prompt Lifecycle).

        Answered when they are in the journal; state updates report what happens to them.
        """
        content = tuple(prompt_block(block) for block in request.prompt)
        submitted = await self.prompts.insert(
            request.session_id,
            content,
            call,
            while_running=while_running(request.meta) if request.meta else None,
        )
        if submitted.began:
            self.editor.trace_turn(SessionId(request.session_id), request.meta)
            await submitted.turn.inserted()
        return acp.PromptResponse(message_id=submitted.message)

    async def cancel_tool_call(
        self, request: acp.CancelToolCallRequest, _: Call
    ) -> acp.CancelToolCallResponse:
        """Stop one call; its last update confirms it (Tool Calls, Cancelling Tool Calls)."""
        session = await self.operations.holder(request.session_id)
        session.turns.cancel_call(CallId(request.tool_call_id))
        return acp.CancelToolCallResponse()

    async def cancel_terminal(
        self, request: acp.CancelTerminalRequest, _: Call
    ) -> acp.CancelTerminalResponse:
        """Stop one command; its exit status confirms it (Tool Calls, Cancelling Terminals)."""
        session = await self.operations.holder(request.session_id)
        session.turns.cancel_terminal(request.terminal_id)
        return acp.CancelTerminalResponse()

    def _option_value(self, request: acp.SetSessionConfigOptionRequest) -> tuple[str, str, str]:
        if isinstance(request, acp.SetSessionConfigOptionId):
            return request.session_id, request.config_id, request.value
        raise InvalidInputError(
            "type: every option takes one of its values; send it with the type 'id'", field="type"
        )


def _wants_replay(cursor: acp.ReplayFrom | None) -> bool:
    """Return whether to replay the conversation.

    Raises:
        InvalidInputError: the cursor is one that we do not have.
    """
    if cursor is None or isinstance(cursor, acp.ReplayFromStart):
        return cursor is not None
    raise InvalidInputError(
        "replayFrom.type: only 'start' is supported; leave replayFrom out to resume without a "
        "replay",
        field="replayFrom.type",
    )


async def _state(session: Session) -> acp.StateUpdate:
    """Return what a session is doing, as its own client was last notified."""
    if session.turn is None:
        return acp.IdleStateUpdate()
    from acp_agent.server.v2.session_tree import SessionTreeV2  # noqa: PLC0415 - rarely used

    tree = SessionTreeV2(session.id)
    for event in await session.core.history():
        for _ in tree.updates(event):
            pass
    return acp.RequiresActionStateUpdate() if tree.waits_for_user else acp.RunningStateUpdate()
