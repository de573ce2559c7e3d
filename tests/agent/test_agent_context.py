"""What a model is sent, as a function of a session's events."""

from __future__ import annotations

import pytest

from acp_agent.agent.context import CANCELLED_NOTE, INTERRUPTED_NOTE, Context
from acp_agent.agent.pending_messages import NO_RESULT
from acp_agent.content import ImageBlock, ResourceBlock, ResourceContents, TextBlock
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    ModelAnswered,
    ModelAsked,
    ThoughtEnded,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, TurnId
from acp_agent.models.base import (
    AnswerCall,
    AnswerText,
    AnswerThought,
    Message,
    ModelSide,
    ToolResult,
    UserImage,
    UserSide,
    UserText,
)

TURN = TurnId("turn")


def said(text: str, **more: object) -> UserMessage:
    return UserMessage(message=MessageId("u"), content=(TextBlock(text=text),), **more)  # type: ignore[arg-type]  # fields of the event


def asked(message: str = "a") -> ModelAsked:
    return ModelAsked(message=MessageId(message), model="m")


def text(piece: str, message: str = "a") -> AgentText:
    return AgentText(message=MessageId(message), text=piece)


def answered(message: str = "a", **more: object) -> ModelAnswered:
    return ModelAnswered(message=MessageId(message), model="m", **more)  # type: ignore[arg-type]  # fields of the event


def called(call: str, message: str = "a") -> ToolCalled:
    return ToolCalled(
        call=CallId(call),
        message=MessageId(message),
        name="read",
        arguments='{"path":"x"}',
        title="Read x",
    )


def ended(call: str, result: str = "ok", *, failed: bool = False) -> ToolEnded:
    return ToolEnded(call=CallId(call), result=result, failed=failed)


def call_part(call: str) -> AnswerCall:
    return AnswerCall(call=CallId(call), name="read", arguments='{"path":"x"}')


def result_part(call: str, result: str = "ok", *, failed: bool = False) -> ToolResult:
    return ToolResult(call=CallId(call), text=result, failed=failed)


def fed(*events: AnyEvent) -> Context:
    context = Context()
    context.feed(events)
    return context


def test_pieces_of_an_answer_become_one_text() -> None:
    context = fed(said("hi"), asked(), text("Hel"), text("lo"), answered())
    assert list(context.messages) == [
        UserSide((UserText("hi"),)),
        ModelSide((AnswerText("Hello"),)),
    ]
    assert not context.awaits_answer


def test_an_answer_that_is_still_streaming_is_not_sent() -> None:
    context = fed(said("hi"), asked(), text("Hel"))
    assert list(context.messages) == [UserSide((UserText("hi"),))]


def test_results_follow_in_the_order_of_the_calls_however_they_ended() -> None:
    context = fed(
        said("hi"), asked(), called("one"), called("two"), answered(), ended("two"), ended("one")
    )
    assert context.messages[-1] == UserSide((result_part("one"), result_part("two")))
    assert context.awaits_answer


def test_nothing_is_sent_while_a_call_has_no_result() -> None:
    context = fed(said("hi"), asked(), called("one"), called("two"), answered(), ended("one"))
    assert isinstance(context.messages[-1], ModelSide)


def test_a_message_during_tool_calls_follows_their_results() -> None:
    context = fed(
        said("hi"),
        asked(),
        called("one"),
        answered(),
        said("also look at y", steering=True),
        ended("one"),
    )
    assert list(context.messages[-2:]) == [
        UserSide((result_part("one"),)),
        UserSide((UserText("also look at y"),)),
    ]


def test_a_message_during_an_answer_follows_that_answer() -> None:
    context = fed(said("hi"), asked(), said("wait", steering=True), text("Hello"), answered())
    assert list(context.messages) == [
        UserSide((UserText("hi"),)),
        ModelSide((AnswerText("Hello"),)),
        UserSide((UserText("wait"),)),
    ]
    assert context.awaits_answer


def test_a_repeated_answer_replaces_the_first() -> None:
    context = fed(
        said("hi"),
        asked("a"),
        text("Hal", "a"),
        answered("a", complete=False, discarded=True),
        asked("b"),
        text("Hello", "b"),
        answered("b"),
    )
    assert context.messages[-1] == ModelSide((AnswerText("Hello"),))
    assert len(context.messages) == 2


def test_a_message_during_a_retry_follows_its_answer() -> None:
    context = fed(
        said("hi"),
        asked("a"),
        said("wait", steering=True),
        answered("a", complete=False, discarded=True),
        asked("b"),
        text("Hello", "b"),
        answered("b"),
    )
    assert list(context.messages) == [
        UserSide((UserText("hi"),)),
        ModelSide((AnswerText("Hello"),)),
        UserSide((UserText("wait"),)),
    ]
    assert context.awaits_answer


