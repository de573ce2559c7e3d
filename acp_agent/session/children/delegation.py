"""How the model hands work to agents, and uses skills."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from acp_agent.content import TextBlock, text_part
from acp_agent.errors import AcpAgentError, InvalidInputError, StoreError, ToolError
from acp_agent.events import (
    SessionMessageSent,
    StopReason,
    SubagentChanged,
    SystemPromptGiven,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from acp_agent.extensions.definitions.types import Uses
from acp_agent.ids import CallId, TurnId, new_message_id, new_session_id, new_turn_id
from acp_agent.session.children.child import ChildHost
from acp_agent.session.chosen import choose
from acp_agent.session.notes import Notes
from acp_agent.session.skill_text import skill_text
from acp_agent.tools.base import AnyTool, Outcome, Progress
from acp_agent.tools.quoting import code_span, first_line
from acp_agent.tools.skill import SkillTool
from acp_agent.tools.task import TaskTool

if TYPE_CHECKING:
    from acp_agent.session.turn_host import SessionHost

_TITLE = 120  # characters
BROKE = "It broke by a fault of the program's; the log has the details."
NOTHING_SAID = "The agent ended without an answer."
_CUT_SHORT: dict[StopReason | None, str] = {
    "max_tokens": "[Its answer was cut off: it became too long for its model.]",
    "max_turn_requests": (
        "[It was stopped before it was done: it reached a limit or a budget, or went round in "
        "circles.]"
    ),
    "refusal": "[Its model refused to go on.]",
}


class Delegation:
    """The tools of a turn that run agents.

    Args:
        host: what the turn works with.
    """

    def __init__(self, host: SessionHost) -> None:
        self._host = host
        self._session = host.owner
        self._definitions = host.owner.extensions.definitions

    def tools(self) -> Sequence[AnyTool]:
        """The tool that gives tasks to agents and the one that uses skills, where there are any."""
        workspace = self._host.workspace
        agents = [(one.name, one.description) for one in self._definitions.agents]
        skills = [(one.name, one.description) for one in self._definitions.skills if one.by_model]
        apart = [one.name for one in self._definitions.skills if one.by_user and one.apart]
        tools: list[AnyTool] = []
        if agents:
            tools.append(TaskTool(workspace, agents, self._task))
        if skills or apart:
            tools.append(SkillTool(workspace, skills, apart, self._skill))
        return tools

    async def _task(self, agent: str, title: str, task: str, progress: Progress) -> Outcome:
        """Have an agent do something."""
        spec = self._definitions.agent(agent)
        if spec is None:
            raise ToolError(f"there is no agent {agent!r} any more: its file is gone")
        run = _Run(self._host, f"{spec.name}: {title}", spec.description, progress)
        return await run.work(self._session.clean(spec.prompt), task, spec.uses)

    async def _skill(self, name: str, request: str, progress: Progress) -> Outcome:
        """Give a skill's text to the model; have an agent follow it that wants a run of its own."""
        skill = self._definitions.skill(name)
        if skill is None:
            raise ToolError(f"there is no skill {name!r} any more: its file is gone")
        if not (skill.by_model or self._host.open_calls.is_by_user(CallId(progress.call))):
            raise ToolError(
                f"only the user may choose the skill {name}",
                shown=f"only you may choose the skill {name}, with /skill:{name}",
            )
        if not skill.apart and skill.uses == Uses():
            return Outcome(text=self._session.clean(skill_text(skill)))
        prompt, uses = None, skill.uses
        if skill.apart and skill.agent is not None:
            spec = self._definitions.agent(skill.agent)
            if spec is None:
                raise ToolError(f"the skill {name} wants the agent {skill.agent}, which is missing")
            prompt, uses = self._session.clean(spec.prompt), uses.over(spec.uses)
        run = _Run(self._host, f"{skill.name}: {request or skill.description}", "", progress)
        return await run.work(prompt, self._session.clean(skill_text(skill, request)), uses)


