"""What of a conversation a model is sent, as a function of the events that shorten it."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from msgspec import structs

from acp_agent.agent.context import Context
from acp_agent.agent.context_shortening import (
    cut_old_results,
    leave_out,
    limit_turns,
    trim_after_overflow,
)
from acp_agent.agent.context_size import context_limits, used_tokens
from acp_agent.agent.context_view import OMITTED_NOTE, SUMMARISED_NOTE
from acp_agent.agent.pictures import unseen_pictures
from acp_agent.agent.token_count import message_tokens
from acp_agent.config.types import ContextConfig
from acp_agent.content import ImageBlock, TextBlock
from acp_agent.events import (
    AgentText,
    AnyEvent,
    CompactionChanged,
    ContextTrimmed,
    ModelAnswered,
    ModelAsked,
    PicturesDescribed,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    TurnStarted,
    Usage,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, TurnId
from acp_agent.models.base import (
    AnswerCall,
    ModelInfo,
    ModelSide,
    ToolResult,
    UserSide,
    UserText,
)

MODEL = ModelInfo(provider="p", id="m", window=100_000, max_output=8_000)
PICTURE = ImageBlock(data="aGk=", mime_type="image/png")


def said(name: str, text: str = "words", *, steering: bool = False) -> UserMessage:
    return UserMessage(message=MessageId(name), content=(TextBlock(text=text),), steering=steering)


def asked(name: str) -> ModelAsked:
    return ModelAsked(message=MessageId(name), model="p/m")


def answer(name: str, text: str = "answer", usage: Usage | None = None) -> list[AnyEvent]:
    message = MessageId(name)
    return [
        asked(name),
        AgentText(message=message, text=text),
        ModelAnswered(message=message, model="p/m", usage=usage or Usage()),
    ]


def step(name: str, result: str, *, images: tuple[ImageBlock, ...] = ()) -> list[AnyEvent]:
    message, call = MessageId(name), CallId(f"call-{name}")
    return [
        asked(name),
        ToolCalled(call=call, message=message, name="read", arguments="{}", title="Read"),
        ModelAnswered(message=message, model="p/m"),
        ToolEnded(call=call, result=result, images=images),
    ]


def turn(name: str, *, steps: int = 0, result: str = "ok") -> list[AnyEvent]:
    events: list[AnyEvent] = [TurnStarted(turn=TurnId(name)), said(f"u-{name}", f"words of {name}")]
    for number in range(steps):
        events += step(f"s-{name}-{number}", result)
    return [
        *events,
        *answer(f"a-{name}", f"answer of {name}"),
        TurnEnded(turn=TurnId(name), stop_reason="end_turn"),
    ]


def fed(*events: AnyEvent | list[AnyEvent]) -> Context:
    context = Context()
    for event in events:
        context.feed(event if isinstance(event, list) else [event])
    return context


def texts(context: Context) -> list[str]:
    return [getattr(part, "text", "") for message in context.messages for part in message.parts]


def trimmed(**fields: object) -> ContextTrimmed:
    return ContextTrimmed(**fields)  # type: ignore[arg-type]  # fields of the event


def test_omitted_messages_are_mentioned_and_the_others_are_unchanged() -> None:
    context = fed(turn("one"), turn("two"), trimmed(keep_from="u-two"))
    assert texts(context) == [OMITTED_NOTE, "words of two", "answer of two"]
    assert context.is_shortened
    assert len(context.entries) == 4


def test_results_are_cut_before_a_message_and_whole_behind_it() -> None:
    context = fed(
        turn("one", steps=1, result="a" * 5_000),
        turn("two", steps=1, result="b" * 5_000),
        trimmed(results_before="u-two", result_limit=1_000),
    )
    first, second = [text for text in texts(context) if len(text) > 500]
    assert len(first) < 1_300
    assert "4,000 characters are left out here; session_search with the call call-s-one-0" in first
    assert second == "b" * 5_000


def test_without_a_message_all_earlier_results_are_cut() -> None:
    context = fed(
        turn("one", steps=1, result="a" * 5_000),
        trimmed(result_limit=1_000),
        turn("two", steps=1, result="b" * 5_000),
    )
    lengths = sorted(len(text) for text in texts(context) if len(text) > 500)
    assert lengths[0] < 1_300
    assert lengths[1] == 5_000


def test_pictures_of_results_that_are_cut_are_not_sent_any_more() -> None:
    context = fed(
        TurnStarted(turn=TurnId("t")),
        said("u"),
        step("s", "a picture", images=(PICTURE,)),
        trimmed(result_limit=1_000),
    )
    (result,) = context.messages[-1].parts
    assert isinstance(result, ToolResult)
    assert result.images == ()
    assert "not shown any more" in result.text


def test_a_summary_replaces_the_messages_before_it() -> None:
    context = fed(
        turn("one"),
        CompactionChanged(compaction="c", status="in_progress"),
        said("u-late", "said meanwhile"),
        CompactionChanged(compaction="c", status="completed", summary="In short."),
        turn("two"),
    )
    assert texts(context) == [
        f"{SUMMARISED_NOTE}\n\nIn short.",
        "said meanwhile",
        "words of two",
        "answer of two",
    ]


def test_dropping_turns_after_a_summary_keeps_the_summary() -> None:
    context = fed(
        turn("one"),
        CompactionChanged(compaction="c", status="in_progress"),
        CompactionChanged(compaction="c", status="completed", summary="In short."),
        turn("two"),
        turn("three"),
        trimmed(keep_from="u-three"),
    )
    assert texts(context)[:3] == [f"{SUMMARISED_NOTE}\n\nIn short.", OMITTED_NOTE, "words of three"]


def test_a_compaction_that_failed_or_was_cancelled_changes_nothing() -> None:
    before = texts(fed(turn("one")))
    for status in ("in_progress", "failed", "cancelled"):
        change = CompactionChanged(compaction="c", status=status)
        assert texts(fed(turn("one"), change)) == before


def test_a_refused_turn_is_removed_with_its_shortened_results() -> None:
    refused: list[AnyEvent] = [
        TurnStarted(turn=TurnId("bad")),
        said("u-bad"),
        CompactionChanged(compaction="c", status="in_progress"),
        CompactionChanged(
            compaction="c", status="completed", summary="Short.", keep_from=MessageId("u-bad")
        ),
        *answer("a-bad"),
        TurnEnded(turn=TurnId("bad"), stop_reason="refusal"),
    ]
    assert texts(fed(turn("one"), turn("two"), refused)) == texts(fed(turn("one"), turn("two")))


def test_a_summary_from_before_a_refused_turn_stays() -> None:
    context = fed(
        turn("one"),
        CompactionChanged(compaction="c", status="in_progress"),
        CompactionChanged(compaction="c", status="completed", summary="In short."),
        TurnStarted(turn=TurnId("bad")),
        said("u-bad"),
        TurnEnded(turn=TurnId("bad"), stop_reason="refusal"),
    )
    assert texts(context) == [f"{SUMMARISED_NOTE}\n\nIn short."]
    assert not context.awaits_answer


def test_an_unknown_message_shortens_nothing() -> None:
    context = fed(turn("one"), trimmed(keep_from="nobody", results_before="nobody", result_limit=9))
    assert texts(context) == texts(fed(turn("one")))


def test_a_description_is_next_to_its_picture() -> None:
    context = fed(
        UserMessage(message=MessageId("u"), content=(PICTURE,)),
        answer("a"),
        step("s", "shot.png", images=(PICTURE,)),
    )
    assert list(unseen_pictures(context)) == ["u", "call-s"]
    context.feed([PicturesDescribed(of="call-s", text="A cat.", model="p/eyes")])
    assert list(unseen_pictures(context)) == ["u"]
    assert texts(context)[-1] == "shot.png\nA cat."
    context.feed([PicturesDescribed(of="u", text="A dog.", model="p/eyes")])
    assert texts(context)[1] == "A dog."
    assert not unseen_pictures(context)


# -- counting ------------------------------------------------------------------------------


def test_before_anything_was_counted_the_estimate_is_on_the_safe_side() -> None:
    english = "The quick brown fox jumps over the lazy dog, and then it sleeps. " * 100
    chinese = "我们需要把重试次数改成五次。" * 100
    assert used_tokens(fed(said("u", english)), MODEL, 0) > len(english) / 4
    assert used_tokens(fed(said("u", chinese)), MODEL, 0) >= len(chinese)


def test_later_messages_are_estimated_from_the_providers_last_count() -> None:
    context = fed(said("u", "x" * 30_000), answer("a", "yes", Usage(input=5_000, output=10)))
    assert used_tokens(context, MODEL, 0) == 5_010
    context.feed([said("v", "x" * 30_000)])
    assert used_tokens(context, MODEL, 0) == pytest.approx(10_010, rel=0.01)


def test_the_count_of_another_model_never_makes_the_estimate_smaller() -> None:
    context = fed(said("u", "x" * 30_000), answer("a", "yes", Usage(input=5_000, output=10)))
    other = ModelInfo(provider="p", id="other")
    assert used_tokens(context, other, 0) >= context.tokens


def test_an_impossible_count_is_ignored() -> None:
    context = fed(said("u", "x" * 30_000), answer("a", "yes", Usage(input=10, output=5)))
    assert used_tokens(context, MODEL, 0) == context.tokens


def test_shortening_makes_the_count_fall_at_once() -> None:
    context = fed(
        turn("one", steps=1, result="x" * 60_000),
        said("u"),
        answer("a", "yes", Usage(input=20_000, output=10)),
    )
    before = used_tokens(context, MODEL, 0)
    context.feed([trimmed(result_limit=2_000)])
    assert used_tokens(context, MODEL, 0) < before / 5


def test_the_context_limit_is_a_fraction_of_the_window_without_the_answer() -> None:
    settings = ContextConfig()
    assert context_limits(MODEL, settings).maximum == 85_000
    assert context_limits(MODEL, ContextConfig(threshold=0.5)).maximum == 50_000
    assert context_limits(MODEL, ContextConfig(reserved_tokens=50_000)).maximum == 50_000
    assert context_limits(MODEL, settings, refused=40_000).maximum == 32_000
    greedy = ModelInfo(provider="p", id="m", window=100_000, max_output=90_000)
    assert context_limits(greedy, settings).maximum == 75_000
    assert context_limits(greedy, ContextConfig(reserved_tokens=100_000)).maximum == 10_000


# -- any conversation, shortened in any way ------------------------------------------------


@st.composite
def conversations(draw: st.DrawFn) -> list[AnyEvent]:
    events: list[AnyEvent] = []
    for number in range(draw(st.integers(1, 6))):
        size = draw(st.sampled_from([10, 3_000, 9_000]))
        events += turn(f"t{number}", steps=draw(st.integers(0, 4)), result="r" * size)
    events += [TurnStarted(turn=TurnId("last")), said("u-last", "the last words")]
    for number in range(draw(st.integers(0, 4))):
        events += step(f"s-last-{number}", "r" * draw(st.sampled_from([10, 9_000])))
        if draw(st.booleans()):
            events.append(said(f"steer-{number}", "steering", steering=True))
    return events


@pytest.mark.parametrize("way", ["before", "after"])
def test_a_message_that_was_too_long_to_be_answered_is_not_in_the_way_of_the_next(way: str) -> None:
    context = fed(
        turn("one"),
        [TurnStarted(turn=TurnId("two")), said("u-two", "long " * 20_000)],
        [TurnEnded(turn=TurnId("two"), error="The conversation is too long.")],
        [TurnStarted(turn=TurnId("three")), said("u-three", "short")],
    )
    view, used = context.view, used_tokens(context, MODEL, 0)
    room = context_limits(structs.replace(MODEL, window=9_000, max_output=1_000), ContextConfig())
    if way == "before":
        change = leave_out(view, room, used, 1.0, 500)
    else:
        change = trim_after_overflow(view, "p/m", used, 500)
    assert change is not None
    context.feed([change])
    assert texts(context) == [OMITTED_NOTE, "short"]


@given(conversations(), st.integers(1_200, 40_000), st.lists(st.integers(0, 3), max_size=5))
def test_shortening_keeps_results_of_calls_and_unanswered_messages(
    events: list[AnyEvent], window: int, ways: list[int]
) -> None:
    context = fed(events)
    asked_last = context.messages[-1]
    model = ModelInfo(provider="p", id="m", window=window, max_output=100)
    room = context_limits(model, ContextConfig())
    for way in ways:
        view, used = context.view, used_tokens(context, model, 0)
        change: ContextTrimmed | None
        match way:
            case 0:
                before = cut_old_results(view, room, used, 1.0, 500)
                change = (
                    None
                    if before is None
                    else trimmed(results_before=view.entries[before].id, result_limit=500)
                )
            case 1:
                change = leave_out(view, room, used, 1.0, 500)
            case 2:
                change = trim_after_overflow(view, "p/m", used, 500)
            case _:
                change = limit_turns(view, 2)
        if change is not None:
            tokens = context.tokens
            context.feed([change])
            assert context.tokens <= tokens + 200  # the note that something is missing
    calls: list[CallId] = []
    for message in context.messages:
        here = [part.call for part in message.parts if isinstance(part, ToolResult)]
        assert here == calls
        calls = [part.call for part in message.parts if isinstance(part, AnswerCall)]
    assert not calls
    assert type(context.messages[-1]) is type(asked_last)
    if not any(isinstance(part, ToolResult) for part in asked_last.parts):
        assert context.messages[-1] == asked_last
    again = fed(events)
    assert again.tokens == sum(map(message_tokens, again.messages))
    assert any("the last words" in text for text in texts(context))
    assert not isinstance(context.messages[0], ModelSide)
    assert isinstance(context.messages[0], UserSide)
    assert isinstance(context.messages[0].parts[0], UserText)
