"""Drives an agent over version 2, with what the tests need most.

    running = await agent(*MODEL, editor=EditorV2(), environ=server.environ())
    client = V2Client(running)
    await client.initialize()
    session = await client.new_session(repository)
    ended = await client.prompt(session, "edit the greeting")   # waits until the agent is idle
    assert ended["stopReason"] == "end_turn"
    client.view(session).text(), .calls, .terminals, .plans     # what a client would show
    await client.resume(session, repository, replay=True)

All requests are held to the schema before they are sent. What is not here goes through the
`WireClient` itself: `running.request("session/fork", {...}, checked=True)`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic

from typing_extensions import TypeVar  # typing has no defaults before Python 3.13

from tests.support.agent_process import AgentProcess
from tests.support.framing import Json
from tests.support.v2_view import SessionView
from tests.support.wire_client import WireClient

INFO = {"name": "test-editor", "version": "1.0"}
Wire = TypeVar("Wire", bound=WireClient, default=AgentProcess)


class V2Client(Generic[Wire]):
    """A well-behaved client of version 2."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self._views: dict[str, SessionView] = {}
        self._applied = 0

    # --- opening

    async def initialize(self, **params: Any) -> Json:
        """`initialize`; its result. Fails where the agent does not answer with version 2."""
        offer = {"protocolVersion": 2, "info": INFO, "capabilities": self.wire.editor.capabilities}
        result = await self.wire.request("initialize", offer | params, checked=True)
        assert isinstance(result, dict)
        assert result["protocolVersion"] == 2, result
        return result

    async def new_session(self, cwd: Path, **params: Any) -> str:
        """`session/new`; the session's id."""
        result = await self.wire.request("session/new", {"cwd": str(cwd)} | params, checked=True)
        name = result["sessionId"]
        assert isinstance(name, str)
        self._take_opening(name, result)
        return name

    async def resume(
        self, session: str, cwd: Path, *, replay: bool = False, **params: Any
    ) -> SessionView:
        """`session/resume`; the view of what came since, empty before it."""
        self.view(session)
        self._views[session] = SessionView()
        given: Json = {"sessionId": session, "cwd": str(cwd)} | params
        if replay:
            given["replayFrom"] = {"type": "start"}
        result = await self.wire.request("session/resume", given, checked=True)
        self._take_opening(session, result)
        return self.view(session)

    async def close(self, session: str) -> None:
        """`session/close`."""
        await self.wire.request("session/close", {"sessionId": session}, checked=True)

    # --- working

    def post_prompt(self, session: str, *content: str | Json) -> int:
        """`session/prompt` without waiting; the request's id."""
        blocks = [{"type": "text", "text": c} if isinstance(c, str) else c for c in content]
        params = {"sessionId": session, "prompt": blocks}
        return self.wire.post("session/prompt", params, checked=True)

    async def said(self, prompt: int, *, timeout: float = 60.0) -> str:
        """Wait until a prompt's words are in the conversation; their message's id.

        Raises:
            AnswerError: they never will be.
        """
        message = (await self.wire.result(prompt, timeout=timeout))["messageId"]
        assert isinstance(message, str)
        return message

    async def idle(self, session: str, message: str, *, timeout: float = 60.0) -> Json:
        """Wait for the end of the work that a message of the user's is part of; the idle update."""
        seen = False

        def ends(one: Json) -> bool:
            nonlocal seen
            if one.get("method") != "session/update" or one["params"]["sessionId"] != session:
                return False
            update = one["params"]["update"]
            if update["sessionUpdate"] in {"user_message", "user_message_chunk"}:
                seen = seen or update["messageId"] == message
            return seen and update["sessionUpdate"] == "state_update" and update["state"] == "idle"

        update = (await self.wire.expect(ends, timeout=timeout))["params"]["update"]
        assert isinstance(update, dict)
        return update

    async def prompt(self, session: str, *content: str | Json, timeout: float = 60.0) -> Json:
        """Say something and wait until the agent is idle; the idle update with its stop reason."""
        message = await self.said(self.post_prompt(session, *content), timeout=timeout)
        return await self.idle(session, message, timeout=timeout)

    def cancel(self, session: str) -> None:
        """`session/cancel`."""
        self.wire.notify("session/cancel", {"sessionId": session}, checked=True)

    async def cancel_call(self, session: str, call: str) -> None:
        """`tool_call/cancel`."""
        params = {"sessionId": session, "toolCallId": call}
        await self.wire.request("tool_call/cancel", params, checked=True)

    async def cancel_terminal(self, session: str, terminal: str) -> None:
        """`terminal/cancel`."""
        params = {"sessionId": session, "terminalId": terminal}
        await self.wire.request("terminal/cancel", params, checked=True)

    # --- looking

    def view(self, session: str) -> SessionView:
        """What a client would show of a session by now."""
        for message in self.wire.messages[self._applied :]:
            if message.get("method") == "session/update":
                params = message["params"]
                self._views.setdefault(params["sessionId"], SessionView()).apply(params["update"])
        self._applied = len(self.wire.messages)
        return self._views.setdefault(session, SessionView())

    async def expect_view(
        self, session: str, holds: Callable[[SessionView], bool], *, timeout: float = 60.0
    ) -> SessionView:
        """The view of a session, as soon as `holds` is true of it."""
        if not holds(self.view(session)):
            await self.wire.expect(lambda _: holds(self.view(session)), timeout=timeout)
        return self.view(session)

    async def expect_update(
        self,
        session: str,
        kind: str,
        holds: Callable[[Json], bool] = lambda _: True,
        *,
        timeout: float = 60.0,
    ) -> Json:
        """The first update of this kind for which `holds` is true, when it is there."""
        return await self.wire.expect_update(session, kind, holds, timeout=timeout)

    def _take_opening(self, session: str, result: Json) -> None:
        view = self.view(session)
        view.options = view.options or result.get("configOptions") or []
        view.commands = view.commands or result.get("availableCommands") or []
