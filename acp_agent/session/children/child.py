"""A child session: an agent that works on a task for one call of its parent's turn.

It is a turn like any other, with a context and a loop guard of its own. Its events are part of the
parent's journal (`ChildWorked`); its calls are judged as the parent's are, and need the same user.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from acp_agent.agent.context import Context
from acp_agent.agent.host import Asking
from acp_agent.agent.loop_guard import LoopGuard
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
from acp_agent.permissions.access import Ask, Decision
from acp_agent.session.children.activity import ChildActivity
from acp_agent.session.chosen import Chosen
from acp_agent.session.turn_host import SessionHost
from acp_agent.session.turn_tools import Changed
from acp_agent.tools.base import Answer, Progress, Question

if TYPE_CHECKING:
    from acp_agent.tools.toolset import Toolset
    from acp_agent.workspace.workspace import Workspace

# What belongs to the user's own conversation, or would let a child have children.
NOT_FOR_CHILDREN = ("task", "skill", "finish_loop", "rewind", "session_search")


class ChildHost(SessionHost):
    """What one child works with (`acp_agent.agent.host.TurnHost`).

    Args:
        parent: what the turn works with that the child works for.
        child: the child's id.
        call: the call that it works for.
        chosen: its model, and which tools it has.
        progress: shows at the call what it does.
    """

    def __init__(
        self,
        parent: SessionHost,
        child: SessionId,
        call: CallId,
        chosen: Chosen,
        progress: Progress,
    ) -> None:
        without = (*chosen.uses.without, *NOT_FOR_CHILDREN)
        uses = msgspec.structs.replace(chosen.uses, without=without)
        super().__init__(parent.owner, parent.equipment, msgspec.structs.replace(chosen, uses=uses))
        self.call = call
        self._parent = parent
        self._child = child
        self._context = Context()
        self._loops = LoopGuard()
        self._events: list[AnyEvent] = []
        self._cost: float | None = None
        self._asked = 0  # questions that wait for the user
        self._activity = ChildActivity(progress)
        self._commands: dict[CallId, BackgroundCommandChanged] = {}
        # What its parent read, or another child, its model has not seen.
        files = parent.workspace.files.copy_unseen()
        terminals = parent.workspace.terminals
        if terminals is not None:  # shown in the child's calls, and so the child's
            terminals = parent.owner.editor.terminals(child)
        self._workspace = msgspec.structs.replace(
            parent.workspace, files=files, terminals=terminals
        )
        self._own_tools = Changed(lambda tools: tools.for_workspace(self._workspace))

    @property
    def session(self) -> SessionId:
        """The child's id."""
        return self._child

    @property
    def context(self) -> Context:
        """What the child's model is sent."""
        return self._context

    @property
    def loop_guard(self) -> LoopGuard:
        """Whether the child goes round in circles."""
        return self._loops

    @property
    def is_prompted(self) -> bool:
        """Nobody says anything to a child but its task."""
        return False

    @property
    def workspace(self) -> Workspace:
        """What the child's tools may touch: all that its parent's may."""
        return self._workspace

    @property
    def toolset(self) -> Toolset:
        """What the child's model may call."""
        return self._own_tools.of(super().toolset)

    @asynccontextmanager
    async def call_slot(self) -> AsyncIterator[None]:
        """A place among the calls that run in the process: one of the parent's."""
        async with self._parent.call_slot():
            yield

    @property
    def cost(self) -> float | None:
        """What the child cost so far."""
        return self._cost

    @property
    def said(self) -> str:
        """What the child said last; where it was stopped, that was beside a call."""
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
        """The commands that the child started and that go on behind it."""
        return [one for one in self._commands.values() if one.status == "running"]

    def took(self, event: AnyEvent) -> None:
        """An event of the child is in the journal."""
        self._context.feed([event])
        self._loops.take([event])
        self._events.append(event)

    async def history(self) -> Sequence[AnyEvent]:
        """Every event of the child so far."""
        return list(self._events)

    def take_compaction_wish(self) -> str | None:
        """Nobody can wish that of a child."""
        return None

    def charge(self, model: ModelInfo, usage: Usage) -> float | None:
        """Add a request's cost to the child's, and to the session's."""
        price = self.owner.services.models.cost(model, usage)
        self.owner.state.charge(price)
        if price is not None:
            self._cost = (self._cost or 0.0) + price
        return self._cost

    async def emit(self, *events: AnyEvent) -> None:
        """Write events to the parent's journal, as the child's; what users are told is theirs."""
        told = [*map(self.of_the_child, events)]
        # All of it before the wait: who is stopped in that has to have kept it.
        for event in events:
            if isinstance(event, UsageReported) and event.cost is not None:
                told.append(self._parents_usage())
            elif isinstance(event, BackgroundCommandChanged):
                self._commands[event.call] = event
        await self.owner.emit(*told)
        for event in events:
            if isinstance(event, ToolCalled):
                await self._activity.called(event)
            elif isinstance(event, ToolEnded):
                await self._activity.ended(event)

    def _parents_usage(self) -> UsageReported:
        """What the session costs now."""
        from acp_agent.agent.count import next_request  # noqa: PLC0415 - for prompts only

        parent = self._parent
        return UsageReported(
            used=next_request(parent, parent.model), size=parent.model.window, cost=parent.cost
        )

    def of_the_child(self, event: AnyEvent) -> AnyEvent:
        """An event of the child as the parent's journal has it."""
        if isinstance(event, NoticeShown):
            return event
        return ChildWorked(session=self._child, call=self.call, did=event)

    async def ask_permission(self, asking: Asking, ask: Ask) -> Decision:
        """Let the user decide about a call of the child's."""
        async with self._waiting():
            return await super().ask_permission(asking, ask)

    async def ask_question(self, call: CallId, question: Question) -> Answer | None:
        """Ask the user something for the child."""
        async with self._waiting():
            return await super().ask_question(call, question)

    @asynccontextmanager
    async def _waiting(self) -> AsyncIterator[None]:
        """The child waits for the user for as long as this lasts, and says so."""
        self._asked += 1
        try:
            if self._asked == 1:
                await self._is("requires_action")
            yield
        finally:
            self._asked -= 1
            if not self._asked:
                await self._is("running")

    async def _is(self, state: Activity) -> None:
        await self.owner.emit(SubagentChanged(session=self._child, state=state))
