"""The agent that the chat talks to: a child process that speaks version 1 of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, Self, TypeVar

from acp_agent.acp_client.process import START_SECONDS, AgentChild
from acp_agent.cli.chat.agent_failures import WireMonitor, exit_text, output_text
from acp_agent.cli.localization import translate
from acp_agent.errors import AcpAgentError
from protocol.jsonrpc.connection import Connection
from protocol.jsonrpc.handlers import Call, Handler
from protocol.jsonrpc.messages import RpcError
from protocol.jsonrpc.methods import Method
from protocol.v1 import methods, types as acp, unstable

VERSION = 1
_RESOURCES_SECONDS = 2.0  # while the user types
FAILURES = (RpcError, ConnectionError, TimeoutError)  # of any request to an agent
SessionMethod = Literal["load", "resume", "list", "fork", "rename", "delete", "close"]

# An extension that other agents support too (docs/extensions.md).
_STEERING: Method[acp.PromptRequest, dict[str, Any]] = Method(
    "_session/steering", acp.PromptRequest, dict
)
_RESOURCES: Method[dict[str, Any], dict[str, Any]] = Method("_acp-agent/resources/list", dict, dict)

_CAPABILITIES = acp.ClientCapabilities(
    session=acp.ClientSessionCapabilities(
        notices=acp.NoticeCapabilities(),
        config_options=acp.SessionConfigOptionsCapabilities(
            boolean=acp.BooleanConfigOptionCapabilities()
        ),
    ),
    auth=acp.AuthCapabilities(terminal=True),
    elicitation=acp.ElicitationCapabilities(
        form=acp.ElicitationFormCapabilities(), url=acp.ElicitationUrlCapabilities()
    ),
    meta={"terminal_output": True},
)

P = TypeVar("P")
R = TypeVar("R")


class AgentFailedError(AcpAgentError):
    """The agent could not be started, or exited; the message says why."""


class Listener(Protocol):
    """Receives what the agent sends, and answers its requests."""

    def receive_update(self, params: acp.SessionNotification) -> None:
        """Handle an update of a session."""

    async def permission(
        self, params: acp.RequestPermissionRequest, call: Call
    ) -> acp.RequestPermissionResponse:
        """Decide whether a tool call may run."""

    async def elicitation(
        self, params: acp.CreateElicitationRequest, call: Call
    ) -> acp.CreateElicitationResponse:
        """Ask the user something."""

    def elicitation_completed(self, params: acp.CompleteElicitationNotification) -> None:
        """Handle the completion of a page by the user."""

    def request_failed(self, text: str) -> None:
        """Report a request of the agent that was invalid or could not be answered."""


class Agent:
    """A running agent. Create it with `start`, end it with `aclose`.

    Attributes:
        can_steer: whether a message can be added to a running turn.
        answers_while_running: whether it answers slash commands immediately during a turn.
        explains_stop: whether it shows why a turn stopped that the user did not stop.
        lists_resources: whether it can list the resources that a prompt can mention.
        accepts_images: whether a prompt may contain images.
        monitor: detects errors in the protocol messages.
    """

    def __init__(self, command: Sequence[str], listener: Listener, *, timeout: float) -> None:
        self.command = tuple(command)
        self.name = ""
        self.auth_methods: Sequence[acp.AuthMethod] = ()
        self.sessions: AgentSessions
        self.can_steer = False
        self.answers_while_running = False
        self.explains_stop = False
        self.lists_resources = False
        self.accepts_images = False
        self.monitor = WireMonitor(listener.request_failed)
        self._timeout = timeout
        self._child: AgentChild

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        listener: Listener,
        *,
        cwd: Path,
        timeout: float = START_SECONDS,
    ) -> Self:
        """Start `command` and initialize it. `timeout` applies to each response except a turn's.

        Raises:
            AgentFailedError: the program does not exist, or is not a usable agent.
        """
        agent = cls(command, listener, timeout=timeout)
        handlers: dict[str, Handler] = {
            methods.SESSION_UPDATE.name: listener.receive_update,
            methods.REQUEST_PERMISSION.name: listener.permission,
            methods.ELICITATION_CREATE.name: listener.elicitation,
            methods.ELICITATION_COMPLETE.name: listener.elicitation_completed,
        }
        try:
            agent._child = await AgentChild.start(
                command, handlers, cwd=cwd, keep_stderr=True, trace=agent.monitor.trace
            )
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise AgentFailedError(
                translate(
                    "cannot start {program}: {reason}; --command needs the command line of an "
                    "agent",
                    program=command[0],
                    reason=reason,
                )
            ) from None
        try:
            agent._read_capabilities(await agent._initialize())
        except BaseException:
            await agent.aclose(timeout=0.5)
            raise
        return agent

    async def _initialize(self) -> acp.InitializeResponse:
        try:
            response = await self._child.initialize(_CAPABILITIES, timeout=self._timeout)
        except ConnectionError:
            await self.aclose(timeout=0.5)
            raise AgentFailedError(
                translate("the agent exited while starting: {how}", how=self.exit_text())
            ) from None
        except TimeoutError:
            seconds = f"{self._timeout:g}"
            message = translate("the agent did not answer within {seconds} s", seconds=seconds)
            output = output_text(self._child, self.monitor.invalid_line)
            raise AgentFailedError(message + output) from None
        except RpcError as error:
            raise AgentFailedError(
                translate("the agent refused the connection: {reason}", reason=error.message)
            ) from None
        if response.protocol_version != VERSION:
            raise AgentFailedError(
                translate(
                    "the agent speaks version {theirs} of the protocol, the chat version {ours}",
                    theirs=response.protocol_version,
                    ours=VERSION,
                )
            )
        return response

    def _read_capabilities(self, response: acp.InitializeResponse) -> None:
        capabilities = response.agent_capabilities
        meta = capabilities.meta or {}
        extensions = meta.get("acp-agent")
        extensions = extensions if isinstance(extensions, dict) else {}
        self.can_steer = _can_steer(response.meta) or _can_steer(meta)
        self.answers_while_running = "whileRunning" in extensions
        self.explains_stop = extensions.get("tellsStopReasons") is True
        extension_methods = extensions.get("methods")
        self.lists_resources = (
            isinstance(extension_methods, list) and _RESOURCES.name in extension_methods
        )
        self.accepts_images = capabilities.prompt_capabilities.image
        self.auth_methods = response.auth_methods
        if response.agent_info is not None:
            self.name = response.agent_info.title or response.agent_info.name
        self.sessions = AgentSessions(self._child.connection, capabilities, timeout=self._timeout)

    async def prompt(self, session: str, prompt: Sequence[acp.ContentBlock]) -> acp.PromptResponse:
        """Send a prompt and wait for the end of the turn. Raises RpcError, ConnectionError."""
        return await self._child.connection.request(
            methods.SESSION_PROMPT, acp.PromptRequest(session_id=session, prompt=prompt)
        )

    async def steer(
        self, session: str, prompt: Sequence[acp.ContentBlock]
    ) -> Literal["injected", "no turn"]:
        """Add a message to the running turn; return `no turn` if none runs.

        Raises:
            RpcError, ConnectionError, TimeoutError: the agent refuses, exits or does not answer.
        """
        answer = await self._child.connection.request(
            _STEERING,
            acp.PromptRequest(
                session_id=session,
                prompt=prompt,
                meta={"steering": {"idleBehavior": "promptRequired"}},
            ),
            timeout=self._timeout,
        )
        return "no turn" if answer.get("outcome") == "promptRequired" else "injected"

    async def resources(self, session: str, typed: str) -> list[tuple[str, str]]:
        """Return the MCP resources that a prompt can mention, with descriptions.

        A space follows each mention to which nothing is to be added.

        Raises:
            RpcError, ConnectionError, TimeoutError: the agent refuses, exits or does not answer.
        """
        if not self.lists_resources:
            return []
        answer = await self._child.connection.request(
            _RESOURCES, {"sessionId": session, "typed": typed}, timeout=_RESOURCES_SECONDS
        )
        resources = answer.get("resources")
        return [
            (
                f"{resource['mention']}{'' if resource.get('incomplete') else ' '}",
                str(resource.get("name", "")),
            )
            for resource in (resources if isinstance(resources, list) else [])
            if isinstance(resource, dict) and "mention" in resource
        ]

    def cancel(self, session: str) -> None:
        """Cancel the turn; its prompt is answered soon after."""
        self._child.connection.notify(
            methods.SESSION_CANCEL, acp.CancelNotification(session_id=session)
        )

    async def authenticate(self, method: str) -> None:
        """Log in by a method of the agent, without a time limit. Raises RpcError."""
        await self._child.connection.request(
            methods.AUTHENTICATE, acp.AuthenticateRequest(method_id=method)
        )

    async def wait_ended(self) -> None:
        """Wait until the connection is closed."""
        await asyncio.wait([self._child.ended])

    async def aclose(self, *, timeout: float) -> None:
        """End the agent and its process group; it has `timeout` seconds to exit by itself."""
        await self._child.aclose(timeout=timeout)

    def exit_text(self) -> str:
        """Return the exit status or signal, and the end of its output, as text."""
        return exit_text(self._child, self.monitor.invalid_line)


class AgentSessions:
    """Requests about sessions. Every method raises RpcError, ConnectionError, TimeoutError.

    Args:
        capabilities: those of the agent; methods that are false in `can` must not be called.
        timeout: seconds for each response.
    """

    def __init__(
        self, connection: Connection, capabilities: acp.AgentCapabilities, *, timeout: float
    ) -> None:
        self._connection = connection
        self._timeout = timeout
        session_capabilities = capabilities.session_capabilities
        self.can: dict[SessionMethod, bool] = {
            "load": capabilities.load_session,
            "resume": session_capabilities.resume is not None,
            "list": session_capabilities.list is not None,
            "fork": session_capabilities.fork is not None,
            "rename": session_capabilities.title is not None,
            "delete": session_capabilities.delete is not None,
            "close": session_capabilities.close is not None,
        }

    async def create(self, cwd: Path) -> acp.NewSessionResponse:
        """Create a session."""
        request = acp.NewSessionRequest(cwd=str(cwd), mcp_servers=[])
        return await self._request(methods.SESSION_NEW, request)

    async def load(self, session: str, cwd: Path) -> acp.LoadSessionResponse:
        """Open a session with a replay."""
        request = acp.LoadSessionRequest(session_id=session, cwd=str(cwd), mcp_servers=[])
        return await self._request(methods.SESSION_LOAD, request)

    async def resume(self, session: str, cwd: Path) -> acp.ResumeSessionResponse:
        """Open a session without a replay."""
        request = acp.ResumeSessionRequest(session_id=session, cwd=str(cwd))
        return await self._request(methods.SESSION_RESUME, request)

    async def fork(self, session: str, cwd: Path) -> unstable.ForkSessionResponse:
        """Create a copy of a session."""
        request = unstable.ForkSessionRequest(session_id=session, cwd=str(cwd))
        return await self._request(unstable.SESSION_FORK, request)

    async def rename(self, session: str, title: str) -> str:
        """Give a session a title; return the title that the agent stored."""
        request = unstable.SetSessionTitleRequest(session_id=session, title=title)
        return (await self._request(unstable.SESSION_SET_TITLE, request)).title

    async def delete(self, session: str) -> None:
        """Delete a session permanently."""
        request = acp.DeleteSessionRequest(session_id=session)
        await self._request(methods.SESSION_DELETE, request)

    async def close(self, session: str) -> None:
        """Close a session, if the agent supports it."""
        if self.can["close"]:
            request = acp.CloseSessionRequest(session_id=session)
            await self._request(methods.SESSION_CLOSE, request)

    async def list(self, cwd: Path, *, limit: int) -> list[acp.SessionInfo]:
        """Return the sessions of a folder, newest first."""
        sessions: list[acp.SessionInfo] = []
        cursor: str | None = None
        while len(sessions) < limit:
            request = acp.ListSessionsRequest(cwd=str(cwd), cursor=cursor)
            page = await self._request(methods.SESSION_LIST, request)
            sessions += page.sessions
            if page.next_cursor is None or not page.sessions or page.next_cursor == cursor:
                break
            cursor = page.next_cursor
        return sessions[:limit]

    async def set_option(self, session: str, option: str, value: str | bool) -> None:
        """Set a configuration option; the agent reports its options by an update."""
        request = acp.SetSessionConfigOptionRequest(
            session_id=session,
            config_id=option,
            value=value,
            type="boolean" if isinstance(value, bool) else None,
        )
        await self._request(methods.SESSION_SET_CONFIG_OPTION, request)

    async def set_mode(self, session: str, mode: str) -> None:
        """Set the mode of a session, for agents without options."""
        request = acp.SetSessionModeRequest(session_id=session, mode_id=mode)
        await self._request(methods.SESSION_SET_MODE, request)

    async def _request(self, method: Method[P, R], request: P) -> R:
        return await self._connection.request(method, request, timeout=self._timeout)


def _can_steer(meta: Mapping[str, Any] | None) -> bool:
    steering = (meta or {}).get("steering")
    return isinstance(steering, dict) and steering.get("supported") is True
