"""The agent's side of every stable method of version 2."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from acp_agent.content import ContentBlock
from acp_agent.errors import InvalidInputError, SessionNotFoundError
from acp_agent.events import SystemPromptGiven
from acp_agent.ids import CallId, SessionId
from acp_agent.server.extensions.meta import while_running
from acp_agent.server.extensions.methods import EXTENSION_METHODS, extension_answers
from acp_agent.server.handshake import Answer
from acp_agent.server.lazy_table import UNSTABLE_METHODS, LazyTable
from acp_agent.server.link import ClientLink
from acp_agent.server.mcp_channel import MCP_NOTIFICATION, McpChannel
from acp_agent.server.operations import Operations
from acp_agent.server.v2.conversion import config_options, from_acp
from acp_agent.server.v2.editor import Editor, available_commands
from acp_agent.server.v2.merging import merge_updates
from acp_agent.session.session import Session
from acp_agent.session.store.records import SessionRecord
from protocol.jsonrpc.call import Call, Handler, Reply
from protocol.jsonrpc.methods import Method
from protocol.jsonrpc.surface import Surface
from protocol.v2 import types as acp
from protocol.v2.methods import AGENT_METHODS

if TYPE_CHECKING:
    from acp_agent.extensions.mcp.config import ServerConfig


class Handlers:
    """Answers the client. It translates; the sessions hold every state of a conversation.

    Args:
        link: the connection.
        editor: the way back to the client.
        operations: what can be done with sessions.
    """

    def __init__(self, link: ClientLink, editor: Editor, operations: Operations) -> None:
        self._link = link
        self._editor = editor
        self._operations = operations
        self._channel = McpChannel(link.connection)

    def table(self) -> dict[str, Handler]:
        """The handlers by method."""
        requests: dict[str, Answer] = {
            "auth/login": self.login,
            "auth/logout": self.logout,
            "session/new": self.new,
            "session/resume": self.resume,
            "session/list": self.list,
            "session/delete": self.delete,
            "session/close": self.close,
            "session/prompt": self.prompt,
            "session/set_config_option": self.set_config_option,
            "tool_call/cancel": self.cancel_tool_call,
            "terminal/cancel": self.cancel_terminal,
            **extension_answers(self._operations),
        }
        first = self._link.handshake.first
        table: dict[str, Handler] = {name: first(answer) for name, answer in requests.items()}
        return table | {
            "initialize": self.initialize,
            "session/cancel": self.cancel,
            MCP_NOTIFICATION.name: self._channel.notified,
        }

    # -- before any session ----------------------------------------------------------------

    async def initialize(self, request: acp.InitializeRequest, call: Call) -> dict[str, Any]:
        """Say what we can do (Initialization)."""
        del call
        return self._link.handshake.initialized(msgspec.to_builtins(request), 2)

    async def login(self, request: acp.LoginAuthRequest, call: Call) -> acp.LoginAuthResponse:
        """Make a model usable (Authentication)."""
        from acp_agent.server.account import log_in  # noqa: PLC0415 - rarely used

        await log_in(self._link, request.method_id, call.id)
        return acp.LoginAuthResponse()

    async def logout(self, request: acp.LogoutAuthRequest, call: Call) -> acp.LogoutAuthResponse:
        """Forget the keys that a login kept (Authentication)."""
        del request, call
        from acp_agent.server.account import log_out  # noqa: PLC0415 - rarely used

        await log_out(self._link)
        return acp.LogoutAuthResponse()

    # -- sessions --------------------------------------------------------------------------

    async def new(self, request: acp.NewSessionRequest, call: Call) -> Reply:
        """Start a session (Session Setup)."""
        del call
        servers = self.servers(request.mcp_servers)
        session = await self._operations.create(
            request.cwd,
            request.additional_directories,
            system_prompt=await self.given(request.system_prompt),
        )
        return self.opened(session, servers, acp.NewSessionResponse, session_id=session.id)

    async def resume(self, request: acp.ResumeSessionRequest, call: Call) -> Reply:
        """Open a session, and replay it where the client asks for that (Session Setup)."""
        del call
        servers = self.servers(request.mcp_servers)
        replay = _replays(request.replay_from)

        async def show(session: Session) -> None:
            goes_on = session.turn is not None or session.resources.has_background
            events = await session.core.history() if replay or goes_on else ()
            if replay:
                await self._editor.replay(session.id, events)
            if goes_on:
                self._editor.catch_up(session.id, events)
            if goes_on and not replay:
                self._editor.announce_work(session.id)
            self._editor.show_state(session.id)

        session = await self._operations.open(
            request.session_id,
            request.cwd,
            request.additional_directories,
            system_prompt=await self.given(request.system_prompt),
            then=show,
        )
        return self.opened(session, servers, acp.ResumeSessionResponse)

    def servers(self, servers: Sequence[acp.McpServer]) -> Sequence[ServerConfig]:
        """The MCP servers that the client names with a session.

        Raises:
            InvalidInputError: one of them cannot be used.
        """
        if not servers:
            return ()
        from acp_agent.server.v2.mcp_servers import server_configs  # noqa: PLC0415 - where any are

        return server_configs(servers, self._channel)

    async def given(self, prompt: acp.SystemPrompt | None) -> SystemPromptGiven | None:
        """The instructions that the client gives with a session, checked before it is touched.

        Raises:
            InvalidInputError: they cannot be applied.
        """
        if prompt is None:
            return None
        return await self._operations.system_prompt(
            prompt.mode, [_instruction(block) for block in prompt.content]
        )

    def opened(
        self,
        session: Session,
        servers: Sequence[ServerConfig],
        response: Callable[..., object],
        **more: str,
    ) -> Reply:
        """The answer to every request that opens a session, and what follows it."""
        return Reply(
            response(
                config_options=config_options(session.core.settings.options()),
                available_commands=available_commands(session.extensions.commands),
                **more,
            ),
            lambda: session.opened(servers),
        )

    async def list(self, request: acp.ListSessionsRequest, call: Call) -> acp.ListSessionsResponse:
        """List the sessions that are in use (Session List)."""
        del call
        page = await self._operations.list(request.cwd, request.cursor, request.archived)
        return acp.ListSessionsResponse(
            sessions=[_session_info(record) for record in page.sessions],
            next_cursor=page.next_cursor,
        )

    async def delete(
        self, request: acp.DeleteSessionRequest, call: Call
    ) -> acp.DeleteSessionResponse:
        """Delete a session; one that is not there is gone as asked (Session Delete)."""
        del call
        await self._operations.delete(request.session_id)
        return acp.DeleteSessionResponse()

    async def close(self, request: acp.CloseSessionRequest, call: Call) -> acp.CloseSessionResponse:
        """Stop what runs in a session and free it; one that is not open is closed as asked."""
        del call
        self._operations.refuse_child(request.session_id)
        with contextlib.suppress(SessionNotFoundError):
            await self._operations.close(request.session_id)
        return acp.CloseSessionResponse()

    # -- turns -----------------------------------------------------------------------------

    async def prompt(self, request: acp.PromptRequest, call: Call) -> acp.PromptResponse:
        """Put words into the conversation, whether or not a turn runs (Prompt Lifecycle).

        Answered when they are in the journal; what becomes of them is told by state updates.
        """
        content = tuple(_supported(block) for block in request.prompt)
        said = await self._operations.prompts.insert(
            request.session_id, content, call, while_running=while_running(request.meta)
        )
        if said.began:
            self._editor.trace_turn(SessionId(request.session_id), request.meta)
            await said.turn.inserted()
        return acp.PromptResponse(message_id=said.message)

    async def cancel(self, notification: acp.CancelSessionNotification) -> None:
        """Stop the foreground work (Prompt Lifecycle, Cancellation).

        A coroutine, so that it starts after the requests that were sent before it.
        """
        self._operations.cancel(notification.session_id)

    async def cancel_tool_call(
        self, request: acp.CancelToolCallRequest, call: Call
    ) -> acp.CancelToolCallResponse:
        """Stop one call; its last update confirms it (Tool Calls, Cancelling Tool Calls)."""
        del call
        session = await self._operations.holder(request.session_id)
        session.turns.cancel_call(CallId(request.tool_call_id))
        return acp.CancelToolCallResponse()

    async def cancel_terminal(
        self, request: acp.CancelTerminalRequest, call: Call
    ) -> acp.CancelTerminalResponse:
        """Stop one command; its exit status confirms it (Tool Calls, Cancelling Terminals)."""
        del call
        session = await self._operations.holder(request.session_id)
        session.turns.cancel_terminal(request.terminal_id)
        return acp.CancelTerminalResponse()

    async def set_config_option(
        self, request: acp.SetSessionConfigOptionRequest, call: Call
    ) -> acp.SetSessionConfigOptionResponse:
        """Set an option and answer with all of them (Session Config Options)."""
        del call
        session_id, option, value = _option_value(request)
        session = await self._operations.change(
            session_id, lambda session: session.set_option(option, value)
        )
        return acp.SetSessionConfigOptionResponse(
            config_options=config_options(session.core.settings.options())
        )


def _replays(cursor: acp.ReplayFrom | None) -> bool:
    """Whether the conversation is to be replayed.

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


