"""Which decisions of a journal count as questions, asked or avoided, and which as neither."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from acp_agent.config.localization import Translator
from acp_agent.events import AnyEvent, ChildWorked, PermissionAsked, PermissionDecided
from acp_agent.ids import CallId, SessionId
from acp_agent.permissions.access import Grant
from acp_agent.session.history.questions import QuestionCounts

CONFINED = Grant(project="/p", kind="confined", pattern="").label
# What was decided, whether it was asked about, and what it counts as.
DECISIONS: list[tuple[dict[str, Any], bool, tuple[str, ...]]] = [
    ({"allowed": True, "by": "user", "why": "Allow once"}, True, ("asked", "allowed")),
    ({"allowed": False, "by": "user", "why": "Reject"}, True, ("asked", "refused")),
    ({"allowed": False, "by": "user", "why": "dismissed"}, True, ("asked", "cancelled")),
    ({"allowed": False, "by": "nobody", "why": "not asked"}, True, ("asked", "cancelled")),
    ({"allowed": True, "by": "flag", "name": "--allow all"}, True, ("avoided_by_flags",)),
    ({"allowed": True, "by": "rule", "rule": "allow Bash(make *)"}, False, ("avoided_by_rules",)),
    ({"allowed": False, "by": "rule", "rule": "deny Read(.env)"}, False, ("avoided_by_rules",)),
    ({"allowed": True, "by": "grant", "rule": "allow npm"}, False, ("avoided_by_answers",)),
    ({"allowed": True, "by": "grant", "rule": CONFINED}, False, ("avoided_by_sandbox",)),
    (
        {"allowed": True, "by": "rule", "why": "commands in the sandbox are allowed"},
        False,
        ("avoided_by_sandbox",),
    ),
    ({"allowed": True, "by": "mode", "name": "full"}, False, ("avoided_by_mode",)),
    ({"allowed": True, "by": "rule", "why": "the command only reads"}, False, ()),
]  # fmt: skip


def events_of(number: int, decided: dict[str, Any], *, asked: bool) -> Sequence[AnyEvent]:
    call = CallId(f"c{number}")
    decision = PermissionDecided(call=call, known=True, **decided)
    return [PermissionAsked(call=call, options=()), decision] if asked else [decision]


def test_each_decision_counts_as_what_it_was_in_child_sessions_too() -> None:
    for number, (decided, asked, wanted) in enumerate(DECISIONS):
        events = events_of(number, decided, asked=asked)
        child = [ChildWorked(session=SessionId("s"), call=CallId("t"), did=one) for one in events]
        for counted in (events, child):
            counts = QuestionCounts()
            counts.add(counted)
            assert {name for name, count in asdict(counts).items() if count} == {*wanted}, decided


def test_questions_without_an_answer_at_the_end_are_counted_and_listed() -> None:
    counts = QuestionCounts()
    assert counts.describe(Translator("en", {})) == ""
    for number, (decided, asked, _) in enumerate(DECISIONS):
        counts.add(events_of(number, decided, asked=asked))
    counts.add([PermissionAsked(call=CallId("open"), options=())])
    assert counts.describe(Translator("en", {})) == (
        "Questions: 5 asked (1 allowed, 1 refused, 3 not answered), 7 avoided (2 by rules, "
        "1 by remembered answers, 2 by the sandbox, 1 by the mode, 1 by flags)"
    )
