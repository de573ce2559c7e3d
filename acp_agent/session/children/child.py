"""A child session: an agent that works on a task for one call of its parent's turn.

It is a turn like any other, with a context and a loop guard of its own. Its events are part of the
parent's journal (`ChildWorked`); its calls are judged as the parent's are, and need the same user.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from msgspec.structs import replace

from acp_agent.agent.context import Context
from acp_agent.agent.context_size import next_request_tokens
from acp_agent.agent.loop_detection import LoopDetector
from acp_agent.agent.resources import PermissionRequest, TurnResources
from acp_agent.agent.tool_calls import OpenCalls
from acp_agent.content import CallContent, text_part
from acp_agent.events import (
    Activity,
    AnyEvent,
    BackgroundCommandChanged,
    ChildWorked,
    NoticeShown,
    SubagentChanged,
    ToolCalled,
    ToolEnded,
    Usage,
    UsageReported,
)
from acp_agent.ids import CallId, SessionId
from acp_agent.models.base import AnswerText, ModelInfo, ModelSide
from acp_agent.permissions.access import Access, Ask, Decision, Gate
from acp_agent.session.core import SessionCore
from acp_agent.session.turns.budget import SessionBudget
from acp_agent.session.turns.edit_checks import SessionEditChecks
from acp_agent.session.turns.parts import (
    SessionModels,
    SessionUser,
    TurnBudget,
    TurnTools,
    limits_of,
)
from acp_agent.session.turns.plan import RunOptions
from acp_agent.session.turns.toolset import CachedChange
from acp_agent.tools.base import Answer, AnyTool, Progress, Question
from acp_agent.tools.toolset import Toolset
from acp_agent.workspace.workspace import Workspace

# What belongs to the user's own conversation, or would let a child have children.
NOT_FOR_CHILDREN = (
    "task",
    "skill",
    "finish_loop",
    "rewind",
    "session_search",
    "memory",
    "write_skill",
)

SHOWN = 20  # calls in the list; of more, the last ones

_MARKS = {True: "✗", False: "✓", None: "…"}


class ChildSession:
    """A child session that runs, with its journal (`acp_agent.agent.resources.Journal`).

    Args:
        core: the session.
        parent: what the session's turn works with.
        parent_tools: the tools of whoever the child works for.
        budget: the session's budgets.
        child: the child's id.
        call: the call that it works for.
        options: its model, and which tools it has.
        progress: shows at the call what it does.
        agent: the name of the agent that works there.
        added: tools that the parent does not have.
        above: the child that it works for; None: the session's turn.

    Attributes:
        resources: what the child works with.
        parent: as given.
        tools: what it may call.
        budget: what it may spend, and did.
    """

    def __init__(
        self,
        core: SessionCore,
        parent: TurnResources,
        parent_tools: TurnTools | ChildTools,
        *,
        budget: SessionBudget,
        child: SessionId,
        call: CallId,
        options: RunOptions,
        progress: Progress,
        agent: str = "",
        added: Sequence[AnyTool] = (),
        above: ChildSession | None = None,
    ) -> None:
        self.id = child
        self.call = call
        self.parent = parent
        self._core = core
        self._context = Context()
        self._loop_detector = LoopDetector()
        self._events: list[AnyEvent] = []
        self._activity = ChildActivity(progress)
        self._commands: dict[CallId, BackgroundCommandChanged] = {}
        without = (*options.uses.without, *NOT_FOR_CHILDREN)
        options = replace(options, uses=replace(options.uses, without=without))
        models = SessionModels(core, options, parent.models.driver)
        tools = self.tools = ChildTools(core, parent_tools, child, options, added)
        self.open_calls = tools.open_calls
        self.budget = ChildBudget(core, budget, self, models, tools)
        if above is not None:
            self.budget.above = above.budget
        self.resources = TurnResources(
            journal=self,
            models=models,
            user=ChildUser(core, child),
            budget=self.budget,
            tools=tools,
            limits=limits_of(core.services, options),
            agent=agent,
            hooks=parent.hooks,
        )

    # -- its journal ---------------------------------------------------------------------------

    @property
    def context(self) -> Context:
        """What the child's model is sent."""
        return self._context

    @property
    def loop_detector(self) -> LoopDetector:
        """Detects that the child's model repeats itself."""
        return self._loop_detector

    @property
    def secrets(self) -> Sequence[str]:
        """Values that must not be shown, sent or stored."""
        return self._core.secrets

    def apply(self, event: AnyEvent) -> None:
        """Apply an event of the child that is in the journal."""
        self._context.feed([event])
        self._loop_detector.feed([event])
        self._events.append(event)

    def resume(self, work: Sequence[AnyEvent]) -> None:
        """Continue the conversation of a child that has ended, with all that it did."""
        for event in work:
            self.apply(event)
            if isinstance(event, UsageReported):
                self.budget.cost_so_far = event.cost

    async def history(self) -> Sequence[AnyEvent]:
        """Return every event of the child so far."""
        return list(self._events)

    async def settled(self) -> None:
        """Wait until everything that anyone emitted is applied and shown."""
        await self._core.settled()

    async def emit(self, *events: AnyEvent) -> None:
        """Write events to the parent's journal, as the child's; notices are the parent's."""
        wrapped = [*map(self.wrap, events)]
        # All of it before the wait: it must be recorded even if the caller is cancelled there.
        for event in events:
            if isinstance(event, UsageReported) and event.cost is not None:
                wrapped.append(self._parents_usage())
            elif isinstance(event, BackgroundCommandChanged):
                self._commands[event.call] = event
        await self._core.emit(*wrapped)
        for event in events:
            if isinstance(event, ToolCalled):
                await self._activity.add(event)
            elif isinstance(event, ToolEnded):
                await self._activity.end(event)

    def wrap(self, event: AnyEvent) -> AnyEvent:
        """Return an event of the child as the parent's journal has it."""
        if isinstance(event, NoticeShown):
            return event
        return ChildWorked(session=self.id, call=self.call, did=event)

    def _parents_usage(self) -> UsageReported:
        """Return what the session costs now."""
        parent, model = self.parent, self.parent.models.current
        return UsageReported(
            used=next_request_tokens(parent.journal, parent.tools, model),
            size=model.window,
            cost=parent.budget.cost,
        )

    # -- what it did ---------------------------------------------------------------------------

    @property
    def last_answer(self) -> str:
        """The last text of the child's model."""
        for entry in reversed(self._context.entries):
            if isinstance(entry.message, ModelSide):
                parts = entry.message.parts
                text = "".join(one.text for one in parts if isinstance(one, AnswerText)).strip()
                if text:
                    return text
        return ""

    @property
    def activity(self) -> str:
        """The child's calls as a list in Markdown; empty where it made none."""
        return self._activity.text

    @property
    def left_running(self) -> Sequence[BackgroundCommandChanged]:
        """The background commands that the child started and that still run."""
        return [one for one in self._commands.values() if one.status == "running"]


