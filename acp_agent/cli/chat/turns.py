"""What the user says, and what becomes of it: a turn, part of the one that runs, or the next."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from acp_agent.cli.chat.agent import Agent
from acp_agent.cli.chat.front import Front, How
from acp_agent.cli.chat.mentions import content_blocks
from acp_agent.cli.chat.state import SessionState
from acp_agent.cli.localization import translate, translate_rendered
from protocol.jsonrpc.errors import AUTH_REQUIRED, RpcError
from protocol.v1 import types as acp


class Prompt(Struct, frozen=True):
    """What is said to the agent: the user's words, and texts that go along with them."""

    text: str
    along: Sequence[str] = ()


class Turns:
    """The prompts of a session.

    Args:
        front: shows what becomes of them.
        agent: the agent as it is now; None while there is none.
        state: the session as it is now.
        ended: called when no turn runs any more, before the front is told.
        along: takes what goes along with the prompt that is said next.
        cwd: the folder that mentioned files are relative to.

    Attributes:
        queue: prompts that wait for the turn to end.
        cancelling: whether the turn that runs was asked to stop.
    """

    def __init__(
        self,
        front: Front,
        *,
        agent: Callable[[], Agent | None],
        state: Callable[[], SessionState],
        ended: Callable[[], None],
        along: Callable[[], Sequence[str]],
        cwd: Path,
    ) -> None:
        self.queue: deque[Prompt] = deque()
        self.cancelling = False
        self._front = front
        self._agent = agent
        self._state = state
        self._ended = ended
        self._along = along
        self._cwd = cwd
        self._running = 0  # prompts that are not answered yet
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> bool:
        """Whether a turn runs."""
        return self._running > 0

    def submit(self, text: str) -> None:
        """Say something to the agent: a turn, or a part of the one that runs, or the next one."""
        agent = self._agent()
        # Commands take nothing along: they are not for the model.
        prompt = Prompt(text, () if text.startswith("/") else self._along())
        if agent is None or not self._state().id:
            self._wait(prompt, "early")
        elif not self.busy or (text.startswith("/") and agent.answers_meanwhile):
            self._said(prompt, "sent")
            self._prompt(agent, prompt)
        elif agent.steers and not text.startswith("/"):
            self._spawn(self._steer(agent, prompt))
        else:
            self._wait(prompt)

    async def correct(self, text: str) -> None:
        """Send what the agent should do instead of a call, in this turn if it can be steered."""
        agent = self._agent()
        prompt = Prompt(text, self._along())
        if agent is not None and agent.steers:
            await self._steer(agent, prompt)
        else:
            self._wait(prompt)

    def cancel(self) -> bool:
        """Stop the turn; whether there is one that was not asked to stop before."""
        agent = self._agent()
        if not self.busy or self.cancelling or agent is None:
            return False
        self.cancelling = True
        agent.cancel(self._state().id)
        self._front.changed()
        return True

    def unqueue(self) -> str | None:
        """Take the prompt back that waits and came last."""
        prompt = self.queue.pop() if self.queue else None
        self._front.changed()
        return None if prompt is None else prompt.text

    def _wait(self, prompt: Prompt, how: Literal["queued", "early"] = "queued") -> None:
        self.queue.append(prompt)
        self._said(prompt, how)
        self._front.changed()

    def _prompt(self, agent: Agent, prompt: Prompt) -> None:
        if not self._running:
            self._front.turn_began()
        self._running += 1
        self._state().prompted = True
        self._spawn(self._turn(agent, prompt))

    async def _turn(self, agent: Agent, prompt: Prompt) -> None:
        reason = ""
        try:
            blocks = await self._blocks(agent, prompt)
            reason = (await agent.prompt(self._state().id, blocks)).stop_reason
        except RpcError as error:
            self._front.say(translate_rendered(error.message), "bad")
            if error.code == AUTH_REQUIRED and self._agent() is not None:
                self._front.say(translate("/login chooses a way to log in."), "warning")
        except ConnectionError:
            self._front.say(translate("The turn ended with the agent."), "warning")
        finally:
            self._running -= 1
            if not self._running:
                self.cancelling = False
                self._ended()
                by_agent = agent.tells_stop_reasons and reason != "cancelled"
                self._front.turn_ended(reason, told=by_agent)
        self.go_on()

    async def _steer(self, agent: Agent, prompt: Prompt) -> None:
        session = self._state().id
        try:
            blocks = await self._blocks(agent, prompt)
            outcome = await agent.steer(session, blocks)
        except RpcError as error:
            self._front.say(translate_rendered(error.message), "bad")
            return
        except (ConnectionError, TimeoutError):
            self._wait(prompt)
            return
        if outcome == "injected":
            self._said(prompt, "steered")
        else:  # the turn ended meanwhile
            self._wait(prompt)
            self.go_on()

    def go_on(self) -> None:
        """Send the prompt that waits, once nothing runs and there is a session."""
        agent = self._agent()
        if self.queue and not self.busy and agent is not None and self._state().id:
            prompt = self.queue.popleft()
            self._said(prompt, "sent")
            self._prompt(agent, prompt)
        self._front.changed()

    def _said(self, prompt: Prompt, how: How) -> None:
        self._front.said(prompt.text, how)
        if prompt.along and how in {"sent", "steered"}:
            self._front.say(translate("(with what your own commands printed)"), "dim")

    async def settled(self) -> None:
        """Wait until the prompts are answered or have failed that were sent so far."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def aclose(self) -> None:
        """Wait for no answer any more."""
        self.queue.clear()
        for task in self._tasks:
            task.cancel()
        await self.settled()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _blocks(self, agent: Agent, prompt: Prompt) -> list[acp.ContentBlock]:
        blocks = await asyncio.to_thread(
            content_blocks, prompt.text, self._cwd, images=agent.takes_images
        )
        return [*blocks, *(acp.TextContent(text=text) for text in prompt.along)]


def how_said(how: How) -> str:
    """What became of the words, for people; empty where they began a turn."""
    if how == "steered":
        return translate("(added to the turn that runs)")
    if how == "early":
        return translate("(waits for the agent)")
    return translate("(waits for the turn to end)") if how == "queued" else ""


def stop_reason(reason: str) -> str:
    """Why a turn ended, for people."""
    return {
        "cancelled": translate("The turn was cancelled."),
        "refusal": translate("The prompt was refused."),
        "max_tokens": translate("The answer reached the limit of tokens."),
        "max_turn_requests": translate("The turn reached the limit of requests."),
    }.get(reason, reason)
