"""What child sessions did, in the text of a conversation and in exports."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from acp_agent.config.localization import translator_for
from acp_agent.content import DiffPart, text_part
from acp_agent.events import (
    AgentText,
    AnyEvent,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    UserMessage,
)
from acp_agent.ids import CallId, SessionId
from acp_agent.session.history.export import ExportFormat, export_pieces
from acp_agent.session.history.interruption import close_open_turn
from acp_agent.session.history.transcript import Passage, transcript
from acp_agent.session.localize import localize
from acp_agent.session.store.records import SessionRecord, StoredEvent
from tests.support import child_work
from tests.support.child_work import CHILD, INNER, PARENT, SAID, TASK, TITLE, did, whole

SECRET = "open-sesame-0123456789"
OTHER, OTHER_TASK = SessionId("sess_other"), CallId("call_other")


def stored(events: Sequence[AnyEvent]) -> list[StoredEvent]:
    return [StoredEvent(seq, 1_000 * seq, event) for seq, event in enumerate(events, 1)]


def passages(events: Sequence[AnyEvent]) -> list[Passage]:
    return list(transcript(stored(events), thoughts=False))


def exported(events: Sequence[AnyEvent], form: ExportFormat) -> str:
    record = SessionRecord(
        id=PARENT,
        cwd="/work",
        directories=(),
        title=None,
        created_at=0,
        updated_at=1,
    )
    return "".join(export_pieces(form, record, stored(events), [SECRET]))


def test_the_work_of_a_child_is_below_its_call_and_marked_as_the_childs() -> None:
    assert passages(whole()) == [
        Passage("user", "Where is it?"),
        Passage("tool", TITLE),
        Passage("child", f"Subagent: {TITLE}", CHILD),
        Passage("user", "Find it", CHILD),
        Passage("agent", "It is ", CHILD),
        Passage("tool", "Done", CHILD),
        Passage("note", "Allowed by you", CHILD),
        Passage("agent", "there.", CHILD),
    ]


@pytest.mark.parametrize("failed", [True, False])
def test_the_content_of_a_call_is_shown_only_where_it_exceeds_the_childs_work(
    failed: bool,
) -> None:
    *work, end = [*child_work.begun(), *child_work.announced(), *child_work.done()]
    assert isinstance(end, ToolEnded)
    events = [*work, replace(end, failed=failed, content=(text_part("- ✓ Read a\nThere."),))]
    kinds = [one.kind for one in passages(events)]
    assert ("output" in kinds) == failed


def test_concurrent_children_are_shown_one_after_the_other() -> None:
    events = [
        *child_work.begun(),
        child_work.called(OTHER_TASK, "task", title="the other"),
        *child_work.announced(),
        *child_work.announced(OTHER, OTHER_TASK, "the other"),
        *did(AgentText(message=SAID, text="a")),
        *did(AgentText(message=SAID, text="x"), child=OTHER, call=OTHER_TASK),
        *did(AgentText(message=SAID, text="b")),
        *child_work.done(OTHER, OTHER_TASK),
        *child_work.done(),
        *child_work.ended(),
    ]
    told_of = [(one.child, one.text) for one in passages(events) if one.kind == "agent"]
    assert told_of == [(OTHER, "x"), (CHILD, "ab")]
    tools = [one.text for one in passages(events) if one.kind == "tool"]
    assert tools == ["the other", TITLE]


@pytest.mark.parametrize("closed", [True, False])
def test_the_work_of_a_child_for_a_call_that_never_ended_is_shown(closed: bool) -> None:
    events = [*child_work.begun(), *child_work.announced(), *child_work.answered("Half")]
    cut = close_open_turn(events) if closed else []
    found = [(one.kind, one.text, one.child) for one in passages([*events, *cut])]
    where = found.index(("tool", TITLE, ""))
    assert ("agent", "Half", CHILD) in found[where:]
    interrupted = "(the agent was interrupted here)"
    ends = [("note", interrupted, CHILD), ("note", interrupted, "")]
    assert found[-2:] == ends if closed else found[-1] == ("agent", "Half", CHILD)


def test_markdown_quotes_the_work_of_a_child() -> None:
    diff = DiffPart(path="/w/a", old_text="a\n", new_text="b\n")
    events = [
        *child_work.begun(),
        *child_work.announced(),
        *child_work.answered("First.\n\nSecond."),
        *did(child_work.called(INNER, title="Edit a", content=(diff,)), ToolEnded(call=INNER)),
        *child_work.done(),
        AgentText(message=SAID, text="Found."),
        *child_work.ended(),
    ]
    text = exported(events, "md")
    assert text.endswith(
        "\n## User\n\nWhere is it?\n"
        f"\n**Tool:** {TITLE}\n"
        f"\n> **Subagent: {TITLE}**\n"
        ">\n> **Task:** Find it\n"
        ">\n> First.\n>\n> Second.\n"
        ">\n> **Tool:** Edit a\n"
        ">\n> ```diff\n> @@ -1 +1 @@\n> -a\n> +b\n> ```\n"
        "\nFound.\n"
    )


@pytest.mark.parametrize("form", ["jsonl", "md"])
def test_a_secret_in_two_pieces_of_a_childs_text_is_in_no_export(form: ExportFormat) -> None:
    halves = SECRET[:9], SECRET[9:]
    outputs = [ToolOutput(call=INNER, text=half) for half in halves]
    texts = [AgentText(message=SAID, text=half) for half in halves]
    between = [
        *did(AgentText(message=SAID, text="x"), child=OTHER, call=OTHER_TASK),
        ToolOutput(call=CallId("call_2"), text="y"),
    ]
    events = [
        *child_work.begun(),
        *child_work.announced(),
        *child_work.announced(OTHER, OTHER_TASK),
        *did(texts[0]),
        *between,
        *did(texts[1], child_work.called(INNER), outputs[0]),
        *between,
        *did(outputs[1], ToolEnded(call=INNER)),
        *child_work.done(),
        *child_work.ended(),
    ]
    text = exported(events, form)
    assert SECRET not in text
    assert halves[0] not in text
    assert halves[1] not in text


def test_json_lines_have_the_work_of_a_child_with_its_session() -> None:
    _, *lines = [json.loads(line) for line in exported(whole(), "jsonl").splitlines()]
    work = [line["event"] for line in lines if line["event"]["event"] == "child_worked"]
    assert {(one["session"], one["call"]) for one in work} == {(CHILD, TASK)}
    assert {"event": "agent_text", "message": SAID, "text": "It is "} in [
        one["did"] for one in work
    ]


def test_the_work_of_a_child_is_shown_in_the_readers_language() -> None:
    translate = translator_for("zh")
    (called,) = did(child_work.called(INNER, "read", title="Read a.py"))
    assert "读取 a.py" in repr(localize(called, translate))
    (said,) = did(UserMessage(message=SAID, content=()))
    assert localize(said, translate) is said
    texts = [one.text for one in transcript(stored(whole()), thoughts=False, translate=translate)]
    assert f"子智能体：{TITLE}" in texts


def test_a_call_of_a_child_is_not_a_call_of_its_parent() -> None:
    begun = ToolCalled(call=TASK, message=SAID, name="task", arguments="{}", title="outer")
    inner = did(child_work.called(TASK, title="inner"), ToolEnded(call=TASK))
    events = [begun, *child_work.announced(), *inner, ToolEnded(call=TASK)]
    assert [(one.text, one.child) for one in passages(events) if one.kind == "tool"] == [
        ("outer", ""),
        ("inner", CHILD),
    ]


def test_the_work_of_a_childs_child_is_shown_below_the_childs_call() -> None:
    inner, call = SessionId("sess_inner"), CallId("call_give")
    events = [
        *child_work.begun(),
        *child_work.announced(),
        *did(child_work.called(call, "task", title="scout: look")),
        *child_work.announced(inner, call, "scout: look"),
        *did(AgentText(message=SAID, text="Deep."), child=inner, call=call),
        *child_work.done(inner, call)[:-1],
        *did(ToolEnded(call=call, result="There.")),
        *did(AgentText(message=SAID, text="After it.")),
        *child_work.done(),
        *child_work.ended(),
    ]
    told = [(one.kind, one.text) for one in passages(events)]
    assert told == [
        ("user", "Where is it?"),
        ("tool", TITLE),
        ("child", f"Subagent: {TITLE}"),
        ("user", "Find it"),
        ("tool", "scout: look"),
        ("child", "Subagent: scout: look"),
        ("user", "Find it"),
        ("agent", "Deep."),
        ("agent", "After it."),
    ]