class ChildTools:
    """The tools of a child (`acp_agent.agent.resources.Tools`).

    They may touch all that the parent's may. What the parent read, or another child, the child's
    model has not seen.
    """

    def __init__(
        self,
        core: SessionCore,
        parent: TurnTools | ChildTools,
        child: SessionId,
        options: RunOptions,
        added: Sequence[AnyTool] = (),
    ) -> None:
        self.open_calls = OpenCalls()
        self.added = list(added)  # complete before the child begins
        self._parent = parent
        self._allowed = CachedChange(lambda tools: options.filter(tools.with_tools(self.added)))
        self._own = CachedChange(lambda tools: tools.for_workspace(self.workspace))
        files = parent.workspace.files.copy_unseen()
        terminals = parent.workspace.terminals
        if terminals is not None:  # shown in the child's calls, and so the child's
            terminals = core.client.terminals(child)
        self.workspace: Workspace = replace(parent.workspace, files=files, terminals=terminals)

    @property
    def unfiltered(self) -> Toolset:
        """The session's own tools, and those of MCP servers as they are at the moment."""
        return self._parent.unfiltered

    @property
    def toolset(self) -> Toolset:
        """What the child's model may call."""
        return self._own.apply(self._allowed.apply(self.unfiltered))

    @property
    def gate(self) -> Gate:
        """What decides about side effects."""
        return self._parent.gate

    @property
    def edit_checks(self) -> SessionEditChecks:
        """What finds the problems that edits cause, which is the parent's."""
        return self._parent.edit_checks

    def slot(self) -> AbstractAsyncContextManager[None]:
        """Wait until one more call may run in the process, as the parent's."""
        return self._parent.slot()

    async def save_files(self, access: Access) -> None:
        """Save the files before the parent's turn changes any."""
        await self._parent.save_files(access)

    async def changed_by(self, access: Access) -> tuple[CallContent, ...]:
        """Return what shows the files that a command changed since its files were saved."""
        return await self._parent.changed_by(access)


