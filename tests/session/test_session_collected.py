"""What Python's collector of cycles has to look at: not a conversation, whose parts are trees."""

from __future__ import annotations

import gc

from acp_agent.agent.context import Context
from acp_agent.content import DiffPart, Location, TextBlock
from acp_agent.events import (
    AgentText,
    AnyEvent,
    ModelAnswered,
    ModelAsked,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, TurnId
from acp_agent.session.store.event_codec import decode_event, encode_event
from protocol.v1 import types as v1
from protocol.v2 import types as v2

TURNS = 200


def turn(number: int) -> list[AnyEvent]:
    """A turn with an edit, as the journal gives it back."""
    words, message = MessageId(f"words {number}"), MessageId(f"answer {number}")
    call, this = CallId(f"call {number}"), TurnId(f"turn {number}")
    events: list[AnyEvent] = [
        TurnStarted(turn=this),
        UserMessage(message=words, content=(TextBlock(text="Mend a.py"),)),
        ModelAsked(message=message, model="any/model"),
        AgentText(message=message, text="Let me look."),
        ToolCalled(
            call=call,
            message=message,
            name="edit",
            arguments='{"path": "/project/a.py"}',
            title="Edit a.py",
            locations=(Location("/project/a.py", 1),),
        ),
        ModelAnswered(message=message, model="any/model"),
        ToolEnded(call=call, result="done", content=(DiffPart("/project/a.py", "new", "old"),)),
        TurnEnded(turn=this, stop_reason="end_turn"),
    ]
    stored = [decode_event(encode_event(event)) for event in events]
    assert stored == events
    return [event for event in stored if isinstance(event, AnyEvent)]


def test_a_long_session_and_its_messages_are_not_tracked_by_the_collector() -> None:
    gc.collect()
    before = len(gc.get_objects())
    events = [event for number in range(TURNS) for event in turn(number)]
    context = Context()
    context.feed(events)
    gc.collect()  # tuples, too, once it has seen what is in them
    assert len(context.messages) == 3 * TURNS
    assert len(gc.get_objects()) - before < TURNS


def test_an_update_on_its_way_is_nothing_to_the_collector() -> None:
    one = v1.AgentMessageChunk(content=v1.TextContent(text="Hello"), message_id="m")
    two = v2.AgentMessageChunk(content=v2.TextContent(text="Hello"), message_id="m")
    assert not gc.is_tracked(one)
    assert not gc.is_tracked(two)
