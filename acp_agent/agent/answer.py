"""One request to the model and its answer, as events."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

from msgspec import Struct

from acp_agent.agent.cleaning import clean_json
from acp_agent.agent.count import took
from acp_agent.agent.endings import cancelled
from acp_agent.agent.labels import label
from acp_agent.agent.pictures import describe_pictures
from acp_agent.agent.resources import TurnResources
from acp_agent.agent.room import make_room, make_room_after_overflow
from acp_agent.errors import BudgetSpentError, ModelError, StoreError
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    ModelAnswered,
    ModelAsked,
    NoticeShown,
    ThoughtSealed,
    ToolCalled,
    Usage,
    UsageReported,
)
from acp_agent.ids import CallId, new_call_id, new_message_id
from acp_agent.models.base import (
    CallDone,
    Failed,
    FellBack,
    Finished,
    Message,
    ModelInfo,
    ModelRequest,
    Retrying,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ThoughtDone,
)
from acp_agent.models.catalog import cost
from acp_agent.models.retries import RetryPolicy, answering
from acp_agent.workspace.scrub import scrub


class ProposedCall(Struct, frozen=True, kw_only=True):
    """A tool call that the model made and that nobody has looked at yet.

    `shown` are its arguments without secrets, as everybody but the tool sees them.
    """

    call: CallId
    name: str
    arguments: str
    shown: str


class Answer(Struct, frozen=True, kw_only=True):
    """A complete answer: how it stopped and why, the calls in it, what the model was asked last.

    `why` is what the provider said to a refusal of its own; see `Finished`.
    """

    stop: str
    why: str
    calls: Sequence[ProposedCall]
    asked: Message | None


class _Writer:
    """Turns a stream's events into the journal's."""

    def __init__(self, turn: TurnResources, model: ModelInfo) -> None:
        self._turn = turn
        self.model = model  # the one that answers
        self.message = new_message_id()
        self.latest: Message | None = None  # of what the model is asked
        self._done: list[CallDone] = []
        self.finished: Finished | None = None
        self.failed: Failed | None = None
        self._counted = Usage()  # by the provider so far, of the attempt that is being made
        self.calls: list[ProposedCall] = []

    def asked(self) -> ModelAsked:
        return ModelAsked(message=self.message, model=self.model.ref)

    def take(self, batch: Sequence[StreamEvent]) -> list[AnyEvent]:
        events: list[AnyEvent] = []
        for item in batch:
            match item:
                case TextDelta():
                    events.append(AgentText(message=self.message, text=item.text))
                case ThoughtDelta():
                    events.append(AgentThought(message=self.message, text=item.text))
                case ThoughtDone():
                    events.append(
                        ThoughtSealed(
                            message=self.message, provider=self.model.provider, seal=item.seal
                        )
                    )
                case CallDone():
                    # Calls are shown when the answer is whole: one that is cut off and asked for
                    # again must leave no call behind that never ends.
                    self._done.append(item)
                case Retrying():
                    events.extend(self._retry(item))
                case FellBack():
                    events.extend(self._fall_back(item))
                case Finished():
                    self.finished = item
                    events.extend(self._complete(item))
                case Failed():
                    self.failed = item
                    events.extend(self.cut_off())
                case Usage():
                    self._counted = item
                case _:
                    pass
        return events

    def cut_off(self, *, discarded: bool = False) -> list[AnyEvent]:
        """The end of an answer that did not come to its own, and what it took all the same."""
        usage, self._counted = self._counted, Usage()
        cut = ModelAnswered(
            message=self.message,
            model=self.model.ref,
            usage=usage,
            cost=cost(self.model, usage) if usage else None,
            complete=False,
            discarded=discarded,
        )
        return [cut, took(self._turn, self.model, usage)] if usage else [cut]

    def stopped(self) -> list[AnyEvent]:
        """What is still to be written when the turn is stopped here."""
        if self.finished is not None:
            # The answer is complete and its calls are shown, but nobody will run them.
            return [*cancelled(proposed.call for proposed in self.calls)]
        return [] if self.failed is not None else self.cut_off()

    def _retry(self, item: Retrying) -> list[AnyEvent]:
        reason = scrub(item.reason, self._turn.journal.secrets)
        notice = NoticeShown(
            severity="warning",
            title=f"{reason}; trying again in {item.delay:.0f} s "
            f"(attempt {item.attempt + 1} of {item.attempts})",
            description="The answer begins again." if item.discard else "",
        )
        return [*self.cut_off(discarded=True), notice, *self._begin_again()]

    def _fall_back(self, item: FellBack) -> list[AnyEvent]:
        notice = NoticeShown(
            severity="warning",
            title=f"{item.model.ref} answers instead of {self.model.ref}",
            description=scrub(item.reason, self._turn.journal.secrets),
        )
        ended = self.cut_off(discarded=True)
        self.model = item.model
        return [*ended, notice, *self._begin_again()]

    def _begin_again(self) -> list[AnyEvent]:
        self._done.clear()
        self.message = new_message_id()
        return [self.asked()]

    def _complete(self, finished: Finished) -> list[AnyEvent]:
        turn = self._turn
        events: list[AnyEvent] = []
        for done in self._done:
            arguments = done.arguments or "{}"
            proposed = ProposedCall(
                call=new_call_id(),
                name=done.name,
                arguments=arguments,
                shown=clean_json(arguments, turn.journal.secrets),
            )
            self.calls.append(proposed)
            turn.tools.open_calls.add(proposed.call)
            title, kind = label(turn.tools.toolset, proposed.name, proposed.shown)
            events.append(
                ToolCalled(
                    call=proposed.call,
                    message=self.message,
                    name=proposed.name,
                    arguments=proposed.shown,
                    title=title,
                    kind=kind,
                    seal=done.seal,
                )
            )
        usage = finished.usage
        price = cost(self.model, usage) if usage else None
        events.append(
            ModelAnswered(message=self.message, model=self.model.ref, usage=usage, cost=price)
        )
        if usage:
            events.append(
                UsageReported(
                    used=usage.input + usage.output,
                    size=self.model.window,
                    cost=turn.budget.charge(self.model, usage),
                )
            )
        return events


async def make_ready(turn: TurnResources) -> None:
    """See to it that the model can take what the context holds: its pictures, its length.

    That may take requests of its own, each within the budgets.

    Raises:
        StoreError: the journal could not be written.
    """
    await describe_pictures(turn)
    await make_room(turn, turn.models.current)


async def ask_model(turn: TurnResources) -> Answer:
    """Ask the session's model with what the context holds, streaming the answer out.

    Failures that may pass are tried again, visibly; a request that was too long for the model once
    more, with less.

    Raises:
        BudgetSpentError: a budget has no room for asking again.
        ModelError: the provider failed for good; what had streamed is kept.
    """
    model, writer = await _ask(turn)
    failed = writer.failed
    if (
        failed is not None
        and failed.kind == "overflow"
        and await make_room_after_overflow(turn, model)
    ):
        model, writer = await _ask(turn)
        failed = writer.failed
    if failed is not None:
        message = scrub(failed.message, turn.journal.secrets)
        raise ModelError(message, provider=model.provider, status=failed.status)
    if writer.finished is None:
        await turn.journal.emit(*writer.cut_off())
        raise ModelError(
            f"{model.provider} ended its answer without saying so; ask again",
            provider=model.provider,
        )
    return Answer(
        stop=writer.finished.stop,
        why=writer.finished.why,
        calls=writer.calls,
        asked=writer.latest,
    )


async def _within_budget(turn: TurnResources) -> None:
    """See to it that the budgets have room for one more attempt: the last one may have cost much.

    Raises:
        BudgetSpentError: they have none.
        StoreError: what was spent could not be read.
    """
    refused = await turn.budget.refusal()
    if refused is not None:
        raise BudgetSpentError(refused)


async def _ask(turn: TurnResources) -> tuple[ModelInfo, _Writer]:
    """One request, with what may pass tried again; the model that answered, or failed last."""
    # Taken together: the user may choose another model while the driver is loaded.
    model, thought_level = turn.models.current, turn.models.thought_level
    driver = await turn.models.driver(model)
    writer = _Writer(turn, model)
    # From here to the event that says so nothing may come in between: what the user says before
    # that event counts as asked, so it has to be in the request.
    await turn.journal.settled()
    writer.latest = turn.journal.context.latest
    request = ModelRequest(
        model=model,
        system=turn.journal.context.system_prompt or "",
        messages=tuple(turn.journal.context.messages),
        tools=turn.tools.toolset.specs(),
        thought_level=thought_level,
        session=turn.journal.id,
    )
    limits = turn.limits
    policy = RetryPolicy(retries=limits.retries, first_byte=limits.first_byte, stall=limits.stall)
    try:
        await turn.journal.emit(writer.asked())
        others = turn.models.fallbacks(model)
        answers = answering(driver, request, policy, others=others, load=turn.models.driver)
        async with aclosing(answers) as stream:
            async for batch in stream:
                turn.budget.streamed(batch)
                events = writer.take(batch)
                if events:
                    await turn.journal.emit(*events)
                if any(isinstance(item, Retrying | FellBack) for item in batch):
                    await _within_budget(turn)
    except StoreError:
        raise  # what was shown last is not in the journal; there is nothing to close
    except BaseException:
        await turn.journal.emit(*writer.stopped())
        raise
    return writer.model, writer
