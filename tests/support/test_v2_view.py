"""A client's view of a session is what the protocol says of patches, chunks and replacements."""

from __future__ import annotations

import base64
from typing import Any

from tests.support.v2_view import SessionView


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def update(sort: str, **fields: Any) -> dict[str, Any]:
    return {"sessionUpdate": sort} | fields


def test_chunks_append_and_whole_messages_replace() -> None:
    view = SessionView.of(
        [
            update("agent_message", messageId="a", content=[text("A")]),
            update("agent_message_chunk", messageId="a", content=text("B")),
            update("agent_thought_chunk", messageId="t", content=text("hm")),
        ]
    )
    assert (view.text(), view.text("thought")) == ("AB", "hm")
    view.apply(update("agent_message", messageId="a"))
    assert view.text() == "AB"
    view.apply(update("agent_message", messageId="a", content=[text("C")]))
    view.apply(update("agent_message_chunk", messageId="a", content=text("D")))
    assert view.text() == "CD"
    view.apply(update("agent_message", messageId="a", content=None))
    assert view.text() == ""


def test_fields_of_a_call_stay_are_cleared_and_are_replaced() -> None:
    part = {"type": "content", "content": text("x")}
    view = SessionView.of(
        [
            update("tool_call_update", toolCallId="c", title="Look", kind="read", content=[part]),
            update("tool_call_content_chunk", toolCallId="c", content=part),
            update("tool_call_update", toolCallId="c", status="in_progress", kind=None),
        ]
    )
    call = view.calls["c"]
    assert (call["title"], call["kind"], call["status"]) == ("Look", "other", "in_progress")
    assert call["content"] == [part, part]
    view.apply(update("tool_call_update", toolCallId="c", content=None, status="completed"))
    assert (call["content"], call["status"]) == ([], "completed")


def test_bytes_of_a_terminal_are_decoded_by_the_piece_and_may_split_a_character() -> None:
    euro = "€".encode()
    pieces = [base64.b64encode(euro[:1]).decode(), base64.b64encode(euro[1:]).decode()]
    view = SessionView.of(
        [
            update("terminal_update", terminalId="t", command="make", cwd="/"),
            *[update("terminal_output_chunk", terminalId="t", data=data) for data in pieces],
        ]
    )
    assert view.terminals["t"].output == euro
    whole = {"data": base64.b64encode(b"all").decode()}
    view.apply(update("terminal_update", terminalId="t", output=whole, exitStatus={"exitCode": 0}))
    assert view.terminals["t"].output == b"all"
    assert view.terminals["t"].command == "make"
    view.apply(update("terminal_update", terminalId="t", output=None))
    assert view.terminals["t"].output == b""


def test_two_views_compare_by_their_text_and_not_by_its_pieces() -> None:
    pieces = [
        update("user_message", messageId="u", content=[text("go")]),
        update("agent_message_chunk", messageId="a", content=text("A")),
        update("agent_message_chunk", messageId="a", content=text("B")),
    ]
    whole = [pieces[0], update("agent_message", messageId="a", content=[text("AB")])]
    assert SessionView.of(pieces).conversation() == SessionView.of(whole).conversation()
    assert SessionView.of(whole[::-1]).conversation() != SessionView.of(whole).conversation()
