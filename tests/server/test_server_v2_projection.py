"""What a client of version 2 is shown of a session, live and in a replay."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from acp_agent.content import DiffPart, Location, TextBlock, text_part
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    CompactionChanged,
    CompactionSummaryText,
    ModelAnswered,
    ModelAsked,
    NoticeShown,
    PermissionAsked,
    PermissionDecided,
    PlanChanged,
    PlanEntry,
    PlanRemoved,
    TitleChanged,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    ToolShown,
    ToolStarted,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    Usage,
    UsageReported,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, SessionId, TurnId
from acp_agent.server.interrupted import CUT_CALL
from acp_agent.server.v2.projection import Projector
from acp_agent.server.v2.replay import replay
from acp_agent.session.interruption import interruption
from protocol.codec import typed_json
from tests.support.model_server import Call, ModelServer, Stall, Thought, answer
from tests.support.open_session import Desk, open_desk, presses
from tests.support.v2_view import SessionView
from tests.support.wire_schema import wire_schema

Json = dict[str, Any]

CALL = CallId("call_1")
MESSAGE = MessageId("msg_1")
TURN = TurnId("turn_1")


@pytest.fixture
async def desk(tmp_path: Path, model_server: ModelServer) -> AsyncIterator[Desk]:
    async with open_desk(tmp_path, model_server) as one:
        yield one


def as_json(updates: Iterable[object]) -> list[Json]:
    """Updates as they go out; each is one that the protocol's schema allows."""
    written = [typed_json.encode(one) for one in updates]
    for update in written:
        assert not problem(update), (problem(update), update)
    return [msgspec.json.decode(update) for update in written]


@cache
def problem(update: bytes) -> str | None:
    """What the protocol's schema says against an update."""
    schema = wire_schema("v2")
    params = {"sessionId": "sess_1", "update": msgspec.json.decode(update)}
    return schema and schema.problem("session/update", "client", "Notification", params)


def live(events: Sequence[AnyEvent], projector: Projector | None = None) -> list[Json]:
    projector = projector or Projector()
    return as_json(update for event in events for update in projector.project(event))


def replayed(events: Sequence[AnyEvent]) -> list[Json]:
    return as_json(update for _, update in replay(SessionId("sess_1"), events))


def of(updates: Iterable[Json], kind: str) -> list[Json]:
    """The updates of one kind, without their kind."""
    return [
        {key: value for key, value in one.items() if key != "sessionUpdate"}
        for one in updates
        if one["sessionUpdate"] == kind
    ]


def states(updates: Iterable[Json]) -> list[str]:
    return [one["state"] for one in of(updates, "state_update")]


def same(events: Sequence[AnyEvent]) -> None:
    """Whoever saw the session live knows what whoever saw the replay knows, at any moment."""
    for end in range(1, len(events) + 1):
        seen, told = SessionView.of(live(events[:end])), SessionView.of(replayed(events[:end]))
        assert told.conversation() == seen.conversation()
        assert told.usage == seen.usage
    # And whoever comes in the middle and stays.
    for middle in range(len(events)):
        projector = Projector()
        for event in events[:middle]:
            projector.project(event)
        view = SessionView.of(replayed(events[:middle]) + live(events[middle:], projector))
        assert view.conversation() == SessionView.of(live(events)).conversation()


def called(
    name: str = "read", arguments: str = '{"path":"a"}', call: CallId = CALL, **more: Any
) -> ToolCalled:
    return ToolCalled(
        call=call, message=MESSAGE, name=name, arguments=arguments, title=f"Do {name}", **more
    )


