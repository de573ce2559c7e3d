"""A task of an agent: runs it in a child session and returns its result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.agent.resources import TurnResources
from acp_agent.agent.system_prompt import built_in_prompt
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
from acp_agent.extensions.definitions.types import MEMORY, TASK, AgentSpec, RunSettings
from acp_agent.extensions.mcp.config import ServerConfig
from acp_agent.ids import CallId, TurnId, new_message_id, new_session_id, new_turn_id
from acp_agent.session.children.child import ChildSession, ChildTools
from acp_agent.session.children.running import RunningChildren, TaskRecord
from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import Definitions
from acp_agent.session.hooks import MAX_ROUNDS
from acp_agent.session.turns.budget import SessionBudget
from acp_agent.session.turns.environment import EnvironmentGatherer
from acp_agent.session.turns.parts import TurnTools
from acp_agent.session.turns.plan import RunOptions, run_options
from acp_agent.session.turns.prompt_notes import PromptNotes
from acp_agent.session.turns.system_prompt import write_system_prompt
from acp_agent.tools.base import AnyTool, Outcome, Progress
from acp_agent.tools.quoting import code_span, first_line
from acp_agent.workspace.scrub import scrub
from acp_agent.workspace.threads import run_to_end

if TYPE_CHECKING:  # only for sessions with hooks
    from acp_agent.hooks.session_hooks import SessionHooks
    from acp_agent.hooks.types import Hook
    from acp_agent.session.turns.toolset import WorkspaceTools

_MAX_TITLE = 120  # characters
GENERAL_AGENT = "general-purpose"  # what hooks call an agent without a name
INTERNAL_ERROR = "It broke by a fault of the program's; the log has the details."
NO_ANSWER = "The agent ended without an answer."
_STOP_NOTES: dict[StopReason | None, str] = {
    "max_tokens": "[Its answer was cut off: it became too long for its model.]",
    "max_turn_requests": (
        "[It was stopped before it was done: it reached a limit or a budget, or went round in "
        "circles.]"
    ),
    "refusal": "[Its model refused to go on.]",
}

# Gives the agent new text to work on, and returns when it stops.
NextTurn = Callable[[str], Awaitable[StopReason]]
# A context manager around an agent's work in a child session.
Worker = Callable[[ChildSession], AbstractAsyncContextManager[NextTurn]]


class ParentTurn(Struct, frozen=True, kw_only=True):
    """The turn that delegates: its session, its resources and the session's agents.

    `outer` is the child that delegates, if the turn belongs to a child, and `agents` are the agents
    at work there, the first one first. `tools_in` makes the tools for an agent's own folder.
    `servers` are the session's MCP servers.
    """

    core: SessionCore
    turn: TurnResources
    tools: TurnTools | ChildTools
    budget: SessionBudget
    definitions: Definitions
    children: RunningChildren
    environment: EnvironmentGatherer
    tools_in: Callable[[Path], Awaitable[WorkspaceTools]]
    servers: Sequence[ServerConfig] = ()
    options: RunOptions | None = None
    outer: ChildSession | None = None
    agents: tuple[str, ...] = ()

    def inner(self, child: ChildSession, options: RunOptions, agent: str) -> ParentTurn:
        """Return the turn of a child of this one, which can delegate too."""
        return replace(
            self,
            turn=child.resources,
            tools=child.tools,
            options=replace(options, inherited=options.uses.bounds),
            outer=child,
            agents=(*self.agents, agent),
        )


# Makes the tools by which an agent delegates from its turn.
InnerTools = Callable[[ParentTurn], Sequence[AnyTool]]


class TaskRun:
    """A task of an agent.

    Args:
        agent: the agent's name; empty for the session's own agent, which follows a skill.
        role: the instructions of an agent that the model defined. The permission rules of the
            parent apply to it, not those for an agent of its name.
        resumable: whether another task can continue the conversation afterwards.
        resumed: the task whose conversation this one continues; None: a new conversation.
    """

    def __init__(
        self,
        parent: ParentTurn,
        title: str,
        description: str,
        progress: Progress,
        agent: str,
        *,
        role: str = "",
        resumable: bool = False,
        resumed: TaskRecord | None = None,
        hooks: Sequence[Hook] = (),
    ) -> None:
        self._parent = parent
        self._core = parent.core
        self._title = first_line(title, _MAX_TITLE)
        self._description = description
        self._progress = progress
        self._agent = agent
        self._role = role
        self._hooks = hooks
        self._resumable = resumable
        self._resumed = resumed
        self._child = new_session_id() if resumed is None else resumed.session
        self._place: WorkspaceTools | None = None  # the agent's own

    async def work(
        self,
        prompt: AgentSpec | str | None,
        task: str,
        uses: RunSettings,
        added: Sequence[AnyTool] = (),
        inner: InnerTools | None = None,
    ) -> Outcome:
        """Run one of our own agents until it is done with the task.

        Args:
            prompt: the agent, or its system prompt; None: the session's.
            added: tools in addition to those of the session.
            inner: makes the tools by which the agent delegates; None: it does not.

        Raises:
            ToolError: it cannot be run with these settings.
            StoreError: the journal could not be written.
        """
        if self._parent.options is not None:
            uses = uses.over(self._parent.options.inherited)

        def worker(child: ChildSession) -> AbstractAsyncContextManager[NextTurn]:
            cwd = None if self._place is None else self._place.workspace.cwd
            if isinstance(prompt, AgentSpec):
                text = prompt.prompt_in(cwd or self._core.cwd, built_in_prompt)
                return _run_own_turns(self._parent, child, self._core.clean(text), cwd)
            return _run_own_turns(self._parent, child, prompt, cwd)

        if not isinstance(prompt, AgentSpec) or not prompt.has_worktree:
            return await self.work_by(worker, task, uses, added, inner)
        from acp_agent.session.children.worktree import agent_worktree  # noqa: PLC0415 - few agents have one

        async with agent_worktree(self._core, self._child) as (worktree, folder):
            self._place = await self._parent.tools_in(folder)
            outcome = await self.work_by(worker, task, uses, added, inner)
        return with_note(outcome, worktree.note)

    async def work_by(
        self,
        worker: Worker,
        task: str,
        uses: RunSettings,
        added: Sequence[AnyTool] = (),
        inner: InnerTools | None = None,
    ) -> Outcome:
        """Run a worker on the task in a child session; see `work`."""
        models = self._parent.turn.models
        try:
            options = run_options(
                uses,
                main=models.current,
                thought=models.thought_level,
                services=self._core.services,
            )
        except InvalidInputError as error:
            raise ToolError(f"the agent cannot be run: {error}") from error
        outer = self._parent.outer
        if inner is not None:
            options = replace(options, always=(*options.always, TASK))
        child = ChildSession(
            self._core,
            self._parent.turn if outer is None else outer.parent,
            self._parent.tools,
            budget=self._parent.budget,
            child=self._child,
            call=CallId(self._progress.call),
            options=options,
            progress=self._progress,
            agent=self._parent.turn.agent if self._role else self._agent,
            added=added,
            outer=outer,
            hooks=self._agent_hooks(),
            place=self._place,
        )
        if options.uses.memory:
            with suppress(ToolError):  # the folder has no memory
                child.tools.added.append(self._parent.tools.toolset.get(MEMORY))
        if inner is not None:
            child.tools.added += inner(self._parent.inner(child, options, self._agent))
        children = self._parent.children
        if self._resumed is not None:
            child.resume(await children.records.child_events(self._child))
            if children.find_call(self._child) is not None:
                raise ToolError("the agent is still at work", advice="wait for its answer")
        with children.running(child):
            outcome = await self._run(child, worker, task)
        if not self._resumable:
            return outcome
        number = await children.records.number(self._child)
        return with_note(outcome, f'[To go on with it: agent "#{number}".]')

    def _agent_hooks(self) -> SessionHooks | None:
        hooks, name = self._parent.turn.hooks, self._agent or GENERAL_AGENT
        if hooks is None:
            return None
        place = None
        if self._place is not None:
            from acp_agent.session.hook_session import hooks_place  # noqa: PLC0415 - few have one

            place = hooks_place(self._core, hooks.runner, self._place.workspace)
        return hooks.for_agent(name, self._hooks, agent_id=self._child, place=place)

    async def _run(self, child: ChildSession, worker: Worker, task: str) -> Outcome:
        turn = new_turn_id()
        # Replaced unless an unexpected error occurs.
        turn_end = TurnEnded(turn=turn, error=INTERNAL_ERROR)
        try:
            prompt = await self._record_start(child, turn, task)
            async with worker(child) as next_turn:
                stop, rounds = await next_turn(prompt), 0
                while stop == "end_turn" and (
                    hook_text := await _continuation(self._core, child, rounds)
                ):
                    text = scrub(hook_text, child.secrets)
                    content = (TextBlock(text=text),)
                    await child.emit(UserMessage(message=new_message_id(), content=content))
                    stop, rounds = await next_turn(text), rounds + 1
            turn_end = TurnEnded(turn=turn, stop_reason=stop)
        except asyncio.CancelledError:
            turn_end = TurnEnded(turn=turn, stop_reason="cancelled")
            raise
        except StoreError:
            raise
        except AcpAgentError as error:
            why = scrub(str(error), child.secrets)
            turn_end = TurnEnded(turn=turn, error=why, error_kind=error.kind)
            raise ToolError(f"the agent failed: {why}") from error
        finally:
            await run_to_end(self._record_end(child, turn_end))
        return _outcome(child, turn_end.stop_reason)

    async def _record_start(self, child: ChildSession, turn: TurnId, task: str) -> str:
        """Record the beginning and the task; return the task with text that hooks add."""
        content = (TextBlock(text=task),)
        today = datetime.now().astimezone().date()
        notes = PromptNotes(self._core.services.config.draft_folder).take_changed(
            today=today, mode=child.resources.user.mode, moved_to=None
        )
        hook_text = ""
        if child.resources.hooks is not None:
            hook_text = await child.resources.hooks.before_agent()
            hook_text = scrub(hook_text, child.secrets)
            notes = [*notes, hook_text]
        prompt = UserMessage(
            message=new_message_id(), content=content, attached="\n\n".join(filter(None, notes))
        )
        change = SubagentChanged(session=self._child, can_cancel=True, state="running")
        if self._resumed is None:
            change = replace(
                change,
                agent=self._agent if self._resumable else "",
                role=self._role,
                title=self._title,
                description=self._description,
            )
        await self._core.emit(  # all or nothing, even if it is cancelled
            change,
            SessionMessageSent(
                message=new_message_id(),
                sender=self._core.id,
                recipient=self._child,
                content=content,
            ),
            child.wrap(TurnStarted(turn=turn)),
            child.wrap(prompt),
        )
        return "\n\n".join(filter(None, [task, hook_text]))

    async def _record_end(self, child: ChildSession, turn_end: TurnEnded) -> None:
        """Record the end and the last answer."""
        await child.flush()
        await child.emit(turn_end)
        await self._core.emit(
            SubagentChanged(
                session=self._child,
                state="idle",
                stop_reason=turn_end.stop_reason,
                error=turn_end.error,
                error_kind=turn_end.error_kind,
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


@asynccontextmanager
async def _run_own_turns(
    parent: ParentTurn, child: ChildSession, prompt: str | None, cwd: Path | None
) -> AsyncIterator[NextTurn]:
    """Run our own agent in the child session, with a system prompt; None: the session's.

    Args:
        cwd: the agent's own folder; None: the session's.
    """
    from acp_agent.agent.system_prompt import agent_prompt  # noqa: PLC0415 - for prompts only
    from acp_agent.agent.turn import run_turn  # noqa: PLC0415 - only when it runs

    if child.context.system_prompt is None:  # a resumed child has one
        system_prompt = None
        if prompt is not None:
            system_prompt = SystemPromptGiven(mode="override", text=agent_prompt(prompt))
        environment = parent.environment if cwd is None else EnvironmentGatherer(parent.core, cwd)
        try:
            await write_system_prompt(parent.core, child, system_prompt, environment)
        finally:
            if environment is not parent.environment:
                await environment.aclose()

    async def next_turn(_: str) -> StopReason:
        return await run_turn(child.resources)  # its context contains the words already

    yield next_turn


def with_note(outcome: Outcome, note: str) -> Outcome:
    """Return an outcome with a note for the model; "" for none."""
    return replace(outcome, text=f"{outcome.text}\n\n{note}") if note else outcome


def _outcome(child: ChildSession, stop: StopReason | None) -> Outcome:
    note = _STOP_NOTES.get("max_turn_requests" if child.resources.budget.exhausted else stop, "")
    commands = [
        f"[It left the background command {background.name} running: "
        f"{code_span(first_line(background.command, _MAX_TITLE))}]"
        for background in child.running_commands
    ]
    text = "\n\n".join(filter(None, [child.last_answer or NO_ANSWER, note, *commands]))
    return Outcome(
        text=text,
        failed=not child.last_answer or stop == "refusal",
        content=tuple(text_part(part) for part in (child.activity, text) if part),
    )


async def _continuation(core: SessionCore, child: ChildSession, rounds: int) -> str:
    """Return text from the user's hooks that makes an agent continue at its end; "" for none."""
    hooks = child.resources.hooks
    if hooks is None or rounds >= MAX_ROUNDS or not hooks.has("SubagentStop"):
        return ""
    from acp_agent.session.hook_session import agent_transcript  # noqa: PLC0415 - if there are hooks

    answer = scrub(child.context.last_answer, child.secrets)
    transcript = await agent_transcript(core, child.id).update(child.context)
    return await hooks.after_agent(rounds, answer, transcript)
