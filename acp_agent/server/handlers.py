"""The handlers of the methods that mean the same in both versions of the protocol.

Where the versions share a JSON shape, a response is made as JSON. Requests have the types of the
version. Each version adds its own handlers and conversions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from acp_agent.errors import InvalidInputError
from acp_agent.events import SystemPromptGiven
from acp_agent.server.client_connection import ClientConnection
from acp_agent.server.editor import ClientEditor
from acp_agent.server.handshake import Answer
from acp_agent.server.initialize import EXTENSIONS
from acp_agent.server.mcp_channel import MCP_NOTIFICATION, McpChannel
from acp_agent.session.session import Session
from protocol.jsonrpc.handlers import Call, Handler, Reply, Surface
from protocol.jsonrpc.methods import LazyMethod, Method
from protocol.jsonrpc.outgoing import Merge

if TYPE_CHECKING:
    from acp_agent.extensions.mcp.config import Channel, ServerConfig
    from acp_agent.server.prompts import Prompts
    from protocol.v1 import types as v1, unstable as v1_unstable
    from protocol.v2 import types as v2, unstable as v2_unstable

Json = dict[str, Any]
Methods = Mapping[str, Method[Any, Any]]

# Our own methods, in both versions. Their types are imported when one is called.
EXTENSION_METHODS: Final[Methods] = {
    name: Method(name, dict, dict) for name in EXTENSIONS["methods"]
}
# Methods whose types and handlers are imported when one is called, with the name that their types
# begin with.
UNSTABLE_METHODS: Final = {
    "session/fork": "ForkSession",
    "session/archive": "ArchiveSession",
    "session/unarchive": "UnarchiveSession",
    "session/status": "SessionStatus",
    "session/set_title": "SetSessionTitle",
    "auth/status": "AuthStatus",
    "providers/list": "ListProviders",
    "providers/set": "SetProvider",
    "providers/disable": "DisableProvider",
}


class Handlers(ABC):
    """Answers one client. The sessions hold the state of every conversation.

    Attributes:
        prompt_modules: modules of the version that only prompts need.
    """

    version: ClassVar[int]
    prompt_modules: ClassVar[tuple[str, ...]]

    def __init__(self, client: ClientConnection, editor: ClientEditor[Any]) -> None:
        self.client = client
        self.operations = client.operations(editor)
        self._channel = McpChannel(client.connection)
        self._has_prompt = False  # a prompt has arrived

    @abstractmethod
    def surface(self) -> Surface:
        """Return the version's methods with their handlers."""

    def _surface(
        self,
        methods: Methods,
        handlers: Mapping[str, Answer],
        *,
        merge: Merge,
        batches: bool = False,
    ) -> Surface:
        """Return a surface with `methods`, and with `handlers` beside the shared ones."""
        requests: dict[str, Answer] = {
            **dict.fromkeys(UNSTABLE_METHODS, self.answer_rare),
            **dict.fromkeys(EXTENSION_METHODS, self._answer_extension),
            "session/new": self.new,
            "session/fork": self.fork,
            "session/list": self.list,
            "session/delete": self.delete,
            "session/close": self.close,
            "session/set_config_option": self.set_config_option,
            **handlers,
        }
        require_initialized = self.client.handshake.require_initialized
        checked: dict[str, Handler] = {
            name: require_initialized(answer) for name, answer in requests.items()
        }
        module = f"protocol.v{self.version}.unstable"
        unstable: Methods = {
            name: LazyMethod(name, module, types) for name, types in UNSTABLE_METHODS.items()
        }
        extensions = {**EXTENSION_METHODS, MCP_NOTIFICATION.name: MCP_NOTIFICATION}
        return Surface(
            {**methods, **unstable, **extensions},
            checked
            | {
                "initialize": self.initialize,
                "session/cancel": self.cancel,
                MCP_NOTIFICATION.name: self._channel.receive_notification,
            },
            map_error=self.client.map_error,
            merge=merge,
            batches=batches,
        )

    async def initialize(
        self, request: v1.InitializeRequest | v2.InitializeRequest, _: Call
    ) -> Json:
        """Return what we can do (Initialization)."""
        return self.client.handshake.accept(msgspec.to_builtins(request), self.version)

    async def answer_rare(self, request: Any, call: Call) -> Json:
        """Answer a method that few clients use; see `rare_handlers`."""
        from acp_agent.server.rare_handlers import HANDLERS  # noqa: PLC0415 - rarely used

        return await HANDLERS[call.method](self.client, self.operations, request, call)

    async def _answer_extension(self, params: Json, call: Call) -> object:
        """Answer one of our own methods."""
        from acp_agent.server.extensions.handlers import HANDLERS  # noqa: PLC0415 - rarely used

        return await HANDLERS[call.method](self.operations, params)

    # -- opening sessions ------------------------------------------------------------------

    async def new(self, request: v1.NewSessionRequest | v2.NewSessionRequest, _: Call) -> Reply:
        """Start a session (Session Setup)."""
        servers = self.mcp_servers(request.mcp_servers)
        session = await self.operations.create(
            request.cwd,
            request.additional_directories,
            system_prompt=await self._system_prompt(request.system_prompt),
        )
        return self._open_reply(session, servers, sessionId=session.id)

    async def fork(
        self, request: v1_unstable.ForkSessionRequest | v2_unstable.ForkSessionRequest, _: Call
    ) -> Reply:
        """Start a session that begins with another's conversation (unstable)."""
        from acp_agent.server.extensions.meta import fork_point  # noqa: PLC0415 - rarely used

        servers = self.mcp_servers(request.mcp_servers)
        session = await self.operations.fork(
            request.session_id,
            request.cwd,
            request.additional_directories,
            system_prompt=await self._system_prompt(request.system_prompt),
            point=fork_point(request.meta),
        )
        return self._open_reply(session, servers, sessionId=session.id)

    async def _open(
        self,
        request: v1.LoadSessionRequest | v1.ResumeSessionRequest | v2.ResumeSessionRequest,
        show: Callable[[Session], Any],
    ) -> Reply:
        """Open a session; `show` sends what the client must know before any live update."""
        servers = self.mcp_servers(request.mcp_servers)
        session = await self.operations.open(
            request.session_id,
            request.cwd,
            request.additional_directories,
            system_prompt=await self._system_prompt(request.system_prompt),
            then=show,
        )
        return self._open_reply(session, servers)

    def mcp_servers(self, servers: Sequence[object]) -> Sequence[ServerConfig]:
        """Convert the MCP servers that the client names with a session.

        Raises:
            InvalidInputError: one of them cannot be used; the message names it.
        """
        if not servers:
            return ()
        from acp_agent.server.mcp_servers import check_count  # noqa: PLC0415 - where there are any

        check_count(len(servers))
        return tuple(
            self._mcp_server(f"mcpServers[{index}]", server, self._channel)
            for index, server in enumerate(servers)
        )

    @abstractmethod
    def _mcp_server(self, field: str, server: Any, channel: Channel) -> ServerConfig:
        """Convert one MCP server; `field` is its name in errors."""

    async def _system_prompt(
        self, prompt: v1.SystemPrompt | v2.SystemPrompt | None
    ) -> SystemPromptGiven | None:
        """Check the client's instructions before the session is changed.

        Raises:
            InvalidInputError: they cannot be applied.
        """
        if prompt is None:
            return None
        texts = [text for block in prompt.content if (text := self._text(block)) is not None]
        if len(texts) < len(prompt.content):
            raise InvalidInputError(
                "systemPrompt.content: only text blocks are supported", field="systemPrompt.content"
            )
        return await self.operations.system_prompt(prompt.mode, texts)

    @abstractmethod
    def _text(self, block: Any) -> str | None:
        """Return the text of a content block; None for a block of another type."""

    def _open_reply(
        self, session: Session, servers: Sequence[ServerConfig], **fields: str
    ) -> Reply:
        """Return the response to a request that opens a session, and what follows it."""
        return Reply({**fields, **self._settings(session)}, lambda: self._start(session, servers))

    @abstractmethod
    def _settings(self, session: Session) -> Json:
        """Return what the response of a request that opens a session says of it."""

    def _start(self, session: Session, servers: Sequence[ServerConfig]) -> None:
        """Start what must follow the response."""
        connection = self.client.connection
        session.opened(
            servers,
            self.prompt_modules,
            lambda: connection.answering > 0 and not self._has_prompt,
        )

    # -- other requests --------------------------------------------------------------------

    async def list(self, request: v1.ListSessionsRequest | v2.ListSessionsRequest, _: Call) -> Json:
        """List the sessions (Session List)."""
        from acp_agent.server.conversion import format_timestamp  # noqa: PLC0415 - for lists only

        page = await self.operations.list(request.cwd, request.cursor, request.archived)
        sessions = [
            {
                "sessionId": record.id,
                "cwd": record.cwd,
                "additionalDirectories": list(record.directories),
                **({} if record.title is None else {"title": record.title}),
                "updatedAt": format_timestamp(record.updated_at),
                "archived": record.archived,
            }
            for record in page.sessions
        ]
        cursor_field = {} if page.next_cursor is None else {"nextCursor": page.next_cursor}
        return {"sessions": sessions, **cursor_field}

    async def delete(
        self, request: v1.DeleteSessionRequest | v2.DeleteSessionRequest, _: Call
    ) -> Json:
        """Delete a session. Does nothing if it does not exist (Session Delete)."""
        await self.operations.delete(request.session_id)
        return {}

    async def close(
        self, request: v1.CloseSessionRequest | v2.CloseSessionRequest, _: Call
    ) -> Json:
        """Close a session and stop its work (Session Setup, Closing Sessions)."""
        await self.operations.close(request.session_id)
        return {}

    @cached_property
    def prompts(self) -> Prompts:
        """What submits the client's prompts."""
        self._has_prompt = True
        from acp_agent.server.prompts import Prompts  # noqa: PLC0415 - not to open a session

        return Prompts(self.operations)

    async def cancel(
        self, notification: v1.CancelNotification | v2.CancelSessionNotification
    ) -> None:
        """Cancel the turn (v1: Prompt Turn; v2: Prompt Lifecycle).

        A coroutine, so that it starts after the requests that were sent before it.
        """
        self.operations.cancel(notification.session_id)

    async def set_config_option(
        self, request: v1.SetSessionConfigOptionRequest | v2.SetSessionConfigOptionRequest, _: Call
    ) -> Json:
        """Set an option and return all of them (Session Config Options)."""
        session_id, option, value = self._option_value(request)
        session = await self.operations.change(
            session_id, lambda session: session.set_option(option, value)
        )
        return {"configOptions": self._settings(session)["configOptions"]}

    @abstractmethod
    def _option_value(self, request: Any) -> tuple[str, str, str]:
        """Return the session, the option and the value of a request.

        Raises:
            InvalidInputError: none of our options takes a value of this type.
        """
