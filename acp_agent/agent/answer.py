"""Ask the model, and convert its streamed answer to events."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec import Struct

from acp_agent.agent.context_shortening import shorten_after_overflow, shorten_if_needed
from acp_agent.agent.context_size import side_request_usage
from acp_agent.agent.continued_text import ContinuedText, DisplayedText, FollowUp
from acp_agent.agent.remote_pictures import ShownAnswer
from acp_agent.agent.resources import TurnResources
from acp_agent.agent.scrub_events import scrub_json
from acp_agent.agent.tool_calls import ProposedCall, cancelled_ends
from acp_agent.errors import BudgetSpentError, ModelError, StoreError, ToolError
from acp_agent.events import (
    AnyEvent,
    ModelAnswered,
    ModelAsked,
    NoticeShown,
    ThoughtEnded,
    ToolCalled,
    Usage,
    UsageReported,
    agent_notice,
)
from acp_agent.ids import MessageId, new_call_id, new_message_id
from acp_agent.models.base import (
    CallCut,
    CallDone,
    Cited,
    Failed,
    FellBack,
    Finished,
    ModelInfo,
    ModelRequest,
    Retrying,
    SearchEnded,
    SearchStarted,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ThoughtDone,
    UserSide,
    UserText,
)
from acp_agent.models.dialects.written_calls import WrittenCalls
from acp_agent.models.retries import RetryPolicy, stream_with_fallback
from acp_agent.tools.spec import ToolSpec
from acp_agent.workspace.scrub import scrub

if TYPE_CHECKING:  # rarely needed
    from acp_agent.agent.provider_search import AnswerSearches
    from acp_agent.models.dialects.form import Tools


class Answer(Struct, frozen=True, kw_only=True):
    """An answer that the provider finished.

    `stop` is the stop reason and `why` the provider's reason for a refusal; see `Finished`.
    `message` is the message in which the user sees the answer, `text` the end of its text, and
    `visible` is true if the answer has any text. `cut` is the call that the token limit cut off.
    """

    stop: str
    why: str
    calls: Sequence[ProposedCall]
    message: MessageId
    visible: bool
    text: str
    cut: CallCut | None


class _AnswerEvents:
    """Converts the events of a stream to events of the journal."""

    def __init__(self, turn: TurnResources, model: ModelInfo, after: FollowUp) -> None:
        self._turn = turn
        self.model = model  # a fallback replaces it
        self.message = new_message_id()
        self._after = after
        self.text = ContinuedText(after.text)
        self.visible = False
        self.cut: CallCut | None = None
        self._calls_done: list[CallDone] = []
        self._searches: AnswerSearches | None = None
        self._display = ShownAnswer(self.message, is_continued=after.continues is not None)
        self.finished: Finished | None = None
        self.failed: Failed | None = None
        self._usage = Usage()  # what the provider has reported for the current attempt
        self.calls: list[ProposedCall] = []

    def start(self, note: str = "") -> ModelAsked:
        return ModelAsked(
            message=self.message, model=self.model.ref, note=note, continues=self._after.continues
        )

    def convert(self, batch: Sequence[StreamEvent]) -> list[AnyEvent]:
        events: list[AnyEvent] = []
        for item in batch:
            match item:
                case TextDelta():
                    self.visible = self.visible or not item.text.isspace()
                    if text := self.text.feed(item.text):
                        events += self._display.say(text)
                case ThoughtDelta():
                    events += self._display.think(item.text)
                case ThoughtDone():
                    events += self._flush()
                    events.append(
                        ThoughtEnded(
                            message=self.message,
                            provider=self.model.provider,
                            provider_data=item.provider_data,
                        )
                    )
                case CallDone():
                    # Calls are shown only when the answer is complete. An answer that is cut off
                    # and retried must not leave a call that never ends.
                    self._calls_done.append(item)
                case CallCut():
                    self.cut = item
                case SearchStarted() | SearchEnded() | Cited():
                    events += self._flush()
                    events += self._search(item)
                case Retrying():
                    events.extend(self._retry(item))
                case FellBack():
                    events.extend(self._fall_back(item))
                case Finished():
                    self.finished = item
                    events.extend(self._complete(item))
                case Failed():
                    self.failed = item
                    events.extend(
                        self.cut_off(failed="unreachable" if item.unreachable else item.kind)
                    )
                case Usage():
                    self._usage = item
        return events

    def _flush(self) -> list[AnyEvent]:
        """Return the text and thoughts that were held back, before another kind of event."""
        text = self.text.end()
        return [*(self._display.say(text) if text else ()), *self._display.flush()]

    def _search(self, item: SearchStarted | SearchEnded | Cited) -> list[AnyEvent]:
        if self._searches is None:
            from acp_agent.agent.provider_search import AnswerSearches  # noqa: PLC0415 - rarely needed

            self._searches = AnswerSearches(self._turn.journal.secrets)
        return self._searches.show(item, self.message, self.model.provider)

    def cut_off(self, *, discarded: bool = False, failed: str = "") -> list[AnyEvent]:
        """Return the events that end an answer that was cut off; `failed` is the kind of error."""
        usage, self._usage = self._usage, Usage()
        cut = ModelAnswered(
            message=self.message,
            model=self.model.ref,
            usage=usage,
            cost=self.model.cost(usage) if usage else None,
            complete=False,
            discarded=discarded,
            stop=failed,
        )
        ends: list[AnyEvent] = [*self._flush(), cut]
        if self._searches is not None:
            ends = [*ends[:-1], *self._searches.cut_off(), cut]
            self._searches = None
        return [*ends, side_request_usage(self._turn, self.model, usage)] if usage else ends

    def stopped(self) -> list[AnyEvent]:
        """Return the events that close the answer when the turn is cancelled now."""
        if self.finished is not None:
            # The answer is complete and shows its calls, but they will not run.
            return [*cancelled_ends(proposed.call for proposed in self.calls)]
        return [] if self.failed is not None else self.cut_off()

    def _retry(self, item: Retrying) -> list[AnyEvent]:
        reason = scrub(item.reason, self._turn.journal.secrets)
        notice = NoticeShown(
            severity="warning",
            title=f"{reason}; trying again in {item.delay:.0f} s "
            f"(attempt {item.attempt + 1} of {item.attempts})",
            description="The answer begins again." if item.discard else "",
        )
        ended = self.cut_off(discarded=True)
        if self.visible:  # keeps clients from joining this text to the next attempt
            ended += agent_notice(self._turn.user.translate("The answer begins again."))
        return [*ended, notice, *self._start_over()]

    def _fall_back(self, item: FellBack) -> list[AnyEvent]:
        notice = NoticeShown(
            severity="warning",
            title=f"{item.model.ref} answers instead of {self.model.ref}",
            description=scrub(item.reason, self._turn.journal.secrets),
        )
        ended = self.cut_off(discarded=True)
        self.model = item.model
        return [*ended, notice, *self._start_over()]

    def _start_over(self) -> list[AnyEvent]:
        self._calls_done.clear()
        self.visible, self.cut, self.text = False, None, ContinuedText(self._after.text)
        self.message = new_message_id()
        self._display = ShownAnswer(self.message, is_continued=self._after.continues is not None)
        return [self.start()]

    def _complete(self, finished: Finished) -> list[AnyEvent]:
        turn = self._turn
        events = self._flush()
        # A refusal ends the turn, and its calls do not run.
        for done in self._calls_done if finished.stop != "refusal" else ():
            arguments = done.arguments or "{}"
            proposed = ProposedCall(
                call=new_call_id(),
                name=done.name,
                arguments=arguments,
                safe_arguments=scrub_json(arguments, turn.journal.secrets),
            )
            self.calls.append(proposed)
            turn.tools.open_calls.add(proposed.call)
            title, kind = turn.tools.toolset.call_title(proposed.name, proposed.safe_arguments)
            events.append(
                ToolCalled(
                    call=proposed.call,
                    message=self.message,
                    name=proposed.name,
                    arguments=proposed.safe_arguments,
                    title=title,
                    kind=kind,
                    provider_data=done.provider_data,
                )
            )
        usage = finished.usage
        price = self.model.cost(usage) if usage else None
        events.append(
            ModelAnswered(
                message=self.message,
                model=self.model.ref,
                usage=usage,
                cost=price,
                stop="" if finished.stop in {"end_turn", "tool_calls"} else finished.stop,
                cut=None if self.cut is None else (self.cut.name, self.cut.size),
            )
        )
        if usage:
            events.append(
                UsageReported(
                    used=usage.input + usage.output,
                    size=self.model.window,
                    cost=turn.budget.charge(self.model, usage),
                )
            )
        if self._searches is not None:
            events = [*self._searches.cut_off(), *events]
            events += self._searches.sources(turn.user.translate("Sources:"))
        return events


async def prepare_context(turn: TurnResources) -> None:
    """Make the context fit the model: describe pictures and shorten the conversation.

    This may send side requests, each within the budgets.

    Raises:
        StoreError: the journal could not be written.
    """
    if not turn.models.current.vision:
        from acp_agent.agent.pictures import describe_pictures  # noqa: PLC0415 - rarely needed

        await describe_pictures(turn)
    await shorten_if_needed(turn, turn.models.current)


async def ask_model(turn: TurnResources, after: FollowUp) -> Answer:
    """Send the context to the session's model and stream its answer.

    Temporary failures are retried, and the user sees it. A request that was too long is shortened
    and sent again.

    Raises:
        BudgetSpentError: a retry would exceed a budget.
        ModelError: the provider failed, even after retries; the streamed text stays in the journal.
    """
    model, writer = await _ask(turn, after, after.note)
    failed = writer.failed
    if (
        failed is not None
        and failed.kind == "overflow"
        and await shorten_after_overflow(turn, model)
    ):
        model, writer = await _ask(turn, after, "")  # the note is in the context already
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
        message=after.continues or writer.message,
        visible=writer.visible,
        text=writer.text.tail,
        cut=writer.cut,
    )


def _known_tools(turn: TurnResources) -> Tools:
    from acp_agent.models.dialects.form import Tools  # noqa: PLC0415 - rarely needed

    toolset = turn.tools.toolset

    def knows(name: str) -> bool:
        try:
            toolset.get(name)
        except ToolError:
            return False
        return True

    return Tools(toolset.specs(), knows)


def _offered_tools(turn: TurnResources, model: ModelInfo) -> tuple[Sequence[ToolSpec], bool]:
    """Return the tools of a request, and whether the provider may also search the web."""
    if turn.models.web_search(model) is None:
        return turn.tools.toolset.specs(), False
    from acp_agent.agent.provider_search import offered_tools  # noqa: PLC0415 - not every provider

    return offered_tools(turn, model)


async def _check_budget(turn: TurnResources) -> None:
    """Check the budgets before one more attempt.

    Raises:
        BudgetSpentError: the attempt would exceed a budget.
        StoreError: the amounts spent could not be read.
    """
    refused = await turn.budget.refusal()
    if refused is not None:
        raise BudgetSpentError(refused)


async def _ask(turn: TurnResources, after: FollowUp, note: str) -> tuple[ModelInfo, _AnswerEvents]:
    """Send one request with retries; return the model that was asked last, and its answer."""
    # Both are read here: the user may choose another model while the driver is loaded.
    model, thought_level = turn.models.current, turn.models.thought_level
    driver = await turn.models.driver(model)
    writer = _AnswerEvents(turn, model, after)
    # After `flush` nothing may be awaited before the event that starts the request. User messages
    # that precede that event count as sent, so the request must contain them.
    await turn.journal.flush()
    messages = tuple(turn.journal.context.messages)
    if note:
        messages += (UserSide((UserText(note),)),)
    tools, searches = _offered_tools(turn, model)
    request = ModelRequest(
        model=model,
        system=turn.journal.context.system_prompt or "",
        messages=messages,
        tools=tools,
        web_search=searches,
        thought_level=thought_level,
        session=turn.journal.id,
    )
    limits = turn.limits
    policy = RetryPolicy(retries=limits.retries, first_byte=limits.first_byte, stall=limits.stall)
    calls = WrittenCalls(lambda: _known_tools(turn))
    texts = DisplayedText(turn.hooks, turn.journal.secrets)
    try:
        asked = turn.journal.write(writer.start(note))  # meanwhile the model begins to answer
        fallbacks, load = turn.models.fallbacks(model), turn.models.driver
        answers = stream_with_fallback(driver, request, policy, fallbacks=fallbacks, load=load)
        async with aclosing(answers) as stream:
            async for batch in stream:
                await asked
                turn.budget.streamed(batch)
                events = writer.convert(await texts.display(calls.read(batch)))
                if events:
                    await turn.journal.emit(*events)
                if any(isinstance(item, Retrying | FellBack) for item in batch):
                    await _check_budget(turn)
    except StoreError:
        raise  # the last events were not written, so nothing has to be closed
    except BaseException:
        await turn.journal.emit(*writer.stopped())
        raise
    return writer.model, writer