def _supported(block: acp.ContentBlock) -> ContentBlock:
    if isinstance(block, acp.AudioContent):
        raise InvalidInputError(
            "prompt: audio is not supported; send text, images or resources", field="prompt"
        )
    if isinstance(block, acp.OtherContentBlock):
        raise InvalidInputError(
            f"prompt: content of type {block.fields['type']!r} is not supported; send text, images "
            "or resources",
            field="prompt",
        )
    return from_acp(block)


def _instruction(block: acp.ContentBlock) -> str:
    if isinstance(block, acp.TextContent):
        return block.text
    raise InvalidInputError(
        "systemPrompt.content: only text blocks are supported", field="systemPrompt.content"
    )


def _option_value(request: acp.SetSessionConfigOptionRequest) -> tuple[str, str, str]:
    """The session, the option and the value of a request.

    Raises:
        InvalidInputError: the value is of a type that none of our options takes.
    """
    if isinstance(request, acp.SetSessionConfigOptionId):
        return request.session_id, request.config_id, request.value
    raise InvalidInputError(
        "type: every option takes one of its values; send it with the type 'id'", field="type"
    )


def _session_info(record: SessionRecord) -> acp.SessionInfo:
    from acp_agent.server.conversion import wire_time  # noqa: PLC0415 - for lists only

    return acp.SessionInfo(
        session_id=record.id,
        cwd=record.cwd,
        additional_directories=list(record.directories),
        title=record.title,
        updated_at=wire_time(record.updated_at),
        archived=record.archived,
    )


def surface_for(link: ClientLink) -> Surface:
    """What a client that speaks version 2 is answered with."""
    editor = Editor(link)
    operations = link.operations(editor)
    handlers = Handlers(link, editor, operations)

    def unstable_handlers() -> Mapping[str, Handler]:
        from acp_agent.server.operations import Lifecycle  # noqa: PLC0415 - few clients use it
        from acp_agent.server.v2.unstable import UnstableHandlers  # noqa: PLC0415 - likewise

        lifecycle = Lifecycle(link.core, editor, operations)
        return UnstableHandlers(link, handlers, operations, lifecycle).table()

    methods = {**AGENT_METHODS, **EXTENSION_METHODS, MCP_NOTIFICATION.name: MCP_NOTIFICATION}
    return Surface(
        LazyTable(methods, UNSTABLE_METHODS, _unstable_methods),
        LazyTable(handlers.table(), UNSTABLE_METHODS, unstable_handlers),
        map_error=link.map_error,
        merge=merge_updates,
        batches=True,
    )


def _unstable_methods() -> Mapping[str, Method[Any, Any]]:
    from protocol.v2.unstable import UNSTABLE_AGENT_METHODS  # noqa: PLC0415 - as above

    return UNSTABLE_AGENT_METHODS
