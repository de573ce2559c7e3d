"""A child session: an agent that works on a task for one call of its parent's turn.

A child runs ordinary turns, with its own context and loop detection. Its events are stored in the
parent's journal (`ChildWorked`); its calls need permission from the parent's user, by the same
rules as the parent's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from acp_agent.agent.context import Context
from acp_agent.agent.context_size import usage_report
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
from acp_agent.extensions.definitions.types import MEMORY
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
    turn_limits,
)
from acp_agent.session.turns.plan import RunOptions
from acp_agent.session.turns.toolset import CachedChange, WorkspaceTools
from acp_agent.tools.base import Answer, AnyTool, Progress, Question
from acp_agent.tools.toolset import Toolset
from acp_agent.workspace.workspace import Workspace

if TYPE_CHECKING:  # only for sessions with hooks
    from acp_agent.hooks.session_hooks import SessionHooks

# Tools for the user's own conversation, and those that would allow a child to have children.
NOT_FOR_CHILDREN = (
    "task",
    "skill",
    "finish_loop",
    "rewind",
    "session_search",
    MEMORY,
    "write_skill",
)

MAX_SHOWN_CALLS = 20  # calls in the list; the last ones if there are more

_MARKS = {True: "✗", False: "✓", None: "…"}


class ChildSession:
    """A running child session and its journal (`acp_agent.agent.resources.Journal`).

    Args:
        options: its model and its tools.
        progress: shows the child's activity at the call.
        added: tools that the parent does not have.
        outer: the child that it works for; None: the session's turn.
        place: the workspace of its own folder; None: that of its parent.

    Attributes:
        parent: the argument of that name.
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
        outer: ChildSession | None = None,
        hooks: SessionHooks | None = None,
        place: WorkspaceTools | None = None,
    ) -> None:
        self.id = child
        self.call = call
        self.parent = parent
        self._core = core
        self.context = Context()
        self.loop_detector = LoopDetector()
        self._events: list[AnyEvent] = []
        self._activity = ChildActivity(progress)
        self._commands: dict[CallId, BackgroundCommandChanged] = {}
        refused = [tool for tool in NOT_FOR_CHILDREN if tool != MEMORY or not options.uses.memory]
        without = (*options.uses.without, *refused)
        options = replace(options, uses=replace(options.uses, without=without))
        models = SessionModels(core, options, parent.models.driver)
        tools = self.tools = ChildTools(
            core, parent_tools, child, options, added=added, place=place
        )
        self.open_calls = tools.open_calls
        self.budget = ChildBudget(core, budget, self, models, tools)
        if outer is not None:
            self.budget.outer = outer.budget
        self.resources = TurnResources(
            journal=self,
            models=models,
            user=ChildUser(core, child),
            budget=self.budget,
            tools=tools,
            limits=turn_limits(core.services, options),
            agent=agent,
            hooks=hooks,
        )

    # -- journal -------------------------------------------------------------------------------

    @property
    def secrets(self) -> Sequence[str]:
        """Values that must not be shown, sent or stored."""
        return self._core.secrets

    def apply(self, event: AnyEvent) -> None:
        """Apply an event of the child from the journal."""
        self.context.feed([event])
        self.loop_detector.feed([event])
        self._events.append(event)

    def resume(self, work: Sequence[AnyEvent]) -> None:
        """Continue the conversation of a child that has ended, from all its events."""
        for event in work:
            self.apply(event)
            if isinstance(event, UsageReported):
                self.budget.cost_so_far = event.cost

    async def history(self) -> Sequence[AnyEvent]:
        """Return every event of the child."""
        return list(self._events)

    async def flush(self) -> None:
        """Wait until every emitted event is applied and shown."""
        await self._core.flush()

    def write(self, *events: AnyEvent) -> Awaitable[None]:
        """Queue events of the child to be written to the parent's journal."""
        return self._core.write(*map(self.wrap, events))

    async def emit(self, *events: AnyEvent) -> None:
        """Write the child's events to the parent's journal; notices become the parent's."""
        wrapped = [*map(self.wrap, events)]
        # No await before the emit: it must be recorded even if the caller is cancelled.
        for event in events:
            if isinstance(event, UsageReported) and event.cost is not None:
                wrapped.append(usage_report(self.parent, self.parent.models.current))
            elif isinstance(event, BackgroundCommandChanged):
                self._commands[event.call] = event
        await self._core.emit(*wrapped)
        for event in events:
            if isinstance(event, ToolCalled):
                await self._activity.add(event)
            elif isinstance(event, ToolEnded):
                await self._activity.end(event)

    def wrap(self, event: AnyEvent) -> AnyEvent:
        """Return an event of the child in the form of the parent's journal."""
        if isinstance(event, NoticeShown):
            return event
        return ChildWorked(session=self.id, call=self.call, did=event)

    # -- results --------------------------------------------------------------------------------

    @property
    def last_answer(self) -> str:
        """The last text of the child's model."""
        for entry in reversed(self.context.entries):
            if isinstance(entry.message, ModelSide):
                answer_parts = entry.message.parts
                text = "".join(
                    part.text for part in answer_parts if isinstance(part, AnswerText)
                ).strip()
                if text:
                    return text
        return ""

    @property
    def activity(self) -> str:
        """The child's calls as a list in Markdown; empty if it made none."""
        return self._activity.text

    @property
    def running_commands(self) -> Sequence[BackgroundCommandChanged]:
        """The background commands that the child started and that still run."""
        return [command for command in self._commands.values() if command.status == "running"]


