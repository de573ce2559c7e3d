"""What a client does with sessions, in the same words for every protocol version.

A driver sends what its version calls for, and gives back what can be compared: how work ended, and
what a session has shown. `tests/server/test_server_statemachine_sessions.py` is written in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct, field

from tests.support.editor import Editor
from tests.support.framing import Json
from tests.support.oracle_rules import offered
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2
from tests.support.v2_view import SessionView
from tests.support.wire_client import AnswerError, WireClient

CANCELLED = -32800
_FINAL = {"completed", "failed", "cancelled"}


class Shown(Struct):
    """What a client saw of a conversation: texts by message, in order, and how calls ended.

    `cut` are calls whose end it did not see.
    """

    said: list[str] = field(default_factory=list)  # by the user
    agent: dict[str, str] = field(default_factory=dict)
    calls: dict[str, str] = field(default_factory=dict)

    @property
    def cut(self) -> set[str]:
        """The calls whose end was not shown."""
        return {call for call, status in self.calls.items() if status not in _FINAL}


class Work(Struct):
    """A prompt that was sent: its request, and its message once that is known."""

    session: str
    request: int
    message: str | None = None


class SessionDriver(ABC):
    """A client of one version on one connection."""

    version: int
    echoes = False  # whether the user's words are shown live
    choice: ClassVar[Json] = {}  # what goes with the value of an option

    def __init__(self, wire: WireClient) -> None:
        self.wire = wire
        self.capabilities: Json = {}

    @abstractmethod
    async def start(self) -> None:
        """Initialize the connection."""

    @abstractmethod
    def supports(self, name: str) -> bool:
        """Whether the agent advertises this capability of sessions."""

    @abstractmethod
    async def new(self, cwd: Path) -> str:
        """Start a session; its id."""

    @abstractmethod
    async def open(self, session: str, cwd: Path, *, replay: bool) -> None:
        """Open a session of the store; what it showed so far is forgotten."""

    @abstractmethod
    def post(self, session: str, words: str) -> Work:
        """Say something, and wait for nothing."""

    @abstractmethod
    async def inserted(self, work: Work) -> None:
        """Wait until the words are in the conversation, as far as the version tells."""

    @abstractmethod
    async def end(self, work: Work, *, within: float = 60.0) -> str:
        """Wait for the end; a stop reason, or `error`."""

    @abstractmethod
    async def printed(self, session: str, text: str) -> None:
        """Wait until a command has shown this text."""

    @abstractmethod
    def shown(self, session: str) -> Shown:
        """What the session has shown since it was opened."""

    async def ask(self, method: str, **params: Any) -> Json:
        """Any request; its result."""
        result = await self.wire.request(method, params, checked=True)
        assert isinstance(result, dict)
        return result

    def cancel(self, session: str) -> None:
        """Stop what runs in a session."""
        self.wire.notify("session/cancel", {"sessionId": session}, checked=True)

    async def stop_command(self, session: str, *, by_terminal: bool) -> None:
        """Stop the command that runs, and nothing else."""
        raise NotImplementedError(f"version {self.version} stops whole turns only")

    def cancel_request(self, work: Work) -> None:
        """Stop a request."""
        self.wire.notify("$/cancel_request", {"requestId": work.request}, checked=True)

    async def choose(self, session: str, option: str, value: str) -> list[Json]:
        """Set an option; all options."""
        params = {"sessionId": session, "configId": option, "value": value}
        result = await self.ask("session/set_config_option", **params | self.choice)
        options = result["configOptions"]
        assert isinstance(options, list)
        return options


class DriverV1(SessionDriver):
    """A client of version 1."""

    version = 1

    def __init__(self, wire: WireClient) -> None:
        super().__init__(wire)
        self._since: dict[str, int] = {}

    async def start(self) -> None:
        self.capabilities = (await self.wire.initialize())["agentCapabilities"]

    def supports(self, name: str) -> bool:
        return offered(self.capabilities, "sessionCapabilities", name)

    async def new(self, cwd: Path) -> str:
        return await self.wire.new_session(cwd)

    async def open(self, session: str, cwd: Path, *, replay: bool) -> None:
        self._since[session] = len(self.wire.updates(session))
        method = "session/load" if replay else "session/resume"
        await self.ask(method, sessionId=session, cwd=str(cwd), mcpServers=[])

    def post(self, session: str, words: str) -> Work:
        return Work(session, self.wire.post_prompt(session, words))

    async def inserted(self, work: Work) -> None:
        pass  # version 1 does not tell

    async def end(self, work: Work, *, within: float = 60.0) -> str:
        try:
            result = await self.wire.result(work.request, timeout=within)
        except AnswerError as error:
            return "cancelled" if error.code == CANCELLED else "error"
        return str(result["stopReason"])

    async def printed(self, session: str, text: str) -> None:
        await self.wire.expect_update(
            session, "tool_call_update", lambda update: text in _content(update)
        )

    def shown(self, session: str) -> Shown:
        shown = Shown()
        last = None
        for update in self.wire.updates(session)[self._since.get(session, 0) :]:
            kind, message = update["sessionUpdate"], update.get("messageId")
            if kind == "user_message_chunk":
                text = update["content"].get("text", "")
                if last == (kind, message):
                    shown.said[-1] += text
                else:
                    shown.said.append(text)
            elif kind in {"agent_message_chunk", "agent_thought_chunk"} and message is not None:
                text = update["content"].get("text", "")
                shown.agent[message] = shown.agent.get(message, "") + text
            elif kind in {"tool_call", "tool_call_update"}:
                known = shown.calls.get(update["toolCallId"], "pending")
                shown.calls[update["toolCallId"]] = update.get("status") or known
            last = (kind, message)
        return shown


class DriverV2(SessionDriver):
    """A client of version 2."""

    version = 2
    echoes = True
    choice: ClassVar[Json] = {"type": "id"}

    def __init__(self, wire: WireClient) -> None:
        super().__init__(wire)
        self._client = V2Client(wire)

    async def start(self) -> None:
        self.capabilities = (await self._client.initialize())["capabilities"]

    def supports(self, name: str) -> bool:
        return name in {"list", "close"} or offered(self.capabilities, "session", name)

    async def new(self, cwd: Path) -> str:
        return await self._client.new_session(cwd)

    async def open(self, session: str, cwd: Path, *, replay: bool) -> None:
        await self._client.resume(session, cwd, replay=replay)

    def post(self, session: str, words: str) -> Work:
        return Work(session, self._client.post_prompt(session, words))

    async def inserted(self, work: Work) -> None:
        work.message = await self._client.said(work.request)

    async def end(self, work: Work, *, within: float = 60.0) -> str:
        if work.message is None:
            try:
                work.message = await self._client.said(work.request, timeout=within)
            except AnswerError as error:
                return "cancelled" if error.code == CANCELLED else "error"
        update = await self._client.idle(work.session, work.message, timeout=within)
        return str(update["stopReason"])

    async def printed(self, session: str, text: str) -> None:
        def path_exists(view: SessionView) -> bool:
            return any(text.encode() in one.output for one in view.terminals.values())

        await self._client.expect_view(session, path_exists)

    async def stop_command(self, session: str, *, by_terminal: bool) -> None:
        view = self._client.view(session)
        if by_terminal:
            running = [name for name, one in view.terminals.items() if one.exit_status is None]
            await self._client.cancel_terminal(session, running[-1])
        else:
            await self._client.cancel_call(session, max(self.shown(session).cut))

    def shown(self, session: str) -> Shown:
        view: SessionView = self._client.view(session)
        messages = view.messages.values()
        return Shown(
            said=[one.text for one in messages if one.author == "user"],
            agent={one.id: one.text for one in messages if one.author != "user"},
            calls={name: str(call["status"]) for name, call in view.calls.items()},
        )


def _content(update: Json) -> str:
    """The text in what a call shows."""
    parts = [part.get("content", {}).get("text", "") for part in update.get("content") or ()]
    return "\n".join(parts)


DRIVERS: dict[int, tuple[type[SessionDriver], type[Editor]]] = {
    1: (DriverV1, Editor),
    2: (DriverV2, EditorV2),
}
