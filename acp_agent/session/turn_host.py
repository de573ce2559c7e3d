"""The session as one of its turns sees it (`acp_agent.agent.host.TurnHost`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from acp_agent.agent.context import Context
from acp_agent.agent.host import Asking, Limits
from acp_agent.config.localization import Translator
from acp_agent.config.types import ContextConfig
from acp_agent.content import escaped
from acp_agent.events import AnyEvent, NoticeShown, SystemPromptGiven, SystemPromptWritten, Usage
from acp_agent.ids import CallId, SessionId
from acp_agent.models.base import (
    CallDelta,
    Driver,
    ModelInfo,
    ModelRequest,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ThoughtLevel,
)
from acp_agent.permissions.access import Access, Ask, Decision, Gate, Mode
from acp_agent.session.services import Services

if TYPE_CHECKING:  # what is first needed when a prompt runs must not be imported before
    from acp_agent.agent.loop_guard import LoopGuard
    from acp_agent.agent.open_calls import OpenCalls
    from acp_agent.session.chosen import Chosen
    from acp_agent.session.rewinder import Rewinder
    from acp_agent.session.session import Session
    from acp_agent.session.slots import Slots
    from acp_agent.session.spending import Answering
    from acp_agent.session.tools_setup import Equipment
    from acp_agent.tools.base import Answer, Question
    from acp_agent.tools.toolset import Toolset
    from acp_agent.workspace.workspace import Workspace

CALLS_WAIT = "Calls wait: as many as may run at once are running already, in all sessions together."
TURN_WAITS = "This turn waits: as many as may run at once are running already in other sessions."


class SessionHost:
    """What one turn works with.

    Its tools stay the same to its end, whatever folders the session is given meanwhile; the mode
    and the model are those of the moment, unless a skill chose the model.

    Args:
        session: whose turn it is.
        equipment: the tools of the session, and the workspace that they work in.
        chosen: what a skill wants the turn to be run with; None: what the user chose.

    Attributes:
        owner: the session.
        equipment: see above.
    """

    def __init__(
        self, session: Session, equipment: Equipment, chosen: Chosen | None = None
    ) -> None:
        from acp_agent.agent.open_calls import OpenCalls  # noqa: PLC0415 - for prompts only
        from acp_agent.session.turn_tools import TurnTools  # noqa: PLC0415 - likewise

        self.owner = session
        self.equipment = equipment
        self.limits = _limits(session.services, chosen)
        self.open_calls: OpenCalls = OpenCalls()
        self.over_budget = False
        self._chosen = chosen
        self._tools = TurnTools(self, chosen)
        self._calls_told_to_wait = False
        self._answering: Answering | None = None  # what a budget is told of

    @property
    def session(self) -> SessionId:
        """The session's id."""
        return self.owner.session

    @property
    def context(self) -> Context:
        """What the model is sent."""
        return self.owner.context

    @property
    def loop_guard(self) -> LoopGuard:
        """Whether the model goes round in circles."""
        return self.owner.state.loops

    @property
    def is_prompted(self) -> bool:
        """It is the user's own conversation."""
        return True

    @property
    def mode(self) -> Mode:
        """The permission mode as it is now."""
        return self.owner.mode

    @property
    def model(self) -> ModelInfo:
        """The chosen model as it is now."""
        return self.owner.model if self._chosen is None else self._chosen.model

    @property
    def thought_level(self) -> ThoughtLevel | None:
        """How much the model is to reason."""
        if self._chosen is not None:
            return self._chosen.thought_level
        return self.owner.settings.thought_level

    @property
    def workspace(self) -> Workspace:
        """What the tools may touch."""
        return self.equipment.workspace

    @property
    def toolset(self) -> Toolset:
        """What the model may call, as it is at the moment."""
        return self._tools.now()

    @property
    def translate(self) -> Translator:
        """What is said to the user, in the user's language."""
        return self.owner.services.translate

    @property
    def gate(self) -> Gate:
        """What decides about side effects."""
        return self.owner.services.gate()

    @property
    def context_settings(self) -> ContextConfig:
        """How full the context may get, and what happens then."""
        return self.owner.services.config.context

    @property
    def small_model(self) -> ModelInfo:
        """The model for side work."""
        from acp_agent.models.roles import small_model  # noqa: PLC0415 - for side work only

        services = self.owner.services
        return small_model(services.models, services.config, self.model)

    @property
    def vision_model(self) -> ModelInfo | None:
        """The model that looks at pictures for one that cannot."""
        from acp_agent.models.roles import vision_model  # noqa: PLC0415 - for pictures only

        services = self.owner.services
        return vision_model(services.models, services.config)

    @property
    def cost(self) -> float | None:
        """What the session cost so far."""
        return self.owner.state.cost

    @property
    def secrets(self) -> Sequence[str]:
        """Values that must not be shown, sent or stored."""
        return self.owner.secrets

    def fallbacks(self, model: ModelInfo) -> Sequence[ModelInfo]:
        """The models to ask when another cannot be had."""
        return self.owner.services.models.fallbacks(model)

    async def driver(self, model: ModelInfo) -> Driver:
        """The way to a model's provider."""
        return await self.owner.workbench.driver(model)

    async def history(self) -> Sequence[AnyEvent]:
        """Every event of the session so far."""
        return await self.owner.history()

    def take_compaction_wish(self) -> str | None:
        """What the user asked to be compacted in the turn, once."""
        turns = self.owner.turns
        wish, turns.compaction_wish = turns.compaction_wish, None
        return wish

    async def emit(self, *events: AnyEvent) -> None:
        """Write events to the journal, take them into the context, and show them."""
        await self.owner.emit(*events)

    async def settled(self) -> None:
        """Wait until everything that anyone emitted is in the context."""
        await self.owner.settled()

    def charge(self, model: ModelInfo, usage: Usage) -> float | None:
        """Add a request's cost to the session's."""
        return self.owner.state.charge(self.owner.services.models.cost(model, usage))

    async def out_of_budget(self, aside: ModelRequest | None = None) -> str | None:
        """Why no further request may be made to the model; None: it may."""
        budget = self.owner.workbench.budget
        if not budget.limits:
            return None
        model, asked = self._asked_of(aside)
        return await budget.refusal(model, asked, aside=aside is not None)

    @asynccontextmanager
    async def within_budget(self, aside: ModelRequest | None = None) -> AsyncIterator[str | None]:
        """A place for a request within the budgets; gives why there is none."""
        budget = self.owner.workbench.budget
        if not budget.limits:
            yield None
            return
        model, asked = self._asked_of(aside)
        async with budget.place(model, asked, aside=aside is not None) as found:
            if isinstance(found, str):
                yield found
            elif aside is not None:
                yield None
            else:
                self._answering = found
                try:
                    yield None
                finally:
                    self._answering = None

    def _asked_of(self, aside: ModelRequest | None) -> tuple[ModelInfo, int]:
        """The model of a request, None being the conversation's next, and how much it is sent."""
        if aside is not None:
            from acp_agent.agent.tokens import request_tokens  # noqa: PLC0415 - for prompts only

            return aside.model, request_tokens(aside)
        from acp_agent.agent.count import next_request  # noqa: PLC0415 - for prompts only

        return self.model, next_request(self, self.model)

    def streamed(self, batch: Sequence[StreamEvent]) -> None:
        """Let requests that wait for room in the budgets know how long an answer becomes."""
        if self._answering is not None:
            from acp_agent.agent.tokens import text_tokens  # noqa: PLC0415 - for prompts only

            pieces = [
                one.text for one in batch if isinstance(one, TextDelta | ThoughtDelta | CallDelta)
            ]
            self._answering.came(text_tokens("".join(pieces)))

    async def warn_of_budget(self) -> None:
        """Let the user know of budgets that are nearly used up."""
        budget = self.owner.workbench.budget
        if budget.limits:
            told = await budget.warnings()
            await self.emit(*(NoticeShown(severity="warning", title=title) for title in told))

    @asynccontextmanager
    async def call_slot(self) -> AsyncIterator[None]:
        """A place among the calls that run in the process, as soon as there is one."""
        slots = self.owner.services.call_slots
        told = self._calls_told_to_wait
        self._calls_told_to_wait = told or slots.full
        async with self._place(slots, None if told else CALLS_WAIT):
            yield

    @asynccontextmanager
    async def turn_slot(self) -> AsyncIterator[None]:
        """A place among the turns that run in the process, as soon as there is one."""
        async with self._place(self.owner.services.turn_slots, TURN_WAITS):
            yield

    @asynccontextmanager
    async def _place(self, slots: Slots, waits: str | None) -> AsyncIterator[None]:
        if slots.full and waits is not None:
            await self.emit(NoticeShown(severity="info", title=waits))
        await slots.take(self.session)
        try:
            yield
        finally:
            slots.give_back()

    def clean(self, text: str) -> str:
        """`text` without secrets."""
        return self.owner.clean(text)

    async def keep_files(self, access: Access) -> None:
        """Keep the files as they are before the turn changes any."""
        await self.owner.workbench.checkpoints.before(access)

    @property
    def rewinder(self) -> Rewinder:
        """What takes the session back to how it was."""
        return self.owner.workbench.rewinder

    async def ask_permission(self, asking: Asking, ask: Ask) -> Decision:
        """Let the user decide about a call."""
        return await self.owner.editor.ask_permission(self.owner.session, asking, ask)

    async def ask_question(self, call: CallId, question: Question) -> Answer | None:
        """Ask the user something."""
        return await self.owner.editor.ask_question(self.owner.session, call, question)

    async def write_system_prompt(self) -> None:
        """Write the system prompt to the journal, unless it is there as it should be."""
        session = self.owner
        if not session.state.system_prompt_is_due:
            return
        await self.give_system_prompt(session.state.given_system_prompt)

    async def give_system_prompt(self, given: SystemPromptGiven | None) -> None:
        """Write the system prompt, with `given` in the place of the agent's own or beside it."""
        from acp_agent.agent.prompts import system_prompt  # noqa: PLC0415 - for prompts only
        from acp_agent.workspace import instructions  # noqa: PLC0415 - likewise
        from acp_agent.workspace.scrub import scrub  # noqa: PLC0415 - likewise

        session = self.owner
        user_file = session.services.user_folder / instructions.FILE_NAME
        found = await asyncio.to_thread(instructions.read_instructions, session.cwd, user_file)
        text = system_prompt(
            cwd=session.cwd,
            directories=session.directories,
            instructions=escaped(scrub(found.text, self.secrets)),
            given=given,
        )
        await self.emit(SystemPromptWritten(text=text))
        if found.refused:
            lines = [
                f"{path}: {session.services.translate.rendered(why)}" for path, why in found.refused
            ]
            title = "An AGENTS.md is not used."
            notice = NoticeShown(severity="warning", title=title, description="\n".join(lines))
            await session.tell(notice)  # not journaled: it is about the files as they are now


def _limits(services: Services, chosen: Chosen | None) -> Limits:
    limits = services.config.limits
    requests = None if chosen is None else chosen.uses.max_requests
    return Limits(
        model_requests=min(requests or limits.max_model_requests, limits.max_model_requests),
        retries=limits.max_retries,
        first_byte=limits.first_byte_timeout,
        stall=limits.stall_timeout,
        max_concurrent_calls=limits.max_concurrent_calls,
        refusal_ends_turn=limits.refusal_ends_turn,
        loop_rounds=(limits.loop_warn_after, limits.loop_ask_after, limits.loop_stop_after),
    )
