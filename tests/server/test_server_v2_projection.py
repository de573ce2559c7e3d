"""What a client of version 2 is shown of a session, live and in a replay."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from acp_agent.content import TextBlock
from acp_agent.errors import StoreError
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    CompactionChanged,
    CompactionSummaryText,
    ModelAnswered,
    NoticeShown,
    PlanChanged,
    PlanEntry,
    PlanRemoved,
    TitleChanged,
    ToolCalled,
    ToolOutput,
    TurnInterrupted,
    TurnStarted,
    UsageReported,
    UserMessage,
)
from acp_agent.ids import MessageId
from acp_agent.session.history.interruption import find_interruption
from tests.server.v2_projecting import (
    CALL,
    MESSAGE,
    TURN,
    assert_same_replay,
    called,
    live,
    of,
    replayed,
    states,
)
from tests.support.model_server import Call, ModelServer, Stall, Thought, answer
from tests.support.open_session import Desk, open_desk, presses
from tests.support.v2_view import SessionView


@pytest.fixture
async def desk(tmp_path: Path, model_server: ModelServer) -> AsyncIterator[Desk]:
    async with open_desk(tmp_path, model_server) as first:
        yield first


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
        answer(Call("shell", {"commando": "typo"}), Call("no_such_tool", {})),
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
    assert_same_replay(journal)
    live_updates = live(desk.editor.shown)
    assert (
        SessionView.of(live_updates).conversation()
        == SessionView.of(replayed(journal)).conversation()
    )
    view = SessionView.of(replayed(journal))
    assert view.text("user") == "work on itgo onand on"
    assert [call["status"] for call in view.calls.values()].count("failed") == 5
    assert all(call["capabilities"] is None for call in view.calls.values())
    (terminal,) = view.terminals.values()
    assert terminal.output.decode() == "out\r\n好\r\n"
    assert terminal.exit_status == {"exitCode": 3}
    assert view.plans == {}
    assert states(live_updates)[0] == "running"
    assert states(live_updates)[-1] == "idle"


async def test_a_replay_has_one_update_for_each_thing_and_no_state_nor_notice(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(
        answer(Thought("Hm"), Thought("m."), "Fi", "rst", Call("shell", {"command": "echo a"})),
        answer("Then ", "this."),
    )
    await desk.say("Go")
    await desk.session.core.emit(NoticeShown(severity="info", title="By the way"))
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
    cut = find_interruption(events)
    assert cut is not None
    assert_same_replay([*events, cut])
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
    desk.session.turns.cancel_call(desk.editor.of(ToolCalled)[0].call)
    await desk.editor.until(ToolOutput, 2)
    assert await desk.cancel(turn) == "cancelled"
    live_updates = live(desk.editor.shown)
    view = SessionView.of(live_updates)
    assert [call["status"] for call in view.calls.values()] == ["cancelled"] * 2
    assert of(live_updates, "state_update")[-1]["stopReason"] == "cancelled"
    assert_same_replay(await desk.journal())


async def test_a_turn_whose_end_cannot_be_saved_ends_for_the_client_and_is_explained_later(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(Call("shell", {"command": "echo begun; sleep 300"})))
    turn = await desk.begin("Go")
    await desk.editor.until(ToolOutput)
    desk.store.full = True
    desk.session.turns.cancel_terminal(desk.editor.of(ToolCalled)[0].call)
    with pytest.raises(StoreError, match="disk is full"):
        await turn.result()
    live_updates = live(desk.editor.shown)
    view = SessionView.of(live_updates)
    assert view.state == "idle"
    assert view.states[-1]["stopReason"] == "error"
    assert "disk is full" in view.states[-1]["error"]["message"]
    assert [call["status"] for call in view.calls.values()] == ["failed"]
    assert all(terminal.exit_status is not None for terminal in view.terminals.values())
    desk.store.full = False
    model_server.add(answer("Here I am."))
    assert await desk.say("Go on") == "end_turn"
    live_updates = live(desk.editor.shown)
    assert states(live_updates) == ["running", "idle"] * 3
    replayed_view = SessionView.of(replayed(await desk.journal()))
    assert replayed_view.text() == SessionView.of(live_updates).text()


def test_words_are_shown_live_also_with_their_id() -> None:
    message = UserMessage(message=MESSAGE, content=(TextBlock(text="Hi"),), attached="not shown")
    message_updates = [{"messageId": MESSAGE, "content": [{"type": "text", "text": "Hi"}]}]
    assert of(live([message]), "user_message") == message_updates
    assert of(replayed([message]), "user_message") == message_updates


def test_plans_have_an_id_and_are_removed_for_those_who_know_how() -> None:
    plan = PlanChanged(entries=(PlanEntry(content="Look"),))
    entries = [{"content": "Look", "priority": "medium", "status": "pending"}]
    events: list[AnyEvent] = [plan, PlanRemoved()]
    assert of(live(events), "plan_update") == [
        {"plan": {"type": "items", "planId": "plan", "entries": entries}},
        {"plan": {"type": "items", "planId": "plan", "entries": []}},
    ]
    assert of(live(events), "plan_removed") == [{"planId": "plan"}]
    assert replayed(events) == []
    assert len(replayed([*events, plan])) == 1
    assert_same_replay([*events, plan])


def test_a_compaction_is_one_update_with_its_whole_summary_in_a_replay() -> None:
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


def test_other_events_have_their_updates() -> None:
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


def test_a_cost_stays_where_an_update_has_none() -> None:
    events = [UsageReported(used=10, size=100, cost=0.5), UsageReported(used=11, size=100)]
    (usage,) = of(replayed(events), "usage_update")
    assert usage == {"used": 11, "size": 100, "cost": {"amount": 0.5, "currency": "USD"}}


def test_thoughts_and_answer_are_two_messages() -> None:
    events: list[AnyEvent] = [
        AgentThought(message=MESSAGE, text="Hm"),
        AgentText(message=MESSAGE, text="So."),
        AgentThought(message=MESSAGE, text=" again"),
    ]
    (thought,) = of(replayed(events), "agent_thought")
    (message,) = of(replayed(events), "agent_message")
    assert thought["content"] == [{"type": "text", "text": "Hm again"}]
    assert thought["messageId"] != message["messageId"]


def test_a_message_that_continues_after_a_user_message_stays_before_it() -> None:
    events: list[AnyEvent] = [
        AgentText(message=MESSAGE, text="Half"),
        UserMessage(message=MessageId("msg_2"), content=(TextBlock(text="And?"),), steering=True),
        AgentText(message=MESSAGE, text=" and half"),
    ]
    updates = replayed(events)
    assert [update["sessionUpdate"] for update in updates] == ["agent_message", "user_message"]
    assert updates[0]["content"] == [{"type": "text", "text": "Half and half"}]
    assert_same_replay(events)


def test_an_interrupted_turn_is_closed_once() -> None:
    cut = TurnInterrupted(turn=TURN, message=MessageId("msg_9"), calls=(CALL,))
    events: list[AnyEvent] = [TurnStarted(turn=TURN), called(), cut]
    assert len(of(live(events), "tool_call_update")) == 2
    assert len(of(live([*events, cut]), "tool_call_content_chunk")) == 1
    assert states(live([*events, cut])) == ["running", "idle", "running", "idle"]
    assert_same_replay(events)


async def test_the_same_events_give_the_same_updates(desk: Desk, model_server: ModelServer) -> None:
    model_server.add(answer(Call("shell", {"command": "echo a"})), answer("Done."))
    await desk.say("Go")
    events = await desk.journal()
    assert live(events) == live(events)
    assert replayed(events) == replayed(events)
