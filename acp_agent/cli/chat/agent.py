"""The agent that the chat talks to: started as a child process, spoken to in version 1."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from acp_agent.cli.agent_client import START_SECONDS, AgentChild
from acp_agent.cli.chat.agent_sessions import AgentSessions
from acp_agent.cli.chat.refusals import Refusals
from acp_agent.cli.chat.remains import Garbage, how_it_ended, what_it_wrote
from acp_agent.cli.localization import translate
from acp_agent.errors import AcpAgentError
from protocol.jsonrpc.call import Call, Handler
from protocol.jsonrpc.errors import RpcError
from protocol.jsonrpc.method import Method
from protocol.v1 import methods, types as acp

VERSION = 1
FAILURES = (RpcError, ConnectionError, TimeoutError)  # of whatever is asked of an agent

# What other agents answer, too (docs/extensions.md).
_STEERING: Method[acp.PromptRequest, dict[str, Any]] = Method(
    "_session/steering", acp.PromptRequest, dict
)


class AgentFailedError(AcpAgentError):
    """The agent could not be started, or ended by itself; the message says what it is."""


class Listener(Protocol):
    """Who hears what the agent says by itself, and answers what it asks."""

    def updated(self, params: acp.SessionNotification) -> None:
        """Something happened in a session."""

    async def permission(
        self, params: acp.RequestPermissionRequest, call: Call
    ) -> acp.RequestPermissionResponse:
        """A tool call may run, or not."""

    async def elicitation(
        self, params: acp.CreateElicitationRequest, call: Call
    ) -> acp.CreateElicitationResponse:
        """The user is asked something."""

    def elicitation_completed(self, params: acp.CompleteElicitationNotification) -> None:
        """What the user visited a page for is done."""

    def refused(self, told: str) -> None:
        """The agent asked what could not be read or answered; `told` says what, for people."""


class Agent:
    """A running agent, and what it said of itself.

    Attributes:
        capabilities: what it can do.
        sessions: what can be done with its sessions; there once it has shaken hands.
        auth_methods: the ways to get a usable model.
        name: what it calls itself, for people.
        command: what started it.
        garbage: what it wrote that is not the protocol.
        refusals: what it asked and did not get.
    """

    def __init__(
        self, command: Sequence[str], listener: Listener, *, patience: float = START_SECONDS
    ) -> None:
        self.command = tuple(command)
        self._patience = patience
        self.capabilities = acp.AgentCapabilities()
        self.sessions: AgentSessions
        self.auth_methods: Sequence[acp.AuthMethod] = ()
        self.name = ""
        self._steering = False
        self.garbage = Garbage()
        self.refusals = Refusals(listener.refused)
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
        """Start `command` and shake hands with it; every answer but a turn's has `timeout` seconds.

        Raises:
            AgentFailedError: it is no program, ends, does not answer, refuses, speaks another
                version, or what it writes is not the protocol.
        """
        agent = cls(command, listener, patience=timeout)
        handlers: dict[str, Handler] = {
            methods.SESSION_UPDATE.name: listener.updated,
            methods.REQUEST_PERMISSION.name: listener.permission,
            methods.ELICITATION_CREATE.name: listener.elicitation,
            methods.ELICITATION_COMPLETE.name: listener.elicitation_completed,
        }
        try:
            agent._child = await AgentChild.start(
                command, handlers, cwd=cwd, keep_stderr=True, trace=agent._look
            )
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise AgentFailedError(
                translate(
                    "{program} cannot be started ({reason}); --agent takes the command of an agent",
                    program=command[0],
                    reason=reason,
                )
            ) from None
        try:
            await agent._shake_hands(timeout)
        except BaseException:
            await agent.aclose(patience=0.5)
            raise
        return agent

    def _look(self, direction: Literal["in", "out"], line: bytes) -> None:
        self.garbage.look(direction, line)
        self.refusals.look(direction, line)

    async def _shake_hands(self, timeout: float) -> None:
        try:
            said = await self._child.initialize(_CAPABILITIES, timeout=timeout)
        except ConnectionError:
            await self.aclose(patience=0.5)
            raise AgentFailedError(
                translate("the agent ended at its start: {how}", how=self.how_it_ended())
            ) from None
        except TimeoutError:
            seconds = f"{timeout:g}"
            message = translate("the agent did not answer within {seconds} s", seconds=seconds)
            raise AgentFailedError(f"{message}{what_it_wrote(self._child, self.garbage)}") from None
        except RpcError as error:
            raise AgentFailedError(
                translate("the agent refused the connection: {reason}", reason=error.message)
            ) from None
        if said.protocol_version != VERSION:
            raise AgentFailedError(
                translate(
                    "the agent speaks version {theirs} of the protocol, the chat version {ours}",
                    theirs=said.protocol_version,
                    ours=VERSION,
                )
            )
        self.capabilities = said.agent_capabilities
        self.sessions = AgentSessions(
            self._child.connection, self.capabilities, patience=self._patience
        )
        self.auth_methods = said.auth_methods
        if said.agent_info is not None:
            self.name = said.agent_info.title or said.agent_info.name
        self._steering = _supported(said.meta) or _supported(self.capabilities.meta)

    # --- what it can do

    @property
    def steers(self) -> bool:
        """Whether words can be added to a turn that runs."""
        return self._steering

    @property
    def answers_meanwhile(self) -> bool:
        """Whether commands that are prompted while a turn runs are answered at once."""
        return "whileRunning" in self._extensions

    @property
    def tells_stop_reasons(self) -> bool:
        """Whether it says by itself why a turn stopped, where the user did not stop it."""
        return self._extensions.get("tellsStopReasons") is True

    @property
    def _extensions(self) -> Mapping[str, Any]:
        ours = (self.capabilities.meta or {}).get("acp-agent")
        return ours if isinstance(ours, dict) else {}

    @property
    def takes_images(self) -> bool:
        """Whether a prompt may have pictures."""
        return self.capabilities.prompt_capabilities.image

    # --- turns

    async def prompt(self, session: str, prompt: Sequence[acp.ContentBlock]) -> acp.PromptResponse:
        """Prompt, and wait as long as the turn takes. Raises RpcError, ConnectionError."""
        return await self._child.connection.request(
            methods.SESSION_PROMPT, acp.PromptRequest(session_id=session, prompt=prompt)
        )

    async def steer(
        self, session: str, prompt: Sequence[acp.ContentBlock]
    ) -> Literal["injected", "no turn"]:
        """Add words to the turn that runs; `no turn` where none runs, and nothing was said.

        Raises:
            RpcError, ConnectionError, TimeoutError: it refuses, ends, or does not answer.
        """
        answer = await self._child.connection.request(
            _STEERING,
            acp.PromptRequest(
                session_id=session,
                prompt=prompt,
                meta={"steering": {"idleBehavior": "promptRequired"}},
            ),
            timeout=self._patience,
        )
        return "no turn" if answer.get("outcome") == "promptRequired" else "injected"

    def cancel(self, session: str) -> None:
        """Stop the turn; its prompt answers soon after."""
        self._child.connection.notify(
            methods.SESSION_CANCEL, acp.CancelNotification(session_id=session)
        )

    async def authenticate(self, method: str) -> None:
        """Log in by a method of the agent's, however long it takes. Raises RpcError."""
        await self._child.connection.request(
            methods.AUTHENTICATE, acp.AuthenticateRequest(method_id=method)
        )

    # --- its end

    async def wait_ended(self) -> None:
        """Wait until the connection is over."""
        await asyncio.wait([self._child.ended])

    async def aclose(self, *, patience: float) -> None:
        """End it, with its group; it gets `patience` seconds to end by itself."""
        await self._child.aclose(timeout=patience)

    def how_it_ended(self) -> str:
        """The exit status or signal, and the end of what it wrote, for people."""
        return how_it_ended(self._child, self.garbage)


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


def _supported(meta: Mapping[str, Any] | None) -> bool:
    steering = (meta or {}).get("steering")
    return isinstance(steering, dict) and steering.get("supported") is True