async def test_a_whole_session_is_the_same_live_and_in_a_replay(
    desk: Desk, model_server: ModelServer
) -> None:
    (desk.folder / "greeting.py").write_text('print("Hello")\n')
    steps = [{"content": "Look", "status": "in_progress"}]
    model_server.add(
        answer(
            Thought("First "), Thought("a plan."), "I pl", "an. ", Call("todo", {"todos": steps})
        ),
        answer(
            "Reading.",
            Call("read", {"path": "greeting.py"}),
            Call("grep", {"pattern": "Hello"}),
            Call("read", {"path": "missing.py"}),
        ),
        answer(Call("edit", {"path": "greeting.py", "old": "Hello", "new": "Good day"})),
        answer(Call("write", {"path": "new.py", "content": "x = 1\n"})),
        answer(Call("shell", {"command": "echo out; echo 好 >&2; exit 3"})),
        answer(Call("shell", {"cmd": "typo"}), Call("no_such_tool", {})),
        answer(Call("todo", {"todos": []})),
        answer("All ", "done ✓ 好."),
        answer("And more."),
    )
    assert await desk.say("work on it") == "end_turn"
    desk.editor.decide = presses("reject_once")
    model_server.add(answer(Call("write", {"path": "b", "content": "x"})), answer("As you like."))
    assert await desk.say("go on") == "end_turn"
    assert await desk.say("and on") == "end_turn"
    journal = await desk.journal()
    same(journal)
    shown = live(desk.editor.shown)
    assert SessionView.of(shown).conversation() == SessionView.of(replayed(journal)).conversation()
    view = SessionView.of(replayed(journal))
    assert view.text("user") == "work on itgo onand on"
    assert [call["status"] for call in view.calls.values()].count("failed") == 5
    assert all(call["capabilities"] is None for call in view.calls.values())
    (terminal,) = view.terminals.values()
    assert terminal.output.decode() == "out\r\n好\r\n"
    assert terminal.exit_status == {"exitCode": 3}
    assert view.plans == {}
    assert states(shown)[0] == "running"
    assert states(shown)[-1] == "idle"


