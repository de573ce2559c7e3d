"""Calls, and the terminals of commands, as a client of version 2 is told of them."""

from __future__ import annotations

import base64

from acp_agent.content import DiffPart, Location, text_part
from acp_agent.events import (
    AnyEvent,
    ToolEnded,
    ToolOutput,
    ToolShown,
    ToolStarted,
    TurnInterrupted,
    TurnStarted,
)
from acp_agent.ids import MessageId
from acp_agent.server.notices import CUT_CALL
from tests.server.v2_projecting import CALL, TURN, assert_same_replay, called, live, of, replayed


def test_only_changed_fields_of_a_call_are_sent() -> None:
    diff = DiffPart("/w/a", "new\n", "old\n")
    locations = (Location(path="/w/a", line=1),)
    events: list[AnyEvent] = [
        called("edit", "{}", kind="edit"),
        ToolShown(call=CALL, title="Do edit", content=(diff,), locations=locations),
        ToolStarted(call=CALL),
        ToolShown(call=CALL, title="Edit a", content=(diff, text_part("Half"))),
        ToolEnded(call=CALL, content=(diff, text_part("Half")), locations=locations),
    ]
    first, live_updates, started, renamed, ended = of(live(events), "tool_call_update")
    assert first == {
        "toolCallId": CALL,
        "title": "Do edit",
        "name": "edit",
        "kind": "edit",
        "status": "pending",
        "rawInput": {},
        "capabilities": {"cancel": {}},
    }
    assert sorted(live_updates) == ["content", "locations", "toolCallId"]
    assert live_updates["locations"] == [{"path": "/w/a", "line": 1}]
    assert started == {"toolCallId": CALL, "status": "in_progress"}
    assert renamed == {"toolCallId": CALL, "title": "Edit a"}
    (grown,) = of(live(events), "tool_call_content_chunk")
    assert grown["content"] == {"type": "content", "content": {"type": "text", "text": "Half"}}
    assert ended == {"toolCallId": CALL, "status": "completed", "capabilities": None}
    assert_same_replay(events)


def test_content_that_is_not_as_it_was_replaces_it() -> None:
    events: list[AnyEvent] = [
        called(),
        ToolShown(call=CALL, content=(text_part("One"), text_part("Two"))),
        ToolShown(call=CALL, content=(text_part("Two"),)),
        ToolEnded(call=CALL, content=(), raw_output={"a": [1, None]}),
    ]
    contents = [
        update["content"] for update in of(live(events), "tool_call_update") if "content" in update
    ]
    assert [len(content) for content in contents] == [2, 1, 0]
    assert_same_replay(events)


def test_a_command_is_a_terminal_that_can_be_stopped_while_it_runs() -> None:
    arguments = '{"command":"make","timeout":5}'
    events: list[AnyEvent] = [
        called("shell", arguments, kind="execute"),
        ToolShown(call=CALL, content=(text_part("```sh\nmake\n```"),)),
        ToolStarted(call=CALL, cwd="/w"),
        ToolOutput(call=CALL, text="naïve 好"),
        ToolOutput(call=CALL, text=" 🙂\nend\n"),
        ToolEnded(
            call=CALL, failed=True, signal="SIGTERM", content=(text_part("shown at the end"),)
        ),
    ]
    updates = live(events)
    assert of(updates, "terminal_update") == [
        {
            "terminalId": CALL,
            "command": "make",
            "cwd": "/w",
            "capabilities": {"cancel": {}},
        },
        {"terminalId": CALL, "exitStatus": {"signal": "SIGTERM"}, "capabilities": None},
    ]
    pieces = [base64.b64decode(update["data"]) for update in of(updates, "terminal_output_chunk")]
    assert [piece.decode() for piece in pieces] == ["naïve 好", " 🙂\r\nend\r\n"]
    calls = of(updates, "tool_call_update")
    assert calls[-2]["content"] == [{"type": "terminal", "terminalId": CALL}]
    assert "content" not in calls[-1]
    (snapshot,) = of(replayed(events), "terminal_update")
    assert base64.b64decode(snapshot["output"]["data"]) == b"".join(pieces)
    assert "capabilities" not in snapshot
    assert_same_replay(events)


def test_a_command_that_ended_for_another_reason_shows_it_next_to_its_terminal() -> None:
    events: list[AnyEvent] = [
        called("shell", '{"command":"make"}'),
        ToolStarted(call=CALL, cwd="/w"),
        ToolEnded(call=CALL, failed=True, content=(text_part("it could not be started"),)),
    ]
    last = of(live(events), "tool_call_update")[-1]
    assert [part["type"] for part in last["content"]] == ["terminal", "content"]
    assert of(live(events), "terminal_update")[-1]["exitStatus"] == {}
    assert_same_replay(events)


def test_output_of_a_call_without_a_command_is_added_to_its_content() -> None:
    events: list[AnyEvent] = [
        called("mcp"),
        ToolStarted(call=CALL),
        ToolOutput(call=CALL, text="one"),
        ToolOutput(call=CALL, text="two"),
        ToolEnded(call=CALL),
    ]
    updates = live(events)
    assert of(updates, "terminal_output_chunk") == []
    assert [
        len(update["content"]) for update in of(updates, "tool_call_update") if "content" in update
    ] == [1]
    assert len(of(updates, "tool_call_content_chunk")) == 1
    assert_same_replay(events)


def test_content_of_a_call_stays_when_its_turn_is_interrupted() -> None:
    diff = DiffPart("/w/a", "new\n", "old\n")
    cut = TurnInterrupted(turn=TURN, message=MessageId("msg_9"), calls=(CALL,))
    events: list[AnyEvent] = [TurnStarted(turn=TURN), called("edit", content=(diff,)), cut]
    (call,) = of(replayed(events), "tool_call_update")
    assert [part["type"] for part in call["content"]] == ["diff", "content"]
    assert call["content"][1]["content"]["text"] == CUT_CALL
    assert call["status"] == "failed"
    assert_same_replay(events)