class _Run:
    """One task of one agent.

    Args:
        parent: what the turn works with that the task belongs to.
        title: the task, with who does it.
        description: what the agent is for.
        progress: of the call that the agent works for.
    """

    def __init__(
        self, parent: SessionHost, title: str, description: str, progress: Progress
    ) -> None:
        self._parent = parent
        self._session = parent.owner
        self._title = first_line(title, _TITLE)
        self._description = description
        self._progress = progress
        self._child = new_session_id()

    async def work(self, prompt: str | None, task: str, uses: Uses) -> Outcome:
        """Let the agent work until it is done with the task.

        Args:
            prompt: what the agent is told of itself; None: what the session's own is.
            task: what it is to do.
            uses: what it wants to be run with.

        Raises:
            ToolError: it cannot be run so.
            StoreError: the journal could not be written.
        """
        services = self._session.services
        try:
            chosen = choose(
                uses,
                main=self._parent.model,
                thought=self._parent.thought_level,
                models=services.models,
                config=services.config,
            )
        except InvalidInputError as error:
            raise ToolError(f"the agent cannot be run: {error}") from error
        host = ChildHost(
            self._parent, self._child, CallId(self._progress.call), chosen, self._progress
        )
        with self._session.children.running(host):
            return await self._run(host, prompt, task)

    async def _run(self, host: ChildHost, prompt: str | None, task: str) -> Outcome:
        from acp_agent.agent.prompts import agent_prompt  # noqa: PLC0415 - for prompts only
        from acp_agent.agent.turn import run_turn  # noqa: PLC0415 - it brings what runs this

        turn = new_turn_id()
        ended = TurnEnded(turn=turn, error=BROKE)  # unless it is known better
        try:
            await self._begin(host, turn, task)
            given = None
            if prompt is not None:
                given = SystemPromptGiven(mode="override", text=agent_prompt(prompt))
            await host.give_system_prompt(given)
            ended = TurnEnded(turn=turn, stop_reason=await run_turn(host))
        except asyncio.CancelledError:
            ended = TurnEnded(turn=turn, stop_reason="cancelled")
            raise
        except StoreError:
            raise
        except AcpAgentError as error:
            ended = TurnEnded(turn=turn, error=str(error), error_kind=error.kind)
            raise ToolError(f"the agent failed: {error}") from error
        finally:
            await _to_its_end(self._end(host, ended))
        return _outcome(host, ended.stop_reason)

    async def _begin(self, host: ChildHost, turn: TurnId, task: str) -> None:
        """Write down that it begins, and with what."""
        words = (TextBlock(text=task),)
        today = datetime.now().astimezone().date()
        told = Notes().due(today=today, mode=host.mode, moved_to=None)
        asked = UserMessage(message=new_message_id(), content=words, attached="\n\n".join(told))
        await self._session.emit(  # all or nothing, wherever it is stopped
            SubagentChanged(
                session=self._child,
                title=self._title,
                description=self._description,
                can_cancel=True,
                state="running",
            ),
            SessionMessageSent(
                message=new_message_id(),
                sender=self._session.session,
                recipient=self._child,
                content=words,
            ),
            host.of_the_child(TurnStarted(turn=turn)),
            host.of_the_child(asked),
        )

    async def _end(self, host: ChildHost, ended: TurnEnded) -> None:
        """Write down how it ended, and what it said in the end."""
        await host.settled()
        await host.emit(ended)
        await self._session.emit(
            SubagentChanged(
                session=self._child,
                state="idle",
                stop_reason=ended.stop_reason,
                error=ended.error,
                error_kind=ended.error_kind,
            )
        )
        if host.said:
            await self._session.emit(
                SessionMessageSent(
                    message=new_message_id(),
                    sender=self._child,
                    recipient=self._session.session,
                    content=(TextBlock(text=host.said),),
                )
            )


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Wait until something is done, however often whoever waits is cancelled; that comes after.

    An agent can be stopped, and its turn in the same moment: what says that it ended is no less
    needed then.
    """
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        task.result()
        raise


def _left_running(host: ChildHost) -> Iterator[str]:
    for one in host.left_running:
        command = code_span(first_line(one.command, _TITLE))
        yield f"[It left the background command {one.name} running: {command}]"


def _outcome(host: ChildHost, stop: StopReason | None) -> Outcome:
    cut = _CUT_SHORT.get("max_turn_requests" if host.over_budget else stop, "")
    text = "\n\n".join(filter(None, [host.said or NOTHING_SAID, cut, *_left_running(host)]))
    return Outcome(
        text=text,
        failed=not host.said or stop == "refusal",
        content=tuple(text_part(part) for part in (host.activity, text) if part),
    )