class ChildTools:
    """The tools of a child (`acp_agent.agent.resources.Tools`).

    A child has the access of its parent, or works in a place of its own. Files that the parent or
    another child read count as unread, because the child's model has not seen them.
    """

    def __init__(
        self,
        core: SessionCore,
        parent: TurnTools | ChildTools,
        child: SessionId,
        options: RunOptions,
        *,
        added: Sequence[AnyTool] = (),
        place: WorkspaceTools | None = None,
    ) -> None:
        self.open_calls = OpenCalls()
        self.added = list(added)  # complete before the child begins
        self._parent = parent
        self._place = place or parent
        self._allowed_tools = CachedChange(
            lambda tools: options.filter(tools.with_tools(self.added))
        )
        self._bound_tools = CachedChange(lambda tools: tools.for_workspace(self.workspace))
        files = self._place.workspace.files.copy_unseen()
        terminals = self._place.workspace.terminals
        if terminals is not None:  # shown in the child's calls, so they belong to the child
            terminals = core.client.terminals(child)
        self.workspace: Workspace = replace(self._place.workspace, files=files, terminals=terminals)

    @property
    def unfiltered(self) -> Toolset:
        """The session's tools, with the current tools of MCP servers."""
        return self._parent.unfiltered

    @property
    def toolset(self) -> Toolset:
        """The tools that the child's model may call."""
        return self._bound_tools.apply(self._allowed_tools.apply(self.unfiltered))

    @property
    def gate(self) -> Gate:
        """The parent's gate, which decides about side effects."""
        return self._parent.gate

    @property
    def edit_checks(self) -> SessionEditChecks:
        """The checks that find problems that edits cause."""
        return self._place.edit_checks

    def slot(self) -> AbstractAsyncContextManager[None]:
        """Wait until one more call may run in the process, in the parent's queue."""
        return self._parent.slot()

    async def save_files(self, access: Access) -> None:
        """Save the files before the first change in the parent's turn."""
        await self._parent.save_files(access)

    async def command_diffs(self, access: Access) -> tuple[CallContent, ...]:
        """Return diffs of the files that a command changed since they were saved."""
        return await self._parent.command_diffs(access)


class ChildBudget(TurnBudget):
    """The budget of a child: the parent's limits, and the child's own cost."""

    cost_so_far: float | None = None
    outer: ChildBudget | None = None  # the budget of the child that it works for

    @property
    def cost(self) -> float | None:
        """The cost of the child until now."""
        return self.cost_so_far

    def charge(self, model: ModelInfo, usage: Usage) -> float | None:
        """Add the cost of a request to the child and to the session."""
        super().charge(model, usage)
        price = model.cost(usage)
        if price is not None:
            self.add_cost(price)
        return self.cost_so_far

    def add_cost(self, price: float) -> None:
        """Add to the cost of the child and of the children that it works for."""
        self.cost_so_far = (self.cost_so_far or 0.0) + price
        if self.outer is not None:
            self.outer.add_cost(price)


class ChildUser(SessionUser):
    """The user of a session, asked by a child; the child's state shows that it waits."""

    can_reply = False

    def __init__(self, core: SessionCore, child: SessionId) -> None:
        super().__init__(core, take_compaction_request=lambda: None)
        self._child = child
        self._open = 0  # number of open questions

    async def ask_permission(self, request: PermissionRequest, ask: Ask) -> Decision:
        """Ask the user for permission for a call of the child."""
        async with self._waiting():
            return await super().ask_permission(request, ask)

    async def ask_question(self, call: CallId, question: Question) -> Answer | None:
        """Ask the user a question for the child."""
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
    """The list of a child's calls, shown at the call that the child works for."""

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
        hidden = len(calls) - MAX_SHOWN_CALLS
        lines = [] if hidden <= 0 else [f"- … ({hidden} more before)"]
        lines += [
            f"- {_MARKS[self._failed.get(call)]} {title}"
            for call, title in calls[-MAX_SHOWN_CALLS:]
        ]
        return "\n".join(lines)

    async def _show(self) -> None:
        await self._progress.show(content=(text_part(self.text),))
