"""The agent's side of every stable method of version 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from acp_agent.errors import InvalidInputError, NoTurnError
from acp_agent.events import SystemPromptGiven
from acp_agent.ids import SessionId
from acp_agent.server.conversion import token_counts
from acp_agent.server.extensions.meta import check_steering, while_running
from acp_agent.server.extensions.methods import EXTENSION_METHODS, extension_answers
from acp_agent.server.handshake import Answer
from acp_agent.server.lazy_table import UNSTABLE_METHODS, LazyTable
from acp_agent.server.link import ClientLink
from acp_agent.server.mcp_channel import MCP_NOTIFICATION, McpChannel
from acp_agent.server.operations import Operations
from acp_agent.server.v1.conversion import config_options, from_acp, mode_state
from acp_agent.server.v1.editor import Editor
from acp_agent.server.v1.merging import merge_updates
from acp_agent.session.session import Session
from acp_agent.session.settings import MODE_IDS, MODES
from acp_agent.session.store.records import SessionRecord
from protocol.jsonrpc.call import Call, Handler, Reply
from protocol.jsonrpc.methods import Method
from protocol.jsonrpc.surface import Surface
from protocol.v1 import types as acp
from protocol.v1.methods import AGENT_METHODS

if TYPE_CHECKING:
    from acp_agent.extensions.mcp.config import ServerConfig


STEERING: Final[Method[acp.PromptRequest, dict[str, Any]]] = Method(
    "_session/steering", acp.PromptRequest, dict
)


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
            STEERING.name: self.steer,
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
        return self._link.handshake.initialized(msgspec.to_builtins(request), 1)

    async def authenticate(
        self, request: acp.AuthenticateRequest, call: Call
    ) -> acp.AuthenticateResponse:
        """Make a model usable (Authentication)."""
        from acp_agent.server.account import log_in  # noqa: PLC0415 - rarely used

        await log_in(self._link, request.method_id, call.id)
        return acp.AuthenticateResponse()

    async def logout(self, request: acp.LogoutRequest, call: Call) -> acp.LogoutResponse:
        """Forget the keys that a login kept (Authentication)."""
        del request, call
        from acp_agent.server.account import log_out  # noqa: PLC0415 - rarely used

        await log_out(self._link)
        return acp.LogoutResponse()

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

    async def load(self, request: acp.LoadSessionRequest, call: Call) -> Reply:
        """Open a session and replay it (Session Setup, Loading Sessions)."""
        del call
        servers = self.servers(request.mcp_servers)

        async def replay(session: Session) -> None:
            events = await session.core.history()
            await self._editor.replay(session.id, events)
            if session.turn is not None:
                self._editor.catch_up(session.id, events)

        session = await self._operations.open(
            request.session_id,
            request.cwd,
            request.additional_directories,
            system_prompt=await self.given(request.system_prompt),
            then=replay,
        )
        return self.opened(session, servers, acp.LoadSessionResponse)

    async def resume(self, request: acp.ResumeSessionRequest, call: Call) -> Reply:
        """Open a session without replaying it (Session Setup, Resuming Sessions)."""
        del call
        servers = self.servers(request.mcp_servers)

        async def catch_up(session: Session) -> None:
            if session.turn is not None:
                self._editor.catch_up(session.id, await session.core.history())
                self._editor.announce_children(session.id)

        session = await self._operations.open(
            request.session_id,
            request.cwd,
            request.additional_directories,
            system_prompt=await self.given(request.system_prompt),
            then=catch_up,
        )
        return self.opened(session, servers, acp.ResumeSessionResponse)

    def servers(self, servers: Sequence[acp.McpServer]) -> Sequence[ServerConfig]:
        """The MCP servers that the client names with a session.

        Raises:
            InvalidInputError: one of them cannot be used.
        """
        if not servers:
            return ()
        from acp_agent.server.v1.mcp_servers import server_configs  # noqa: PLC0415 - where any are

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
        options = session.core.settings.options()
        return Reply(
            response(modes=mode_state(options), config_options=config_options(options), **more),
            lambda: self._after_opening(session, servers),
        )

    def _after_opening(self, session: Session, servers: Sequence[ServerConfig]) -> None:
        """What the client needs once it knows the session."""
        session.opened(servers)
        self._editor.offer_commands(session.id, session.extensions.commands)

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
        """Stop what runs in a session and free it (Session Setup, Closing Sessions)."""
        del call
        await self._operations.close(request.session_id)
        return acp.CloseSessionResponse()

    # -- turns -----------------------------------------------------------------------------

    async def prompt(self, request: acp.PromptRequest, call: Call) -> acp.PromptResponse:
        """Run a turn, or steer the one that runs (Prompt Turn)."""
        content = tuple(_supported(block) for block in request.prompt)
        said = await self._operations.prompts.prompt(
            request.session_id, content, call, while_running=while_running(request.meta)
        )
        if said.began:
            self._editor.trace_turn(SessionId(request.session_id), request.meta)
        stop_reason = await said.turn.result()
        # Told once a turn: words that steered it have no share of their own.
        usage = said.turn.usage if said.began else None
        return acp.PromptResponse(
            stop_reason=stop_reason,
            usage=None if usage is None else acp.Usage(**token_counts(usage)),
        )

    async def steer(self, request: acp.PromptRequest, call: Call) -> dict[str, str]:
        """Say something into the turn that runs, or nothing at all (docs/extensions.md)."""
        check_steering(request.meta)
        content = tuple(_supported(block) for block in request.prompt)
        try:
            await self._operations.prompts.steer(request.session_id, content, call)
        except NoTurnError:
            return {"outcome": "promptRequired", "reason": "noRunningTurn"}
        return {"outcome": "injected"}

    async def cancel(self, notification: acp.CancelNotification) -> None:
        """Stop the turn (Prompt Turn, Cancellation).

        A coroutine, so that it starts after the requests that were sent before it.
        """
        self._operations.cancel(notification.session_id)

    async def set_mode(
        self, request: acp.SetSessionModeRequest, call: Call
    ) -> acp.SetSessionModeResponse:
        """Switch the mode (Session Modes)."""
        del call

        async def switch(session: Session) -> None:
            if request.mode_id not in MODE_IDS:
                raise InvalidInputError(
                    f"modeId: there is no mode {request.mode_id!r}; the modes are "
                    + ", ".join(mode.id for mode in MODES),
                    field="modeId",
                )
            await session.set_option("mode", request.mode_id)

        await self._operations.change(request.session_id, switch)
        return acp.SetSessionModeResponse()

    async def set_config_option(
        self, request: acp.SetSessionConfigOptionRequest, call: Call
    ) -> acp.SetSessionConfigOptionResponse:
        """Set an option and answer with all of them (Session Config Options)."""
        del call
        value = request.value
        if isinstance(value, bool):
            raise InvalidInputError(
                f"value: {request.config_id} takes one of its values, not a truth value",
                field="value",
            )
        session = await self._operations.change(
            request.session_id, lambda session: session.set_option(request.config_id, value)
        )
        return acp.SetSessionConfigOptionResponse(
            config_options=config_options(session.core.settings.options())
        )


def _supported(block: acp.ContentBlock) -> Any:
    if isinstance(block, acp.AudioContent):
        raise InvalidInputError(
            "prompt: audio is not supported; send text, images or resources", field="prompt"
        )
    return from_acp(block)


def _instruction(block: acp.ContentBlock) -> str:
    if isinstance(block, acp.TextContent):
        return block.text
    raise InvalidInputError(
        "systemPrompt.content: only text blocks are supported", field="systemPrompt.content"
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
    """What a client that speaks version 1 is answered with."""
    editor = Editor(link)
    operations = link.operations(editor)
    handlers = Handlers(link, editor, operations)

    def unstable_handlers() -> Mapping[str, Handler]:
        from acp_agent.server.operations import Lifecycle  # noqa: PLC0415 - few clients use it
        from acp_agent.server.v1.unstable import UnstableHandlers  # noqa: PLC0415 - likewise

        lifecycle = Lifecycle(link.core, editor, operations)
        return UnstableHandlers(link, handlers, operations, lifecycle).table()

    methods = {
        **AGENT_METHODS,
        **EXTENSION_METHODS,
        STEERING.name: STEERING,
        MCP_NOTIFICATION.name: MCP_NOTIFICATION,
    }
    return Surface(
        LazyTable(methods, UNSTABLE_METHODS, _unstable_methods),
        LazyTable(handlers.table(), UNSTABLE_METHODS, unstable_handlers),
        map_error=link.map_error,
        merge=merge_updates,
    )


def _unstable_methods() -> Mapping[str, Method[Any, Any]]:
    from protocol.v1.unstable import UNSTABLE_AGENT_METHODS  # noqa: PLC0415 - as above

    return UNSTABLE_AGENT_METHODS