def test_a_cancelled_turn_keeps_the_partial_answer_and_tells_the_model() -> None:
    context = fed(
        TurnStarted(turn=TURN),
        said("hi"),
        asked(),
        text("Hel"),
        answered(complete=False),
        TurnEnded(turn=TURN, stop_reason="cancelled"),
        said("again"),
    )
    assert list(context.messages[1:]) == [
        ModelSide((AnswerText("Hel"),)),
        UserSide((UserText(CANCELLED_NOTE), UserText("again"))),
    ]


def test_a_crash_gives_every_open_call_a_result_and_tells_the_model() -> None:
    context = fed(
        TurnStarted(turn=TURN),
        said("hi"),
        asked(),
        text("I look"),
        called("one"),
        answered(),
        TurnInterrupted(turn=TURN, message=MessageId("i"), calls=(CallId("one"),)),
        said("again"),
    )
    assert list(context.messages[1:]) == [
        ModelSide((AnswerText("I look"), call_part("one"))),
        UserSide((result_part("one", NO_RESULT, failed=True),)),
        UserSide((UserText(INTERRUPTED_NOTE), UserText("again"))),
    ]


def test_a_crash_in_mid_answer_keeps_the_received_text() -> None:
    context = fed(
        TurnStarted(turn=TURN),
        said("hi"),
        asked(),
        text("Hel"),
        TurnInterrupted(turn=TURN, message=MessageId("i"), cut=MessageId("a")),
    )
    assert context.messages[-1] == ModelSide((AnswerText("Hel"),))


def test_a_refused_turn_is_removed_from_the_conversation() -> None:
    context = fed(
        TurnStarted(turn=TURN),
        said("fine"),
        asked(),
        text("Sure"),
        answered(),
        TurnEnded(turn=TURN, stop_reason="end_turn"),
        TurnStarted(turn=TURN),
        said("not fine"),
        asked(),
        answered(),
        TurnEnded(turn=TURN, stop_reason="refusal"),
    )
    assert list(context.messages) == [
        UserSide((UserText("fine"),)),
        ModelSide((AnswerText("Sure"),)),
    ]


def test_an_encrypted_thought_is_saved_with_its_signature() -> None:
    context = fed(
        said("hi"),
        asked(),
        AgentThought(message=MessageId("a"), text="hm"),
        AgentThought(message=MessageId("a"), text="m"),
        ThoughtEnded(message=MessageId("a"), provider="p", provider_data={"signature": "s"}),
        text("Hello"),
        answered(),
    )
    assert context.messages[-1] == ModelSide(
        (
            AnswerThought(text="hmm", provider="p", provider_data={"signature": "s"}),
            AnswerText("Hello"),
        )
    )


def test_a_command_that_the_agent_answers_itself_is_unknown_to_the_model() -> None:
    context = fed(said("/status", local=True), text("fine"), answered(discarded=True), said("hi"))
    assert list(context.messages) == [UserSide((UserText("hi"),))]


def test_pictures_and_embedded_files_reach_the_model() -> None:
    picture = ImageBlock(data="AAAA", mime_type="image/png")
    file = ResourceBlock(resource=ResourceContents(uri="file:///a.py", text="x = 1"))
    context = fed(UserMessage(message=MessageId("u"), content=(picture, file), attached="[note]"))
    assert context.messages[0] == UserSide(
        (
            UserImage(picture),
            UserText('<resource uri="file:///a.py">\nx = 1\n</resource>'),
            UserText("[note]"),
        )
    )


EVENTS: list[AnyEvent] = [
    TurnStarted(turn=TURN),
    said("hi"),
    asked("a"),
    text("Hel", "a"),
    said("and more", steering=True),
    called("one", "a"),
    answered("a"),
    ended("one"),
    asked("b"),
    text("Done", "b"),
    answered("b"),
    TurnEnded(turn=TURN, stop_reason="end_turn"),
]


@pytest.mark.parametrize("cut", range(1, len(EVENTS)))
def test_later_messages_begin_with_the_earlier_ones(cut: int) -> None:
    context = Context()
    context.feed(EVENTS[:cut])
    before: list[Message] = list(context.messages)
    context.feed(EVENTS[cut:])
    assert list(context.messages[: len(before)]) == before


def test_a_message_counts_as_unsent_until_a_request_starts() -> None:
    context = fed(said("Go"), asked(), text("I see."), answered())
    before = context.has_unsent_message
    context.feed([said("Thank you", steering=True)])
    assert (before, context.has_unsent_message) == (False, True)
    context.feed([asked("b"), answered("b")])
    assert context.has_unanswered_message  # the model had nothing to say
    assert not context.has_unsent_message
