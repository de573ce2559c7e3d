"""How the model delegates tasks to agents, and uses skills."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from msgspec import Struct

from acp_agent.agent.resources import TurnResources
from acp_agent.agent.system_prompt import own_prompt
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
from acp_agent.extensions.definitions.inputs import Given
from acp_agent.extensions.definitions.types import AgentSpec, RunSettings, Skill
from acp_agent.ids import CallId, TurnId, new_message_id, new_session_id, new_turn_id
from acp_agent.session.children.child import ChildSession
from acp_agent.session.children.running import RunningChildren
from acp_agent.session.commands.prompting import skill_text
from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import Definitions
from acp_agent.session.hooks import MOST_ROUNDS
from acp_agent.session.turns.budget import SessionBudget
from acp_agent.session.turns.environment import EnvironmentGatherer
from acp_agent.session.turns.notes import Notes
from acp_agent.session.turns.parts import TurnTools
from acp_agent.session.turns.plan import RunOptions, run_options
from acp_agent.session.turns.system_prompt import write_system_prompt
from acp_agent.tools.base import AnyTool, Outcome, Progress
from acp_agent.tools.quoting import code_span, first_line
from acp_agent.tools.skill import SkillTool
from acp_agent.tools.skills.composed import ComposedSkill, composed_tool
from acp_agent.tools.task import BundledTaskTool, TaskTool
from acp_agent.workspace.scrub import scrub

_TITLE = 120  # characters
LEVELS = 3  # of agents that follow skills, each for the one before
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


class ParentTurn(Struct, frozen=True, kw_only=True):
    """The turn that delegates: its session, what it works with, the session's agents."""

    core: SessionCore
    turn: TurnResources
    tools: TurnTools
    budget: SessionBudget
    definitions: Definitions
    children: RunningChildren
    environment: EnvironmentGatherer
    options: RunOptions | None = None


class Delegation:
    """The tools of a turn that run agents.

    Args:
        parent: the turn.
        chain: the skills that are being followed, each by an agent that the previous one called.
    """

    def __init__(self, parent: ParentTurn, chain: tuple[str, ...] = ()) -> None:
        self._parent = parent
        self._chain = chain
        self._core = parent.core
        self._definitions = parent.definitions

    def tools(self) -> Sequence[AnyTool]:
        """The tool that gives tasks to agents and the one that uses skills, where there are any."""
        workspace = self._parent.tools.workspace
        agents = [(one.name, one.description) for one in self._definitions.offered_agents]
        skills = [(one.name, one.description) for one in self._definitions.skills if one.by_model]
        apart = [one.name for one in self._definitions.skills if one.by_user and one.apart]
        tools: list[AnyTool] = []
        if agents:
            tool = TaskTool if self._definitions.agents else BundledTaskTool
            tools.append(tool(workspace, agents, self.give))
        if skills or apart:
            tools.append(SkillTool(workspace, skills, apart, self._skill))
        options = self._parent.options
        if options is not None:
            followed = Delegation(self._parent, (options.skill,))
            tools += followed.composed_tools(options.uses)
        return tools

    def composed_tools(self, uses: RunSettings) -> list[AnyTool]:
        """Return the skills that a skill has as tools."""
        if not uses.composed:
            return []
        known: dict[str, ComposedSkill] = {
            one.name: ComposedSkill(name=one.name, description=one.description)
            for one in self._definitions.bundled
        }
        known |= {
            one.name: ComposedSkill(name=one.name, description=one.description, inputs=one.inputs)
            for one in self._definitions.skills
        }
        workspace = self._parent.tools.workspace
        named = (known[name] for name in uses.composed if name in known)
        return [composed_tool(workspace, one, self._composed) for one in named]

    async def _composed(self, name: str, given: Given, progress: Progress) -> Outcome:
        """Have an agent follow a skill for the agent that follows another one."""
        way = " → ".join([*filter(None, self._chain), name])
        if name in self._chain:
            raise ToolError(
                f"the skill {name} is being followed already ({way})", advice="do it without that"
            )
        if len(self._chain) > LEVELS:
            raise ToolError(
                f"skills call each other over more than {LEVELS} levels ({way})",
                advice="do it without that",
            )
        skill = await self._definitions.find_skill(name)
        if skill is None:
            raise ToolError(f"there is no skill {name!r} any more: its file is gone")
        return await self._follow(skill, given.rest, progress, given)

    async def give(self, agent: str, title: str, task: str, progress: Progress) -> Outcome:
        """Have an agent do something."""
        spec = await self._definitions.find_agent(agent)
        if spec is None:
            raise ToolError(f"there is no agent {agent!r} any more: its file is gone")
        run = _Run(self._parent, f"{spec.name}: {title}", spec.description, progress, spec.name)
        return await run.work(self._prompt(spec), task, spec.uses)

    def _prompt(self, spec: AgentSpec) -> str:
        return self._core.clean(spec.prompt_in(self._core.cwd, own_prompt))

    async def _skill(self, name: str, request: str, progress: Progress) -> Outcome:
        """Give a skill's text to the model; have an agent follow it that wants a run of its own."""
        skill = await self._definitions.find_skill(name)
        if skill is None:
            raise ToolError(f"there is no skill {name!r} any more: its file is gone")
        if not (skill.by_model or self._parent.tools.open_calls.is_by_user(CallId(progress.call))):
            raise ToolError(
                f"only the user may choose the skill {name}",
                shown=f"only you may choose the skill {name}, with /skill:{name}",
            )
        if not skill.apart and skill.uses == RunSettings():
            return Outcome(text=self._core.clean(skill_text(skill)))
        return await self._follow(skill, request, progress)

    async def _follow(
        self, skill: Skill, request: str, progress: Progress, given: Given | None = None
    ) -> Outcome:
        """Have an agent follow a skill."""
        prompt, uses = None, skill.uses
        if skill.apart and skill.agent is not None:
            spec = await self._definitions.find_agent(skill.agent)
            if spec is None:
                raise ToolError(
                    f"the skill {skill.name} wants the agent {skill.agent}, which is missing"
                )
            prompt, uses = self._prompt(spec), uses.over(spec.uses)
        run_title = f"{skill.name}: {request or skill.description}"
        run = _Run(self._parent, run_title, "", progress, skill.agent or "")
        followed = Delegation(self._parent, (*(self._chain or ("",)), skill.name))
        text = self._core.clean(skill_text(skill, request, given))
        return await run.work(prompt, text, uses, followed.composed_tools(uses))


