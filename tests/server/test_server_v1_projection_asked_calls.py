"""What clients of version 1 are shown of child sessions that know of none."""

from __future__ import annotations

import pytest

from acp_agent.config.localization import translator_for
from acp_agent.content import text_part
from acp_agent.events import (
    NoticeShown,
    PermissionAsked,
    ToolOutput,
    ToolShown,
    ToolStarted,
    UsageReported,
)
from acp_agent.server.v1.editor import make_session_tree
from tests.server.v1_children_shown import KNOWS_NOT, cards, kinds, project_updates
from tests.support import child_work
from tests.support.child_work import INNER, PARENT, TASK, TITLE, did, whole


@pytest.mark.covers("P13", "I6")
def test_a_client_without_child_sessions_sees_a_childs_work_in_one_card() -> None:
    quiet = [
        *child_work.begun(),
        *child_work.announced(),
        *did(child_work.called(INNER), NoticeShown(severity="info", title="Hm")),
        *child_work.answered("It is there."),
        *child_work.ran(),
        *did(UsageReported(used=5, size=10)),
        *child_work.done(),
    ]
    updates = project_updates(KNOWS_NOT, quiet)
    assert {of for of, _ in updates} == {PARENT}
    assert set(kinds(updates, PARENT)) == {"tool_call", "tool_call_update"}
    assert set(cards(updates, PARENT)) == {TASK}


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.covers("P13", "P6")
def test_a_childs_call_has_a_card_from_its_question_to_its_end(
    allowed: bool,
) -> None:
    events = list(whole(allowed=allowed))
    before = next(
        at
        for at, event in enumerate(events)
        if isinstance(getattr(event, "did", None), PermissionAsked)
    )
    assert set(cards(project_updates(KNOWS_NOT, events[:before]), PARENT)) == {TASK}
    updates = project_updates(KNOWS_NOT, events)
    card = cards(updates, PARENT)[INNER]
    assert card[0]["title"] == f"{TITLE} › `touch a`"
    assert card[0]["status"] == "pending"
    assert card[-1]["status"] == ("completed" if allowed else "failed")
    if allowed:
        assert [update.get("title") for update in card[1:]] == [None, f"{TITLE} › Done", None]
    assert cards(updates, PARENT)[TASK][-1]["status"] == "completed"


def test_the_card_of_a_childs_call_starts_with_all_known_fields() -> None:
    shows = ToolShown(call=INNER, content=(text_part("a diff"),))
    events = [
        *child_work.begun(),
        *child_work.announced(),
        *did(child_work.called(INNER), shows),
        *child_work.asks(),
        *did(ToolStarted(call=INNER, cwd="/w"), ToolOutput(call=INNER, text="out\n")),
    ]
    card = cards(project_updates(KNOWS_NOT, events), PARENT)[INNER]
    assert [
        update["content"][0]["content"]["text"] for update in card if update.get("content")
    ] == [
        "a diff",
        "```console\nout\n```",
    ]


def test_the_question_names_the_child_and_a_form_no_call_that_is_not_shown() -> None:
    tree = make_session_tree(PARENT, KNOWS_NOT, replay=False)
    events = [*child_work.begun(), *child_work.announced(), *did(child_work.called(INNER))]
    for event in events:
        list(tree.updates(event))
    assert tree.target(INNER) == (PARENT, None, "")
    for event in child_work.asks():
        list(tree.updates(event))
    assert tree.target(INNER) == (PARENT, INNER, TITLE)
    for event in (*child_work.decided(), *child_work.ran()):
        list(tree.updates(event))
    assert tree.target(INNER) == (PARENT, INNER, "")


def test_a_question_of_the_childs_own_has_a_card() -> None:
    question_event = did(child_work.called(INNER, "ask_user", title="Which one?"))
    updates = project_updates(
        KNOWS_NOT, [*child_work.begun(), *child_work.announced(), *question_event]
    )
    assert cards(updates, PARENT)[INNER][0]["title"] == f"{TITLE} › Which one?"


def test_the_titles_of_a_childs_calls_are_in_the_users_language() -> None:
    tree = make_session_tree(PARENT, KNOWS_NOT, replay=False, translate=translator_for("zh"))
    events = [
        *child_work.begun(),
        *child_work.announced(title="查找"),
        *did(child_work.called(INNER, "read", title="Read a.py")),
        *child_work.asks(),
    ]
    updates = [update for event in events for _, update in tree.updates(event)]
    assert "查找 › 读取 a.py" in repr(updates)
