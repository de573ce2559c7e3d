"""What an editor is shown of a conversation of which a part is damaged."""

from __future__ import annotations

import msgspec
import pytest

from acp_agent.config.localization import translator_for
from acp_agent.content import TextBlock
from acp_agent.events import (
    AgentText,
    AnyEvent,
    ModelAnswered,
    ModelAsked,
    NoticeShown,
    ToolCalled,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, SessionId, TurnId
from acp_agent.server.handshake import ClientProfile
from acp_agent.server.v1.projection import Projector
from acp_agent.server.v2.replay import replay
from acp_agent.session.store.damaged_events import damaged_event
from acp_agent.session.store.event_codec import encode_event, recovered_events
from acp_agent.session.store.records import StoredEvent
from protocol.v1 import types as acp
from protocol.v2 import types as acp2

CALL, MESSAGE, TURN = CallId("call_1"), MessageId("msg_1"), TurnId("turn_1")
EVENTS: list[AnyEvent] = [
    TurnStarted(turn=TURN),
    UserMessage(message=MessageId("msg_0"), content=(TextBlock(text="Go"),)),
    ModelAsked(message=MESSAGE, model="x/y"),
    AgentText(message=MESSAGE, text="I look."),
    ToolCalled(call=CALL, message=MESSAGE, name="read", arguments="{}", title="Read"),
    ModelAnswered(message=MESSAGE, model="x/y"),
    ToolStarted(call=CALL),
    ToolEnded(call=CALL, result="text"),
    TurnEnded(turn=TURN, stop_reason="end_turn"),
]


def lost(*seqs: int) -> list[AnyEvent]:
    """The events as they are known where some cannot be read."""
    return recovered_events(
        [
            damaged_event(seq, 0, b"{") if seq in seqs else StoredEvent(seq, 0, event)
            for seq, event in enumerate(EVENTS, 1)
        ]
    )


def test_the_note_is_a_message_in_its_place_where_a_client_shows_no_notices() -> None:
    projector = Projector(ClientProfile(), replay=True, translate=translator_for("zh"))
    updates = [update for event in lost(2) for update in projector.project(event)]
    note = updates[0]
    assert isinstance(note, acp.AgentMessageChunk)
    assert isinstance(note.content, acp.TextContent)
    assert "会话日志在此处已损坏" in note.content.text
    assert note.message_id == "lost_2"


def test_the_note_is_a_notice_where_a_client_shows_those() -> None:
    projector = Projector(ClientProfile(notices=True), replay=True)
    updates = [update for event in lost(2) for update in projector.project(event)]
    assert isinstance(updates[0], acp.Notice)
    assert "is damaged here" in updates[0].title


def test_the_note_is_a_part_of_the_history_of_version_2() -> None:
    updates = [update for _, update in replay(SessionId("sess_1"), lost(2))]
    note = updates[0]
    assert isinstance(note, acp2.AgentMessage)
    assert note.message_id == "lost_2"
    assert "is damaged here" in str(note.content)


@pytest.mark.parametrize("profile", [ClientProfile(), ClientProfile(terminal_output=True)])
@pytest.mark.parametrize("seq", range(1, 10))
def test_each_call_is_shown_from_start_to_end_after_any_loss(
    profile: ClientProfile, seq: int
) -> None:
    events = lost(seq)
    assert sum(isinstance(event, NoticeShown) for event in events) == 1
    assert_told_whole(profile, events, ended=True)


def test_a_call_with_a_damaged_id_is_not_shown_before_it_was_made() -> None:
    for index, event in enumerate(EVENTS):
        body = encode_event(event).replace(b'"call_1"', b'"call_<"')
        changed = msgspec.json.decode(body, type=AnyEvent)
        assert_told_whole(ClientProfile(), [*EVENTS[:index], changed, *EVENTS[index + 1 :]])
    cut = TurnInterrupted(turn=TURN, message=MessageId("msg_2"), calls=(CallId("call_<"),))
    assert_told_whole(ClientProfile(), [*EVENTS[:7], cut])


def assert_told_whole(
    profile: ClientProfile, events: list[AnyEvent], *, ended: bool = False
) -> None:
    projector = Projector(profile, replay=True)
    called: set[str] = set()
    done: set[str] = set()
    for event in events:
        for update in projector.project(event):
            if isinstance(update, acp.ToolCall):
                called.add(update.tool_call_id)
            elif isinstance(update, acp.ToolCallProgress):
                assert update.tool_call_id in called
                if update.status in {"completed", "failed"}:
                    done.add(update.tool_call_id)
    assert not ended or called == done
