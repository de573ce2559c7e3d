"""The state of a session, computed from its journal."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from acp_agent.agent.context import Context
from acp_agent.events import (
    AnyEvent,
    ChildWorked,
    ConfigChanged,
    DirectoriesChanged,
    ModelAnswered,
    Rewound,
    ServerTool,
    ServerToolsOffered,
    SessionForked,
    SystemPromptGiven,
    SystemPromptWritten,
    TitleChanged,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    Usage,
    UsageReported,
)
from acp_agent.ids import SessionId
from acp_agent.models.base import ModelInfo
from acp_agent.session.services import Services, Spending
from acp_agent.session.settings import Settings

if TYPE_CHECKING:  # modules for prompts must not be imported at start-up
    from acp_agent.agent.loop_detection import LoopDetector

_STEP = 500  # events; they take half a millisecond

# The events that `SessionState` applies; a session has thousands of others.
_APPLIED_EVENTS = frozenset(
    {
        ChildWorked,
        ConfigChanged,
        DirectoriesChanged,
        ModelAnswered,
        Rewound,
        ServerToolsOffered,
        SessionForked,
        SystemPromptGiven,
        SystemPromptWritten,
        TitleChanged,
        TurnEnded,
        TurnInterrupted,
        TurnStarted,
        UsageReported,
    }
)


class SessionState:
    """The state of a session. It depends on the events alone: apply every event, in order.

    Attributes:
        cost: the cost so far in US dollars, without copied turns of a fork; None if no price is
            known.
        turn_usage: the token usage of the last turn, including child sessions; None if no model
            reported it.
        spent: the spending so far, without copied turns of a fork.
        spent_before: the spending of the previous turn that spent anything.
        last_usage: the token usage of the conversation's last request.
        budget: the changed budgets, by option.
        turn_is_open: whether the journal ends within a turn.
        moved: whether a client opened it with other folders.
        client_prompt: the instructions that a client gave.
        system_prompt_is_due: whether the system prompt must be written before the next request.
        sources: the sessions from which its beginning was copied, oldest first.
    """

    def __init__(self, services: Services, model: ModelInfo | None) -> None:
        self.settings = Settings(services, model)
        self._context = Context()
        self._loops: LoopDetector | None = None
        self._deferred: Sequence[AnyEvent] = ()  # not yet applied to context and loop detector
        self.title: str | None = None
        self.cost: float | None = None
        self.turn_usage: Usage | None = None
        self.spent = Spending()
        self.spent_in_turn = Spending()
        self.spent_before = Spending()
        self.last_usage: Usage | None = None
        self.turns = 0
        self.rewinds = 0
        self.budget: dict[str, str] = {}
        self.turn_is_open = False
        self.moved = False
        self.client_prompt: SystemPromptGiven | None = None
        self.system_prompt_is_due = True
        self._models = services.models
        self.sources: list[SessionId] = []
        self.server_tools: tuple[ServerTool, ...] = ()
        self.recorded_tools: tuple[ServerTool, ...] = ()  # the same, with secrets

    def apply(self, events: Sequence[AnyEvent]) -> None:
        """Apply further events of the journal."""
        self.catch_up()
        self._follow(events)
        self._feed(events)

    def restore(self, events: Sequence[AnyEvent]) -> None:
        """Apply a whole journal to a new state, except for context and loop detector.

        Only turns need those. They take most of the time, and an opened session is shown first.
        """
        self._follow(events)
        self._deferred = events

    def catch_up(self) -> None:
        """Apply to the context and the loop detector the events that `restore` deferred."""
        events, self._deferred = self._deferred, ()
        self._feed(events)

    async def catch_up_in_steps(self) -> None:
        """Do the same as `catch_up` in steps, so that the event loop is not blocked."""
        while self._deferred:
            events, self._deferred = self._deferred[:_STEP], self._deferred[_STEP:]
            self._feed(events)
            await asyncio.sleep(0)

    @property
    def context(self) -> Context:
        """The conversation that the model is sent."""
        self.catch_up()
        return self._context

    @property
    def loop_detector(self) -> LoopDetector:
        """The detector of repeated calls of the model."""
        self.catch_up()
        return self._detector

    @property
    def _detector(self) -> LoopDetector:
        if self._loops is None:
            from acp_agent.agent.loop_detection import LoopDetector  # noqa: PLC0415 - not at start

            self._loops = LoopDetector()
        return self._loops

    def _feed(self, events: Sequence[AnyEvent]) -> None:
        self._context.feed(events)
        if self.turns:  # there are no calls before the first turn
            self._detector.feed(events)

    def _follow(self, events: Sequence[AnyEvent]) -> None:
        self.settings.apply(events)
        for event in events:
            if type(event) in _APPLIED_EVENTS:
                self._apply(event)

    def _apply(self, event: AnyEvent) -> None:
        match event:
            case TurnStarted():
                self.turn_is_open = True
                self.turn_usage = None
                self.spent_before = self.spent_in_turn or self.spent_before
                self.spent_in_turn = Spending()
                self.turns += 1
            case TurnEnded() | TurnInterrupted():
                self.turn_is_open = False
            case UsageReported() if event.cost is not None:
                self.cost = max(self.cost or 0.0, event.cost)
            case ModelAnswered() if event.usage or event.cost:
                self.last_usage = self.last_usage if event.discarded else event.usage
                self._spend(event)
            case ChildWorked(did=ModelAnswered() as answered) if answered.usage or answered.cost:
                self._spend(answered)
            case ConfigChanged(option="agent"):
                self.system_prompt_is_due = True
            case ConfigChanged() if event.option.startswith("budget."):
                self.budget[event.option] = event.value
            case Rewound() if event.conversation:
                self.rewinds += 1
            case TitleChanged():
                self.title = event.title
            case DirectoriesChanged():
                self.moved = True
            case SystemPromptGiven():
                self.client_prompt, self.system_prompt_is_due = event, True
            case SystemPromptWritten():
                self.system_prompt_is_due = False
            case ServerToolsOffered():
                self.server_tools = event.tools
            case SessionForked():
                self.sources.append(event.source)
                self.spent, self.cost = Spending(), None

    def charge(self, price: float | None) -> float | None:
        """Add the cost of a request; return the total, which the caller writes to the journal.

        The cost counts at once: if two requests end at the same moment, the total of the second
        includes the first, whose event may not be written yet.
        """
        if price is not None:
            self.cost = (self.cost or 0.0) + price
        return self.cost

    def _spend(self, event: ModelAnswered) -> None:
        """Count a request; if its price was not known then, today's price counts."""
        self.turn_usage = (self.turn_usage or Usage()) + event.usage
        price = event.cost
        if price is None:
            price = self._models.cost_now(event.model, event.usage)
        self.spent.add(event.usage, price)
        self.spent_in_turn.add(event.usage, price)
