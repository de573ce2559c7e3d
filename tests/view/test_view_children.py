"""What a child session did stands below the call that it worked for, and counts in its turn."""

from __future__ import annotations

from acp_agent.content import text_part
from acp_agent.events import (
    AgentThought,
    AnyEvent,
    ModelAnswered,
    ModelAsked,
    Rewound,
    SubagentChanged,
    ToolEnded,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    Usage,
)
from acp_agent.ids import CallId, MessageId, SessionId, TurnId
from tests.support.child_work import (
    CHILD,
    INNER,
    PARENT,
    SAID,
    TASK,
    TITLE,
    announced,
    answered,
    begun,
    called,
    did,
    done,
    ended,
    whole,
)
from tests.view.made_page import data_of, html_of, one, page_of, parsed, words_of

OWN = MessageId("msg_own")


def test_the_work_of_a_child_is_below_its_call_in_order() -> None:
    dom = page_of(*whole())
    call = one(dom, "#call-task")
    child = one(call, "details.child")
    assert words_of(child.select("summary")[0]) == f"Subagent {TITLE} Done"
    steps = child.select(".step")
    assert [step["class"][1] for step in steps] == ["user", "call", "agent"]
    assert words_of(one(steps[0], ".by .who")) == "Task"  # its parent said it, not the user
    assert "Find it" in steps[0].get_text()
    assert steps[1]["id"] == "call-inner"
    assert words_of(one(steps[1], ".permission")).startswith("Allowed by you")
    assert words_of(one(steps[2], ".markdown")) == "It is there."
    # What it was told and what it answered is there once.
    assert [note for note in dom.select(".note") if str(CHILD) in note.get_text()] == []


def test_the_content_of_the_call_does_not_repeat_the_childs_work() -> None:
    shown = (text_part("- ✓ Do shell"), text_part("There."))
    events = [*whole()]
    place = next(at for at, event in enumerate(events) if isinstance(event, ToolEnded))
    events[place] = ToolEnded(call=TASK, result="There.", content=shown)
    call = one(page_of(*events), "#call-task")
    assert "✓ Do shell" not in call.get_text()
    assert call.get_text().count("There.") == 1  # what the model was told


def test_the_usage_of_a_child_counts_in_the_turn_and_is_shown_below_its_call() -> None:
    own: list[AnyEvent] = [
        ModelAsked(message=OWN, model="openai/large"),
        ModelAnswered(message=OWN, model="openai/large", usage=Usage(input=30, output=3), cost=0.5),
    ]
    events: list[AnyEvent] = [*begun(), *own, *announced(), *answered("There."), *done(), *ended()]
    page = data_of(*events)
    (turn,) = page.turns
    assert (turn.spend.usage.input, turn.spend.usage.output, turn.spend.cost) == (100, 10, 0.75)
    assert page.models == ["openai/large", "openai/small"]
    dom = parsed(html_of(page))
    assert "Cost $0.2500" in words_of(one(dom, ".child .facts"))
    assert "openai/small" in words_of(one(dom, ".child .requests"))
    assert "openai/small" not in words_of(one(dom, "section.turn > .requests"))
    assert "Tool calls: 1" in words_of(one(dom, ".facts.total"))


def test_two_children_of_a_turn_are_shown_separately() -> None:
    other, more = SessionId("sess_other"), CallId("call_more")
    says = AgentThought(message=MessageId("msg_other"), text="Hmm.")
    dom = page_of(
        *begun(), *announced(), called(more, "task"), *announced(other, more, "look: again"),
        *did(says, child=other, call=more), *answered("It."), *done(other, more), *done(), *ended(),
    )  # fmt: skip
    first, second = dom.select("details.child")
    assert "It." in first.get_text()
    assert "Hmm." not in first.get_text()
    assert "look: again" in words_of(second.select("summary")[0])
    assert "Hmm." in second.get_text()
    ids = [element["id"] for element in dom.select("[id]")]
    assert len(ids) == len(set(ids))


def test_turns_keep_their_links_despite_turns_of_children() -> None:
    more = did(
        TurnEnded(turn=TurnId("turn_c"), stop_reason="end_turn"), TurnStarted(turn=TurnId("turn_d"))
    )
    dom = page_of(
        *begun(), *announced(), *more, *done(), *ended(),
        TurnStarted(turn=TurnId("turn_2")), TurnEnded(turn=TurnId("turn_2")),
    )  # fmt: skip
    assert [turn["id"] for turn in dom.select("section.turn")] == ["turn-1", "turn-2"]


def test_a_child_that_a_crash_cut_off_says_so_and_its_turn_ends_where_it_was() -> None:
    cut = TurnInterrupted(turn=TurnId("turn_1"), message=SAID, calls=(INNER,))
    late = [
        *did(cut),
        SubagentChanged(session=CHILD, state="idle", stop_reason="cancelled"),
        TurnInterrupted(turn=TurnId("turn_1"), message=OWN, calls=(TASK,)),
    ]
    events = [*begun(), *announced(), *did(called(INNER)), *((900_000, event) for event in late)]
    page = data_of(*events)
    (turn,) = page.turns
    assert turn.times is not None
    assert turn.times.total < 60_000
    dom = parsed(html_of(page))
    assert words_of(one(dom, ".child > summary .status")) == "Interrupted"
    assert words_of(one(dom, "#call-inner .status")) == "interrupted"


def test_a_rewind_also_removes_the_work_of_children() -> None:
    back = Rewound(rewind="rew_1", to="msg_user", title="Where is it?")
    dom = page_of(*whole(), TurnStarted(turn=TurnId("turn_2")), back)
    steps = one(dom, "details.child").select(".step")
    assert steps
    assert all("undone" in step["class"] for step in steps)


def test_a_child_without_work_is_shown_in_one_line() -> None:
    dom = page_of(*begun(), SubagentChanged(session=CHILD, title="Child", state="running"))
    assert f"Subagent {CHILD}: Child, running" in words_of(one(dom, "section.turn .note"))
    assert dom.select(".child") == []
    assert str(PARENT) not in dom.get_text()


def test_a_grandchild_is_below_the_call_of_its_parent() -> None:
    inner, call = SessionId("sess_inner"), CallId("call_give")
    dom = page_of(
        *begun(),
        *announced(),
        *did(called(call, "task", title="scout: look")),
        *announced(inner, call, "scout: look"),
        *did(called(CallId("call_deep"), "read", title="Read a.py"), child=inner, call=call),
        *did(ToolEnded(call=CallId("call_deep"), result="x"), child=inner, call=call),
        *done(inner, call)[:-1],
        *did(ToolEnded(call=call, result="There.")),
        *done(),
        *ended(),
    )
    outer = one(one(dom, "#call-task"), "#call-give")
    child = one(outer, "details.child")
    assert "scout: look" in words_of(child.select("summary")[0])
    assert one(child, "#call-deep")
    assert [note for note in dom.select(".note") if str(inner) in note.get_text()] == []