class _Run:
    """One task of one agent.

    Args:
        parent: the turn that the task belongs to.
        title: the task, with who does it.
        description: what the agent is for.
        progress: of the call that the agent works for.
        agent: the agent's name; empty for the session's own, which follows a skill.
    """

    def __init__(
        self, parent: ParentTurn, title: str, description: str, progress: Progress, agent: str
    ) -> None:
        self._parent = parent
        self._core = parent.core
        self._title = first_line(title, _TITLE)
        self._description = description
        self._progress = progress
        self._agent = agent
        self._child = new_session_id()

    async def work(
        self, prompt: str | None, task: str, uses: RunSettings, added: Sequence[AnyTool] = ()
    ) -> Outcome:
        """Run the agent until it is done with the task.

        Args:
            prompt: the agent's own system prompt; None: the session's.
            task: what it is to do.
            uses: what it wants to be run with.
            added: tools that it has besides those of the session.

        Raises:
            ToolError: it cannot be run so.
            StoreError: the journal could not be written.
        """
        services, models = self._core.services, self._parent.turn.models
        if self._parent.options is not None:
            uses = uses.over(self._parent.options.inherited)
        try:
            options = run_options(
                uses,
                main=models.current,
                thought=models.thought_level,
                models=services.models,
                config=services.config,
            )
        except InvalidInputError as error:
            raise ToolError(f"the agent cannot be run: {error}") from error
        child = ChildSession(
            self._core,
            self._parent.turn,
            self._parent.tools,
            budget=self._parent.budget,
            child=self._child,
            call=CallId(self._progress.call),
            options=options,
            progress=self._progress,
            agent=self._agent,
            added=added,
        )
        with self._parent.children.running(child):
            return await self._run(child, prompt, task)

    async def _run(self, child: ChildSession, prompt: str | None, task: str) -> Outcome:
        from acp_agent.agent.system_prompt import agent_prompt  # noqa: PLC0415 - for prompts only
        from acp_agent.agent.turn import run_turn  # noqa: PLC0415 - it brings what runs this

        turn = new_turn_id()
        ended = TurnEnded(turn=turn, error=BROKE)  # unless it is known better
        try:
            await self._begin(child, turn, task)
            given = None
            if prompt is not None:
                given = SystemPromptGiven(mode="override", text=agent_prompt(prompt))
            environment = self._parent.environment
            await write_system_prompt(self._core, child, given, environment)
            stop, rounds = await run_turn(child.resources), 0
            while stop == "end_turn" and (more := await _goes_on(child.resources, rounds)):
                words = (TextBlock(text=scrub(more, child.secrets)),)
                await child.emit(UserMessage(message=new_message_id(), content=words))
                stop, rounds = await run_turn(child.resources), rounds + 1
            ended = TurnEnded(turn=turn, stop_reason=stop)
        except asyncio.CancelledError:
            ended = TurnEnded(turn=turn, stop_reason="cancelled")
            raise
        except StoreError:
            raise
        except AcpAgentError as error:
            ended = TurnEnded(turn=turn, error=str(error), error_kind=error.kind)
            raise ToolError(f"the agent failed: {error}") from error
        finally:
            await _run_to_end(self._end(child, ended))
        return _outcome(child, ended.stop_reason)

    async def _begin(self, child: ChildSession, turn: TurnId, task: str) -> None:
        """Record that it begins, and with what."""
        words = (TextBlock(text=task),)
        today = datetime.now().astimezone().date()
        notes = Notes(self._core.services.config.draft_folder).due(
            today=today, mode=child.resources.user.mode, moved_to=None
        )
        if child.resources.hooks is not None:
            more = await child.resources.hooks.agent_begins(child.resources.agent)
            notes = [*notes, scrub(more, child.secrets)]
        prompt = UserMessage(
            message=new_message_id(), content=words, attached="\n\n".join(filter(None, notes))
        )
        await self._core.emit(  # all or nothing, wherever it is stopped
            SubagentChanged(
                session=self._child,
                title=self._title,
                description=self._description,
                can_cancel=True,
                state="running",
            ),
            SessionMessageSent(
                message=new_message_id(),
                sender=self._core.id,
                recipient=self._child,
                content=words,
            ),
            child.wrap(TurnStarted(turn=turn)),
            child.wrap(prompt),
        )

    async def _end(self, child: ChildSession, ended: TurnEnded) -> None:
        """Record how it ended, and its last answer."""
        await child.settled()
        await child.emit(ended)
        await self._core.emit(
            SubagentChanged(
                session=self._child,
                state="idle",
                stop_reason=ended.stop_reason,
                error=ended.error,
                error_kind=ended.error_kind,
            )
        )
        if child.last_answer:
            await self._core.emit(
                SessionMessageSent(
                    message=new_message_id(),
                    sender=self._child,
                    recipient=self._core.id,
                    content=(TextBlock(text=child.last_answer),),
                )
            )


async def _run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Finish `work` before a cancellation of the caller takes effect.

    An agent can be stopped in the same moment as its turn; its end must be recorded all the same.
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


def _left_running(child: ChildSession) -> Iterator[str]:
    for one in child.left_running:
        command = code_span(first_line(one.command, _TITLE))
        yield f"[It left the background command {one.name} running: {command}]"


def _outcome(child: ChildSession, stop: StopReason | None) -> Outcome:
    cut = _CUT_SHORT.get("max_turn_requests" if child.resources.budget.exhausted else stop, "")
    text = "\n\n".join(
        filter(None, [child.last_answer or NOTHING_SAID, cut, *_left_running(child)])
    )
    return Outcome(
        text=text,
        failed=not child.last_answer or stop == "refusal",
        content=tuple(text_part(part) for part in (child.activity, text) if part),
    )


async def _goes_on(turn: TurnResources, rounds: int) -> str:
    """Return what the user's hooks have an agent go on with at its end; "" where they do not."""
    if turn.hooks is None or rounds >= MOST_ROUNDS:
        return ""
    return await turn.hooks.agent_ends(turn.agent, rounds)