async def test_a_replay_has_one_update_for_each_thing_and_no_state_nor_notice(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(
        answer(Thought("Hm"), Thought("m."), "Fi", "rst", Call("shell", {"command": "echo a"})),
        answer("Then ", "this."),
    )
    await desk.say("Go")
    await desk.session.emit(NoticeShown(severity="info", title="By the way"))
    updates = replayed(await desk.journal())
    kinds = [update["sessionUpdate"] for update in updates]
    assert kinds == [
        "user_message",
        "agent_thought",
        "agent_message",
        "tool_call_update",
        "usage_update",
        "terminal_update",
        "agent_message",
        "session_info_update",
    ]


async def test_a_session_cut_off_says_so_and_its_calls_have_failed(
    desk: Desk, model_server: ModelServer
) -> None:
    desk.editor.decide = presses("allow_once")
    model_server.add(answer("Well", Call("shell", {"command": "echo begun; sleep 300"})))
    turn = await desk.begin("Go")
    await desk.editor.until(ToolOutput)
    events = await desk.journal()
    await desk.cancel(turn)
    cut = interruption(events)
    assert cut is not None
    same([*events, cut])
    view = SessionView.of(replayed([*events, cut]))
    (call,) = view.calls.values()
    assert call["status"] == "failed"
    assert [part["type"] for part in call["content"]] == ["terminal", "content"]
    (terminal,) = view.terminals.values()
    assert (terminal.exit_status, terminal.output) == ({}, b"begun\r\n")
    assert "stopped here" in view.messages[cut.message].text
    assert states(replayed([*events, cut])) == []
    last = of(live([*events, cut]), "state_update")[-1]
    assert (last["state"], last["stopReason"]) == ("idle", "error")


async def test_a_running_session_is_replayed_as_far_as_it_is(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer("Half an", Stall(), " answer"))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    updates = replayed(await desk.journal())
    assert of(updates, "agent_message")[0]["content"] == [{"type": "text", "text": "Half an"}]
    await desk.cancel(turn)


async def test_stopping_a_call_and_a_turn_shows_their_calls_as_cancelled(
    desk: Desk, model_server: ModelServer
) -> None:
    sleep = Call("shell", {"command": "echo begun; sleep 300"})
    model_server.add(answer(sleep), answer(sleep))
    turn = await desk.begin("Go")
    await desk.editor.until(ToolOutput)
    desk.session.cancel_call(desk.editor.of(ToolCalled)[0].call)
    await desk.editor.until(ToolOutput, 2)
    assert await desk.cancel(turn) == "cancelled"
    shown = live(desk.editor.shown)
    view = SessionView.of(shown)
    assert [call["status"] for call in view.calls.values()] == ["cancelled"] * 2
    assert of(shown, "state_update")[-1]["stopReason"] == "cancelled"
    same(await desk.journal())


async def test_a_turn_whose_end_cannot_be_kept_is_told_to_have_ended_and_later_explained(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(Call("shell", {"command": "echo begun; sleep 300"})))
    turn = await desk.begin("Go")
    await desk.editor.until(ToolOutput)
    desk.store.full = True
    desk.session.cancel_terminal(desk.editor.of(ToolCalled)[0].call)
    with pytest.raises(Exception, match="disk is full"):
        await turn.result()
    shown = live(desk.editor.shown)
    view = SessionView.of(shown)
    assert view.state == "idle"
    assert view.states[-1]["stopReason"] == "error"
    assert "disk is full" in view.states[-1]["error"]["message"]
    assert [call["status"] for call in view.calls.values()] == ["failed"]
    assert all(one.exit_status is not None for one in view.terminals.values())
    desk.store.full = False
    model_server.add(answer("Here I am."))
    assert await desk.say("Go on") == "end_turn"
    shown = live(desk.editor.shown)
    assert states(shown) == ["running", "idle"] * 3
    told = SessionView.of(replayed(await desk.journal()))
    assert told.text() == SessionView.of(shown).text()


def test_what_is_asked_of_the_user_is_a_state_unless_something_else_goes_on() -> None:
    other = CallId("call_2")
    asked = PermissionAsked(call=CALL, options=("a",))
    projector = Projector()
    assert states(live([TurnStarted(turn=TURN), called(), called(call=other)], projector)) == [
        "running"
    ]
    assert states(live([ToolStarted(call=other)], projector)) == []
    assert states(live([asked], projector)) == []
    assert states(live([ToolEnded(call=other)], projector)) == ["requires_action"]
    decided = PermissionDecided(call=CALL, allowed=True, by="user")
    assert states(live([decided, ToolStarted(call=CALL)], projector)) == ["running"]
    assert states(as_json(projector.activity.asks(CALL))) == ["requires_action"]
    assert states(as_json([projector.activity.now()])) == ["requires_action"]
    assert states(as_json(projector.activity.answered(CALL))) == ["running"]
    assert states(live([ToolEnded(call=CALL)], projector)) == []


def test_a_call_that_is_stopped_while_the_user_is_asked_does_not_wait_any_more() -> None:
    asked = PermissionAsked(call=CALL, options=("a",))
    ended = ToolEnded(call=CALL, failed=True, cancelled=True)
    events = [TurnStarted(turn=TURN), called(), asked, ended]
    updates = live([*events, ModelAsked(message=MESSAGE, model="m")])
    assert states(updates) == ["running", "requires_action", "running"]
    stopped = live([*events, TurnEnded(turn=TURN, stop_reason="cancelled")])
    assert states(stopped) == ["running", "requires_action", "idle"]
    assert of(updates, "tool_call_update")[-1] == {
        "toolCallId": CALL,
        "status": "cancelled",
        "capabilities": None,
    }


@pytest.mark.parametrize(
    ("ended", "told"),
    [
        (TurnEnded(turn=TURN, stop_reason="max_tokens"), {"stopReason": "max_tokens"}),
        (
            TurnEnded(turn=TURN, stop_reason="end_turn", usage=Usage(input=10, output=2)),
            {
                "stopReason": "end_turn",
                "usage": {"totalTokens": 12, "inputTokens": 10, "outputTokens": 2},
            },
        ),
        (
            TurnEnded(turn=TURN, error="openai failed", error_kind="model"),
            {
                "stopReason": "error",
                "error": {"code": -32603, "message": "openai failed"},
            },
        ),
        (
            TurnEnded(turn=TURN, error="no key", error_kind="auth_required"),
            {
                "stopReason": "error",
                "error": {"code": -32000, "message": "no key"},
            },
        ),
        (
            TurnEnded(turn=TURN, error="of an older journal"),
            {"stopReason": "error", "error": {"code": -32603, "message": "of an older journal"}},
        ),
    ],
)
def test_the_end_of_a_turn_says_why_and_what_it_took(ended: TurnEnded, told: Json) -> None:
    updates = live([TurnStarted(turn=TURN), ended])
    states = [{"state": "running"}, {"state": "idle"} | told]
    assert of(updates, "state_update") == [state | {"background": []} for state in states]


def test_an_end_is_told_once_and_only_of_what_was_told_to_run() -> None:
    ended = TurnEnded(turn=TURN, stop_reason="end_turn")
    assert live([ended]) == []
    assert states(live([TurnStarted(turn=TURN), ended, ended])) == ["running", "idle"]


def test_words_are_shown_live_also_with_their_id() -> None:
    message = UserMessage(message=MESSAGE, content=(TextBlock(text="Hi"),), attached="not shown")
    shown = [{"messageId": MESSAGE, "content": [{"type": "text", "text": "Hi"}]}]
    assert of(live([message]), "user_message") == shown
    assert of(replayed([message]), "user_message") == shown


def test_only_what_changed_is_told_of_a_call() -> None:
    diff = DiffPart("/w/a", "new\n", "old\n")
    place = (Location(path="/w/a", line=1),)
    events = [
        called("edit", "{}", kind="edit"),
        ToolShown(call=CALL, title="Do edit", content=(diff,), locations=place),
        ToolStarted(call=CALL),
        ToolShown(call=CALL, title="Edit a", content=(diff, text_part("Half"))),
        ToolEnded(call=CALL, content=(diff, text_part("Half")), locations=place),
    ]
    first, shown, started, renamed, ended = of(live(events), "tool_call_update")
    assert first == {
        "toolCallId": CALL,
        "title": "Do edit",
        "name": "edit",
        "kind": "edit",
        "status": "pending",
        "rawInput": {},
        "capabilities": {"cancel": {}},
    }
    assert sorted(shown) == ["content", "locations", "toolCallId"]
    assert shown["locations"] == [{"path": "/w/a", "line": 1}]
    assert started == {"toolCallId": CALL, "status": "in_progress"}
    assert renamed == {"toolCallId": CALL, "title": "Edit a"}
    (grown,) = of(live(events), "tool_call_content_chunk")
    assert grown["content"] == {"type": "content", "content": {"type": "text", "text": "Half"}}
    assert ended == {"toolCallId": CALL, "status": "completed", "capabilities": None}
    same(events)


def test_content_that_is_not_as_it_was_replaces_it() -> None:
    events = [
        called(),
        ToolShown(call=CALL, content=(text_part("One"), text_part("Two"))),
        ToolShown(call=CALL, content=(text_part("Two"),)),
        ToolEnded(call=CALL, content=(), raw_output={"a": [1, None]}),
    ]
    contents = [one["content"] for one in of(live(events), "tool_call_update") if "content" in one]
    assert [len(content) for content in contents] == [2, 1, 0]
    same(events)


def test_a_command_is_a_terminal_that_can_be_stopped_while_it_runs() -> None:
    arguments = '{"command":"make","timeout":5}'
    events = [
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
    pieces = [base64.b64decode(one["data"]) for one in of(updates, "terminal_output_chunk")]
    assert [piece.decode() for piece in pieces] == ["naïve 好", " 🙂\r\nend\r\n"]
    calls = of(updates, "tool_call_update")
    assert calls[-2]["content"] == [{"type": "terminal", "terminalId": CALL}]
    assert "content" not in calls[-1]
    (snapshot,) = of(replayed(events), "terminal_update")
    assert base64.b64decode(snapshot["output"]["data"]) == b"".join(pieces)
    assert "capabilities" not in snapshot
    same(events)


def test_a_command_that_ended_for_another_reason_says_it_beside_its_terminal() -> None:
    events = [
        called("shell", '{"command":"make"}'),
        ToolStarted(call=CALL, cwd="/w"),
        ToolEnded(call=CALL, failed=True, content=(text_part("it could not be started"),)),
    ]
    last = of(live(events), "tool_call_update")[-1]
    assert [part["type"] for part in last["content"]] == ["terminal", "content"]
    assert of(live(events), "terminal_update")[-1]["exitStatus"] == {}
    same(events)


def test_what_a_call_without_a_command_puts_out_is_added_to_what_it_shows() -> None:
    events = [
        called("mcp"),
        ToolStarted(call=CALL),
        ToolOutput(call=CALL, text="one"),
        ToolOutput(call=CALL, text="two"),
        ToolEnded(call=CALL),
    ]
    updates = live(events)
    assert of(updates, "terminal_output_chunk") == []
    assert [len(one["content"]) for one in of(updates, "tool_call_update") if "content" in one] == [
        1
    ]
    assert len(of(updates, "tool_call_content_chunk")) == 1
    same(events)


def test_plans_have_an_id_and_are_removed_for_those_who_know_how() -> None:
    plan = PlanChanged(entries=(PlanEntry(content="Look"),))
    entries = [{"content": "Look", "priority": "medium", "status": "pending"}]
    events = [plan, PlanRemoved()]
    assert of(live(events), "plan_update") == [
        {"plan": {"type": "items", "planId": "plan", "entries": entries}},
        {"plan": {"type": "items", "planId": "plan", "entries": []}},
    ]
    assert of(live(events), "plan_removed") == [{"planId": "plan"}]
    assert replayed(events) == []
    assert len(replayed([*events, plan])) == 1
    same([*events, plan])


def test_compactions_and_their_summaries() -> None:
    events: list[AnyEvent] = [
        CompactionChanged(compaction="c", status="in_progress"),
        CompactionSummaryText(compaction="c", text="So "),
        CompactionSummaryText(compaction="c", text="far."),
        CompactionChanged(compaction="d", status="in_progress"),
        CompactionChanged(compaction="d", status="failed", error="no room"),
        CompactionChanged(compaction="c", status="completed", summary="So far."),
    ]
    text = [{"type": "text", "text": "So far."}]
    assert of(replayed(events[:3]), "compaction_update") == [
        {"compactionId": "c", "status": "in_progress", "summary": text}
    ]
    assert of(replayed(events), "compaction_update") == [
        {"compactionId": "c", "status": "completed", "summary": text},
        {"compactionId": "d", "status": "failed", "error": "no room"},
    ]
    assert len(of(live(events), "compaction_summary_chunk")) == 2
    assert SessionView.of(live(events)).compactions["c"]["summary"] == text


def test_the_rest_of_what_a_client_is_told() -> None:
    updates = live(
        [
            TitleChanged(title="A title"),
            UsageReported(used=10, size=100, cost=0.5),
            UsageReported(used=11, size=100),
            NoticeShown(severity="warning", title="Mind", description="the gap"),
            ModelAnswered(message=MESSAGE, model="m"),
        ]
    )
    assert updates == [
        {"sessionUpdate": "session_info_update", "title": "A title"},
        {
            "sessionUpdate": "usage_update",
            "used": 10,
            "size": 100,
            "cost": {"amount": 0.5, "currency": "USD"},
        },
        {"sessionUpdate": "usage_update", "used": 11, "size": 100},
        {
            "sessionUpdate": "notice",
            "severity": "warning",
            "title": "Mind",
            "description": "the gap",
        },
    ]


def test_a_cost_that_is_not_told_again_stays() -> None:
    events = [UsageReported(used=10, size=100, cost=0.5), UsageReported(used=11, size=100)]
    (usage,) = of(replayed(events), "usage_update")
    assert usage == {"used": 11, "size": 100, "cost": {"amount": 0.5, "currency": "USD"}}


def test_thoughts_and_answer_are_two_messages() -> None:
    events = [
        AgentThought(message=MESSAGE, text="Hm"),
        AgentText(message=MESSAGE, text="So."),
        AgentThought(message=MESSAGE, text=" again"),
    ]
    (thought,) = of(replayed(events), "agent_thought")
    (message,) = of(replayed(events), "agent_message")
    assert thought["content"] == [{"type": "text", "text": "Hm again"}]
    assert thought["messageId"] != message["messageId"]


def test_a_message_that_goes_on_after_the_user_spoke_keeps_its_place() -> None:
    events: list[AnyEvent] = [
        AgentText(message=MESSAGE, text="Half"),
        UserMessage(message=MessageId("msg_2"), content=(TextBlock(text="And?"),), steering=True),
        AgentText(message=MESSAGE, text=" and half"),
    ]
    updates = replayed(events)
    assert [one["sessionUpdate"] for one in updates] == ["agent_message", "user_message"]
    assert updates[0]["content"] == [{"type": "text", "text": "Half and half"}]
    same(events)


def test_an_interrupted_turn_is_closed_once() -> None:
    cut = TurnInterrupted(turn=TURN, message=MessageId("msg_9"), calls=(CALL,))
    events = [TurnStarted(turn=TURN), called(), cut]
    assert len(of(live(events), "tool_call_update")) == 2
    assert len(of(live([*events, cut]), "tool_call_content_chunk")) == 1
    assert states(live([*events, cut])) == ["running", "idle", "running", "idle"]
    same(events)


def test_what_a_call_showed_stays_when_its_turn_is_cut_off() -> None:
    diff = DiffPart("/w/a", "new\n", "old\n")
    cut = TurnInterrupted(turn=TURN, message=MessageId("msg_9"), calls=(CALL,))
    events: list[AnyEvent] = [TurnStarted(turn=TURN), called("edit", content=(diff,)), cut]
    (call,) = of(replayed(events), "tool_call_update")
    assert [part["type"] for part in call["content"]] == ["diff", "content"]
    assert call["content"][1]["content"]["text"] == CUT_CALL
    assert call["status"] == "failed"
    same(events)


async def test_the_same_events_give_the_same_updates(desk: Desk, model_server: ModelServer) -> None:
    model_server.add(answer(Call("shell", {"command": "echo a"})), answer("Done."))
    await desk.say("Go")
    events = await desk.journal()
    assert live(events) == live(events)
    assert replayed(events) == replayed(events)
