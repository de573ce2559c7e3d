"""The user's prompts. Each starts a turn, joins the running turn, or waits in a queue."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from acp_agent.cli.chat.agent import Agent
from acp_agent.cli.chat.frontend import Frontend, PromptStatus
from acp_agent.cli.chat.mentions import content_blocks
from acp_agent.cli.chat.session_state import SessionState
from acp_agent.cli.localization import translate, translate_rendered
from protocol.jsonrpc.messages import AUTH_REQUIRED, RpcError
from protocol.v1 import types as acp


class Prompt(Struct, frozen=True):
    """The user's text, and further texts for the model."""

    text: str
    shared: Sequence[str] = ()


class Turns:
    """The prompts of a session.

    Args:
        agent: returns the current agent; None if there is none.
        on_end: called when the last turn has ended, before the frontend.
        take_shared: returns the texts to send with the next prompt.
        cwd: the folder that mentioned files are relative to.

    Attributes:
        cancelling: whether the running turn was cancelled.
    """

    def __init__(
        self,
        frontend: Frontend,
        *,
        agent: Callable[[], Agent | None],
        state: Callable[[], SessionState],
        on_end: Callable[[], None],
        take_shared: Callable[[], Sequence[str]],
        cwd: Path,
    ) -> None:
        self.queue: deque[Prompt] = deque()
        self.cancelling = False
        self._frontend = frontend
        self._agent = agent
        self._state = state
        self._on_end = on_end
        self._take_shared = take_shared
        self._cwd = cwd
        self._running = 0  # prompts without a response
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> bool:
        """Return whether a turn runs."""
        return self._running > 0

    def submit(self, text: str) -> None:
        """Send a prompt, add it to the running turn, or queue it."""
        agent = self._agent()
        is_command = text.startswith("/")
        # Commands carry no shared texts, because they are not for the model.
        prompt = Prompt(text, () if is_command else self._take_shared())
        if agent is None or not self._state().id:
            self._enqueue(prompt, "early")
        elif not self.busy or (is_command and agent.answers_while_running):
            self._send(agent, prompt)
        elif agent.can_steer and not is_command:
            self._spawn(self._steer(agent, prompt))
        else:
            self._enqueue(prompt)

    async def send_instruction(self, text: str) -> None:
        """Send what the agent should do instead of a call, in this turn if it can be steered."""
        agent = self._agent()
        prompt = Prompt(text, self._take_shared())
        if agent is not None and agent.can_steer:
            await self._steer(agent, prompt)
        else:
            self._enqueue(prompt)

    def send_next(self) -> None:
        """Send the next queued prompt if no turn runs and a session is open."""
        agent = self._agent()
        if self.queue and not self.busy and agent is not None and self._state().id:
            self._send(agent, self.queue.popleft())
        self._frontend.refresh()

    def unqueue(self) -> str | None:
        """Remove the last prompt from the queue; return its text."""
        prompt = self.queue.pop() if self.queue else None
        self._frontend.refresh()
        return None if prompt is None else prompt.text

    def cancel(self) -> bool:
        """Cancel the running turn; return whether there was one that was not cancelled yet."""
        agent = self._agent()
        if not self.busy or self.cancelling or agent is None:
            return False
        self.cancelling = True
        agent.cancel(self._state().id)
        self._frontend.refresh()
        return True

    async def wait_until_answered(self) -> None:
        """Wait until every sent prompt is answered or has failed."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def aclose(self) -> None:
        """Discard every prompt."""
        self.queue.clear()
        for task in self._tasks:
            task.cancel()
        await self.wait_until_answered()

    def _enqueue(self, prompt: Prompt, status: Literal["queued", "early"] = "queued") -> None:
        self.queue.append(prompt)
        self._show(prompt, status)
        self._frontend.refresh()

    def _send(self, agent: Agent, prompt: Prompt) -> None:
        self._show(prompt, "sent")
        if not self._running:
            self._frontend.turn_started()
        self._running += 1
        self._state().prompted = True
        self._spawn(self._turn(agent, prompt))

    async def _turn(self, agent: Agent, prompt: Prompt) -> None:
        reason = ""
        try:
            blocks = await self._blocks(agent, prompt)
            reason = (await agent.prompt(self._state().id, blocks)).stop_reason
        except RpcError as error:
            self._frontend.say(translate_rendered(error.message), "bad")
            if error.code == AUTH_REQUIRED and self._agent() is not None:
                self._frontend.say(translate("Log in with /login."), "warning")
        except ConnectionError:
            self._frontend.say(translate("The turn failed: the agent exited."), "warning")
        finally:
            self._running -= 1
            if not self._running:
                self.cancelling = False
                self._on_end()
                explained = agent.explains_stop and reason != "cancelled"
                self._frontend.turn_ended(reason, explained=explained)
        self.send_next()

    async def _steer(self, agent: Agent, prompt: Prompt) -> None:
        session = self._state().id
        try:
            blocks = await self._blocks(agent, prompt)
            outcome = await agent.steer(session, blocks)
        except RpcError as error:
            self._frontend.say(translate_rendered(error.message), "bad")
            return
        except (ConnectionError, TimeoutError):
            self._enqueue(prompt)
            return
        if outcome == "injected":
            self._show(prompt, "steered")
        else:  # the turn has ended meanwhile
            self._enqueue(prompt)
            self.send_next()

    def _show(self, prompt: Prompt, status: PromptStatus) -> None:
        self._frontend.show_prompt(prompt.text, status)
        if prompt.shared and status in {"sent", "steered"}:
            self._frontend.say(translate("(with the output of your commands)"), "dim")

    async def _blocks(self, agent: Agent, prompt: Prompt) -> list[acp.ContentBlock]:
        blocks = await asyncio.to_thread(
            content_blocks, prompt.text, self._cwd, images=agent.accepts_images
        )
        return [*blocks, *(acp.TextContent(text=text) for text in prompt.shared)]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def status_text(status: PromptStatus) -> str:
    """Return when the agent receives a prompt, as text; empty if immediately."""
    return {
        "sent": "",
        "steered": translate("(added to the running turn)"),
        "early": translate("(waits for the agent)"),
        "queued": translate("(waits for the turn to end)"),
    }[status]


def stop_reason(reason: str) -> str:
    """Return why a turn ended, as text."""
    return {
        "cancelled": translate("The turn was cancelled."),
        "refusal": translate("The prompt was refused."),
        "max_tokens": translate("The answer reached the token limit."),
        "max_turn_requests": translate("The turn reached the limit of model requests."),
    }.get(reason, reason)
