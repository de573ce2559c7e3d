"""The client of a replay: sends the user's prompts, and answers questions as the user did."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from acp_agent import __version__
from acp_agent.content import ContentBlock
from acp_agent.events import ConfigChanged, UserMessage
from acp_agent.ids import SessionId
from acp_agent.replay.script import MAIN, Call, Prompt, Script
from acp_agent.server.client_connection import ClientConnection
from acp_agent.server.core import Core
from acp_agent.server.session_tree import child_call_title
from acp_agent.server.stdio import surface_for
from acp_agent.server.v1.conversion import to_acp
from protocol.jsonrpc.connection import Connection
from protocol.jsonrpc.handlers import Call as RpcCall, Handler, Surface
from protocol.jsonrpc.messages import RpcError
from protocol.transports.stdio import StdioTransport
from protocol.v1 import methods, types as acp, unstable

TURN_SECONDS = 20.0  # no replayed turn waits for a user


class ReplayClient:
    """A client of protocol version 1 that follows a script."""

    def __init__(self, script: Script) -> None:
        self.session = SessionId("")
        self._recorded_calls = [call for call in script.calls if call.session == MAIN]
        self._child_questions = [call for call in script.calls if call.session and call.question]
        self._call_ids: list[str] = []  # ids of the replay's calls, in order
        self._titles: list[str] = []  # their titles
        self._ended_ids: set[str] = set()
        self._changed = asyncio.Event()
        self._steering: list[asyncio.Task[None]] = []
        self._connection: Connection

    @asynccontextmanager
    async def connected(self, core: Core) -> AsyncIterator[None]:
        """Connect to the server through a socket pair while the `with` block runs."""
        client_socket, server_socket = socket.socketpair()
        with client_socket, server_socket:
            server = ClientConnection(
                StdioTransport(server_socket.fileno(), server_socket.fileno()),
                core,
                surface_for,
                on_shutdown=core.close,
            )
            handlers: dict[str, Handler] = {
                methods.SESSION_UPDATE.name: self._receive_update,
                methods.REQUEST_PERMISSION.name: self._request_permission,
            }
            self._connection = Connection(
                StdioTransport(client_socket.fileno(), client_socket.fileno()),
                Surface(methods.CLIENT_METHODS, handlers),
            )
            serving = asyncio.create_task(server.run())
            listening = asyncio.create_task(self._connection.run())
            try:
                yield
            finally:
                await self._connection.close()
                client_socket.shutdown(socket.SHUT_RDWR)
                await asyncio.gather(serving, listening, return_exceptions=True)

    async def open(self, folder: Path) -> None:
        """Create the session."""
        capabilities = acp.ClientCapabilities(
            session=acp.ClientSessionCapabilities(notices=acp.NoticeCapabilities())
        )
        client_info = acp.Implementation(name="acp-agent-replay", version=__version__)
        await self._connection.request(
            methods.INITIALIZE,
            acp.InitializeRequest(
                protocol_version=1, client_capabilities=capabilities, client_info=client_info
            ),
            timeout=TURN_SECONDS,
        )
        response = await self._connection.request(
            methods.SESSION_NEW,
            acp.NewSessionRequest(cwd=str(folder), mcp_servers=[]),
            timeout=TURN_SECONDS,
        )
        self.session = SessionId(response.session_id)

    async def set_option(self, change: ConfigChanged) -> None:
        """Set an option of the session, as the user did."""
        with contextlib.suppress(RpcError):  # a failure is a difference
            await self._connection.request(
                methods.SESSION_SET_CONFIG_OPTION,
                acp.SetSessionConfigOptionRequest(
                    session_id=self.session, config_id=change.option, value=change.value
                ),
                timeout=TURN_SECONDS,
            )

    async def say(self, prompt: Prompt) -> None:
        """Run a turn with a prompt. Raises TimeoutError if the turn does not end in time."""
        await self._prompt(prompt.content)
        await asyncio.gather(*self._steering)
        self._steering.clear()

    async def fork(self, folder: Path) -> SessionId:
        """Fork the session and continue in the fork."""
        response = await self._connection.request(
            unstable.SESSION_FORK,
            unstable.ForkSessionRequest(session_id=self.session, cwd=str(folder), mcp_servers=[]),
            timeout=TURN_SECONDS,
        )
        self.session = SessionId(response.session_id)
        return self.session

    async def reopen(self, folder: Path) -> None:
        """Close the session and open it again."""
        await self._connection.request(
            methods.SESSION_CLOSE,
            acp.CloseSessionRequest(session_id=self.session),
            timeout=TURN_SECONDS,
        )
        await self._connection.request(
            methods.SESSION_RESUME,
            acp.ResumeSessionRequest(session_id=self.session, cwd=str(folder), mcp_servers=[]),
            timeout=TURN_SECONDS,
        )

    async def steer(self, message: UserMessage) -> None:
        """Send a steering message; return when it is part of the current turn."""
        self._steering.append(asyncio.create_task(self._prompt(message.content)))
        await asyncio.sleep(0)  # send its request first
        await self._connection.request(
            methods.SESSION_LIST, acp.ListSessionsRequest(), timeout=TURN_SECONDS
        )

    async def _prompt(self, content: Sequence[ContentBlock]) -> None:
        blocks = [to_acp(block) for block in content]
        with contextlib.suppress(RpcError):  # the journal has the error
            await self._connection.request(
                methods.SESSION_PROMPT,
                acp.PromptRequest(session_id=self.session, prompt=blocks),
                timeout=TURN_SECONDS,
            )

    def cancel(self) -> None:
        """Stop the turn."""
        self._connection.notify(
            methods.SESSION_CANCEL, acp.CancelNotification(session_id=self.session)
        )

    async def stop(self, call: Call) -> None:
        """Stop the turn during a call as the user did, after the message's other calls ended."""
        concurrent_calls = [
            index
            for index, other in enumerate(self._recorded_calls)
            if other.event.message == call.event.message
            and other.end is not None
            and not other.end.cancelled
        ]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TURN_SECONDS / 2):
                while not all(
                    set(self._call_ids[index : index + 1]) & self._ended_ids
                    for index in concurrent_calls
                ):
                    self._changed.clear()
                    await self._changed.wait()
        self.cancel()

    def _receive_update(self, params: acp.SessionNotification) -> None:
        update = params.update
        if isinstance(update, acp.ToolCall):
            # A child's call that needs an answer is shown among those of the session.
            children = tuple(child_call_title(title, "") for title in self._titles)
            if not update.title.startswith(children):
                self._call_ids.append(update.tool_call_id)
                self._titles.append(update.title)
        elif isinstance(update, acp.ToolCallUpdate) and update.status in {"completed", "failed"}:
            self._ended_ids.add(update.tool_call_id)
            self._changed.set()

    async def _request_permission(
        self, params: acp.RequestPermissionRequest, _: RpcCall
    ) -> acp.RequestPermissionResponse:
        call = self._find_recorded(params.tool_call)
        decision = None if call is None else call.decision
        if call is not None and call.question is not None and decision is None:
            self.cancel()  # as the user did instead of answering
            await asyncio.Event().wait()
        if call is not None and call.question is None and call.started:
            allowed = _choose_option(params, "", allowed=True)  # the question is a difference
            if allowed is not None:
                outcome = acp.SelectedPermissionOutcome(option_id=allowed.option_id)
                return acp.RequestPermissionResponse(outcome=outcome)
        if call is None or call.question is None or decision is None:
            return acp.RequestPermissionResponse(outcome=acp.CancelledPermissionOutcome())
        if decision.by == "nobody" and decision.why == "not asked":
            raise RpcError(-32603, "The question was not asked.")
        option = _choose_option(params, decision.why, allowed=decision.allowed)
        if option is None or decision.why == "dismissed":
            return acp.RequestPermissionResponse(outcome=acp.CancelledPermissionOutcome())
        answer = acp.SelectedPermissionOutcome(option_id=option.option_id)
        if decision.by == "user":
            return acp.RequestPermissionResponse(outcome=answer)
        describe_decision = {"by": decision.by, "name": decision.name}
        return acp.RequestPermissionResponse(
            outcome=answer, meta={"acp-agent": {"decidedBy": describe_decision}}
        )

    def _find_recorded(self, update: acp.ToolCallUpdate) -> Call | None:
        """Return the recorded call that matches a call of the replay."""
        if update.tool_call_id in self._call_ids:
            index = self._call_ids.index(update.tool_call_id)
            return self._recorded_calls[index] if index < len(self._recorded_calls) else None
        # The calls of children are not counted, so their questions are matched by title.
        calls = self._child_questions
        same_title = [call for call in calls if (update.title or "").endswith(call.event.title)]
        match = next(iter([*same_title, *calls]), None)
        if match is not None:
            calls.remove(match)
        return match


def _choose_option(
    params: acp.RequestPermissionRequest, label: str, *, allowed: bool
) -> acp.PermissionOption | None:
    """Return the option with a label, or else the one that applies once."""
    kind = "allow_once" if allowed else "reject_once"
    options = params.options
    labelled = next((option for option in options if option.name == label), None)
    return labelled or next((option for option in options if option.kind == kind), None)
