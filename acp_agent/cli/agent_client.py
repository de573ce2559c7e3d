"""A client of the protocol for the terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from msgspec import UNSET, Struct

from acp_agent.acp_client.process import EXIT_SECONDS, START_SECONDS, AgentChild
from acp_agent.platform.posix import self_command
from protocol.jsonrpc.handlers import Call, Handler
from protocol.v1 import methods, types as acp

OnUpdate = Callable[[acp.SessionUpdate], None]
OnPermission = Callable[["PermissionRequest"], Awaitable[acp.RequestPermissionResponse]]


class PermissionRequest(Struct, frozen=True):
    """A permission request, completed by earlier updates of its call."""

    title: str
    kind: str
    options: tuple[acp.PermissionOption, ...]
    request: acp.RequestPermissionRequest


async def start_acp_agent(
    flags: Sequence[str], handlers: Mapping[str, Handler], *, cwd: Path
) -> AgentChild:
    """Start `acp-agent` with `flags` and initialize it, as a client that shows text.

    Raises:
        RpcError: the agent refused.
        ConnectionError: the agent exited immediately.
        TimeoutError: the agent does not respond.
    """
    child = await AgentChild.start(self_command("acp", *flags), handlers, cwd=cwd)
    try:
        await child.initialize(
            acp.ClientCapabilities(
                session=acp.ClientSessionCapabilities(notices=acp.NoticeCapabilities()),
                meta={"terminal_output": True},
            )
        )
    except BaseException:
        await child.aclose()
        raise
    return child


class AgentSession:
    """A session of an agent that runs as a child process.

    Attributes:
        id: the session's ID; "" before it is open.
        show: receives its updates; None discards them.
    """

    def __init__(self, child: AgentChild, id_: str, show: OnUpdate | None = None) -> None:
        self.id = id_
        self.show = show
        self._child = child
        self._calls: dict[str, tuple[str, str]] = {}  # title and kind by ID
        self._display_error: OSError | None = None

    async def prompt(self, content: str | Sequence[acp.ContentBlock]) -> acp.PromptResponse:
        """Send a prompt and wait for the end of the turn.

        Raises:
            RpcError: the turn failed; the message says why.
            ConnectionError: the agent exited.
            OSError: the output could not be shown, so the turn was cancelled.
        """
        blocks = [acp.TextContent(text=content)] if isinstance(content, str) else list(content)
        answer = await self._child.connection.request(
            methods.SESSION_PROMPT, acp.PromptRequest(session_id=self.id, prompt=blocks)
        )
        if self._display_error is not None:
            raise self._display_error
        return answer

    def cancel(self) -> None:
        """Cancel the turn; its prompt is answered soon after."""
        self._child.connection.notify(
            methods.SESSION_CANCEL, acp.CancelNotification(session_id=self.id)
        )

    async def set_option(self, option: str, value: str) -> None:
        """Set a configuration option of the session. Raises RpcError."""
        await self.with_option(option, value)

    async def with_option(self, option: str, value: str) -> acp.SetSessionConfigOptionResponse:
        """Set an option; return all options. Raises RpcError."""
        return await self._child.connection.request(
            methods.SESSION_SET_CONFIG_OPTION,
            acp.SetSessionConfigOptionRequest(session_id=self.id, config_id=option, value=value),
            timeout=START_SECONDS,
        )

    def receive_update(self, update: acp.SessionUpdate) -> None:
        """Handle an update of the session."""
        if isinstance(update, acp.ToolCall):
            kind = "other" if update.kind is UNSET else update.kind
            self._calls[update.tool_call_id] = (update.title, kind)
        if self.show is None:
            return
        try:
            self.show(update)
        except OSError as error:
            self._stop_showing(error)

    async def request_permission(
        self, params: acp.RequestPermissionRequest, answer: OnPermission
    ) -> acp.RequestPermissionResponse:
        """Answer a permission request; refuse it if it cannot be shown."""
        call = params.tool_call
        title, kind = self._calls.get(call.tool_call_id, (call.tool_call_id, "other"))
        request = PermissionRequest(
            title=call.title or title,
            kind=call.kind or kind,
            options=tuple(params.options),
            request=params,
        )
        try:
            return await answer(request)
        except OSError as error:
            self._stop_showing(error)
            return acp.RequestPermissionResponse(outcome=acp.CancelledPermissionOutcome())

    def _stop_showing(self, error: OSError) -> None:
        """Cancel the turn because its output has no reader; `prompt` then raises `error`."""
        if self._display_error is None:
            self._display_error = error
            self.cancel()


class AgentClient(AgentSession):
    """A session with its own agent process.

    Create it with `start`, `open` the session, `prompt` in it, and end the agent with `aclose`.
    """

    @classmethod
    async def start(
        cls, flags: Sequence[str], *, cwd: Path, on_update: OnUpdate, on_permission: OnPermission
    ) -> Self:
        """Start `acp-agent` with `flags` and initialize it.

        Raises:
            RpcError: the agent refused.
            ConnectionError: the agent exited immediately.
            TimeoutError: the agent does not respond.
        """

        def receive_update(params: acp.SessionNotification) -> None:
            if params.session_id in {"", client.id}:
                client.receive_update(params.update)

        async def request_permission(
            params: acp.RequestPermissionRequest, _: Call
        ) -> acp.RequestPermissionResponse:
            return await client.request_permission(params, on_permission)

        handlers: Mapping[str, Handler] = {
            methods.SESSION_UPDATE.name: receive_update,
            methods.REQUEST_PERMISSION.name: request_permission,
        }
        client = cls(await start_acp_agent(flags, handlers, cwd=cwd), "", on_update)
        return client

    async def open(self, cwd: Path, *, resume: str | None = None) -> None:
        """Create a session in `cwd`, or resume one.

        Raises:
            RpcError: the agent refused, for instance because no model is configured (-32000).
        """
        if resume is not None:
            await self._child.connection.request(
                methods.SESSION_RESUME,
                acp.ResumeSessionRequest(session_id=resume, cwd=str(cwd)),
                timeout=START_SECONDS,
            )
            self.id = resume
            return
        response = await self._child.connection.request(
            methods.SESSION_NEW,
            acp.NewSessionRequest(cwd=str(cwd), mcp_servers=[]),
            timeout=START_SECONDS,
        )
        self.id = response.session_id

    async def delete(self) -> None:
        """Delete the session. Raises RpcError."""
        await self._child.connection.request(
            methods.SESSION_DELETE,
            acp.DeleteSessionRequest(session_id=self.id),
            timeout=START_SECONDS,
        )

    async def aclose(self, *, timeout: float = EXIT_SECONDS) -> None:
        """Close the connection, which ends the agent; kill it after `timeout` seconds."""
        await self._child.aclose(timeout=timeout)