class ChildBudget(TurnBudget):
    """What a child may spend, which is what its parent may; the cost is the child's own."""

    cost_so_far: float | None = None
    above: ChildBudget | None = None  # of the child that it works for

    @property
    def cost(self) -> float | None:
        """What the child cost so far."""
        return self.cost_so_far

    def charge(self, model: ModelInfo, usage: Usage) -> float | None:
        """Add a request's cost to the child's, and to the session's."""
        super().charge(model, usage)
        price = model.cost(usage)
        if price is not None:
            self.add_cost(price)
        return self.cost_so_far

    def add_cost(self, price: float) -> None:
        """Add to what the child cost, and to what those above it did."""
        self.cost_so_far = (self.cost_so_far or 0.0) + price
        if self.above is not None:
            self.above.add_cost(price)


class ChildUser(SessionUser):
    """The user of a session, asked by a child; the parent shows that the child waits."""

    can_reply = False

    def __init__(self, core: SessionCore, child: SessionId) -> None:
        super().__init__(core, take_compaction_request=lambda: None)
        self._child = child
        self._open = 0  # questions

    async def ask_permission(self, asking: PermissionRequest, ask: Ask) -> Decision:
        """Let the user decide about a call of the child's."""
        async with self._waiting():
            return await super().ask_permission(asking, ask)

    async def ask_question(self, call: CallId, question: Question) -> Answer | None:
        """Ask the user something for the child."""
        async with self._waiting():
            return await super().ask_question(call, question)

    @asynccontextmanager
    async def _waiting(self) -> AsyncIterator[None]:
        """Show inside the `with` block that the child waits for the user."""
        self._open += 1
        try:
            if self._open == 1:
                await self._show("requires_action")
            yield
        finally:
            self._open -= 1
            if not self._open:
                await self._show("running")

    async def _show(self, state: Activity) -> None:
        await self._core.emit(SubagentChanged(session=self._child, state=state))


class ChildActivity:
    """The list of the calls that a child made, shown at the call that it works for.

    Args:
        progress: of that call.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._titles: dict[CallId, str] = {}
        self._failed: dict[CallId, bool] = {}

    async def add(self, event: ToolCalled) -> None:
        """Add a call."""
        self._titles[event.call] = event.title
        await self._show()

    async def end(self, event: ToolEnded) -> None:
        """Mark a call as ended."""
        self._failed[event.call] = event.failed
        await self._show()

    @property
    def text(self) -> str:
        """The list in Markdown; empty before the first call."""
        calls = list(self._titles.items())
        left_out = len(calls) - SHOWN
        lines = [] if left_out <= 0 else [f"- … ({left_out} more before)"]
        lines += [f"- {_MARKS[self._failed.get(call)]} {title}" for call, title in calls[-SHOWN:]]
        return "\n".join(lines)

    async def _show(self) -> None:
        await self._progress.show(content=(text_part(self.text),))
