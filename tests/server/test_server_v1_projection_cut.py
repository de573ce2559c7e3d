"""What version 1 shows of a call whose turn the process did not survive."""

from __future__ import annotations

from acp_agent.content import CallContent, DiffPart, TerminalPart, text_part
from acp_agent.events import AnyEvent, ToolCalled, ToolEnded, ToolShown, TurnEnded, TurnInterrupted
from acp_agent.ids import CallId, MessageId, TurnId
from acp_agent.server.handshake import ClientProfile
from acp_agent.server.notices import CUT_CALL
from acp_agent.server.v1.projection import Projector
from protocol.codec import typed_json

CALL = CallId("call_1")
MESSAGE = MessageId("msg_1")
CUT = TurnInterrupted(turn=TurnId("turn_1"), message=MESSAGE, calls=(CALL,))


def called(*content: CallContent) -> ToolCalled:
    return ToolCalled(
        call=CALL, message=MESSAGE, name="edit", arguments="{}", title="Edit", content=content
    )


def left(*events: AnyEvent, end: AnyEvent = CUT) -> list[str]:
    """What is to be seen of the call in the end: its parts' types, and texts where they are one."""
    projector = Projector(ClientProfile(), replay=True)
    content: list[str] = []
    for event in (*events, end):
        for update in projector.project(event):
            shown = typed_json.decode_any(typed_json.encode(update))
            if shown.get("toolCallId") == CALL and "content" in shown:
                content = [
                    part["content"]["text"] if part["type"] == "content" else part["type"]
                    for part in shown["content"]
                ]
    return content


def test_the_last_content_stays_and_the_reason_is_added() -> None:
    diff = DiffPart("/w/a", "new\n", "old\n")
    assert left(called(diff)) == ["diff", CUT_CALL]
    event = ToolShown(call=CALL, content=(text_part("half done"),))
    assert left(called(diff), event) == ["half done", CUT_CALL]


def test_a_terminal_of_the_editor_does_not_stay_since_it_is_no_more() -> None:
    event = ToolShown(call=CALL, content=(TerminalPart("term_1"),))
    assert left(called(), event) == [CUT_CALL]


def test_a_call_that_ended_is_not_cut_off() -> None:
    diff = DiffPart("/w/a", "new\n", "old\n")
    assert left(called(diff), ToolEnded(call=CALL)) == ["diff"]


def test_a_call_is_cut_off_by_the_end_of_a_turn_whose_journal_could_not_be_written() -> None:
    end = TurnEnded(turn=CUT.turn, error="the disk is full", error_kind="store")
    assert left(called(), end=end) == [CUT_CALL]
    assert left(called(), ToolEnded(call=CALL), end=end) == []
