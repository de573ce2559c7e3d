from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.errors import ToolError
from acp_agent.events import PlanEntry
from acp_agent.permissions.access import NoAccess
from acp_agent.tools.base import Answer, Outcome, Question
from tests.support.tool_calls import RecordedProgress, ToolUser


@pytest.fixture
def user(tmp_path: Path) -> ToolUser:
    return ToolUser(tmp_path.resolve())


async def run(user: ToolUser, progress: RecordedProgress, name: str, **given: object) -> Outcome:
    return await (await user.prepare(name, **given)).run(progress)


async def test_the_whole_plan_is_shown_each_time(user: ToolUser) -> None:
    progress = RecordedProgress()
    steps = [
        {"content": "Read the code", "status": "completed", "priority": "high"},
        {"content": "Change it", "status": "in_progress"},
        {"content": "Test it"},
    ]
    outcome = await run(user, progress, "todo", todos=steps)
    assert progress.plans == [
        (
            PlanEntry(content="Read the code", status="completed", priority="high"),
            PlanEntry(content="Change it", status="in_progress"),
            PlanEntry(content="Test it", status="pending", priority="medium"),
        )
    ]
    assert outcome.text == "The plan has 3 steps, 1 completed."
    await run(user, progress, "todo", todos=[])
    assert progress.plans[-1] == ()


async def test_a_plan_with_an_unknown_status_is_refused_with_the_known_ones(
    user: ToolUser,
) -> None:
    with pytest.raises(ToolError, match=r"todos\.0\.status .*'pending', 'in_progress' or 'compl"):
        await user.prepare("todo", todos=[{"content": "x", "status": "lost"}])


async def test_an_answer_of_the_user_goes_to_the_model(user: ToolUser) -> None:
    progress = RecordedProgress(Answer(text="SQLite"))
    outcome = await run(
        user,
        progress,
        "ask_user",
        question="Which database?",
        options=[{"label": "SQLite", "description": "one file"}, {"label": "PostgreSQL"}],
        several=True,
    )
    assert progress.questions == [
        Question(
            text="Which database?",
            options=(("SQLite", "one file"), ("PostgreSQL", "")),
            several=True,
        )
    ]
    assert outcome == Outcome(text="The user answered: SQLite")


async def test_a_declined_question_is_no_failure_and_reaches_the_model(user: ToolUser) -> None:
    outcome = await run(user, RecordedProgress(Answer(declined=True)), "ask_user", question="Why?")
    assert "does not want to answer" in outcome.text
    assert not outcome.failed
    assert not outcome.end_turn


async def test_without_forms_the_question_is_asked_in_text_and_the_turn_ends(
    user: ToolUser,
) -> None:
    progress = RecordedProgress(None)
    outcome = await run(
        user,
        progress,
        "ask_user",
        question="Which?",
        options=[{"label": "A", "description": "the first"}, {"label": "B"}],
        several=True,
    )
    assert progress.said == ["Which?\n\n- A: the first\n- B\n\n(more than one may be chosen)"]
    assert outcome.end_turn


async def test_several_questions_in_text_are_numbered_with_the_expected_answers(
    user: ToolUser,
) -> None:
    progress = RecordedProgress(None)
    await run(
        user,
        progress,
        "ask_user",
        question="Which?",
        options=[{"label": "A"}, {"label": "B"}],
        preset="B",
        further=[
            {"question": "How many?", "kind": "integer", "preset": "3"},
            {"question": "Sure?", "kind": "yes_no", "preset": "yes", "optional": True},
        ],
    )
    (text,) = progress.said
    assert text.split("\n\n") == [
        "**1.** Which?",
        "- A\n- B",
        "(by default: B)",
        "**2.** How many? (a whole number; by default: 3)",
        "**3.** Sure? (yes or no; by default: yes; may be left open)",
    ]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"options": [{"label": "A"}], "preset": "C"}, "preset must be the label"),
        ({"options": [{"label": "A"}, {"label": "A"}]}, "same label"),
        ({"options": [{"label": "A"}], "kind": "number"}, "without options"),
        ({"several": True}, "needs options"),
        ({"kind": "integer", "preset": "many"}, "many"),
        ({"kind": "yes_no", "preset": "maybe"}, "yes or no"),
        ({"kind": "number", "preset": "nan"}, "too large"),
        ({"kind": "integer", "preset": "9" * 20}, "too large"),
        ({"further": [{"question": "?"}] * 4}, "further"),
    ],
)
async def test_a_question_that_makes_no_sense_is_refused_with_the_reason(
    user: ToolUser, given: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ToolError, match=complaint):
        await user.prepare("ask_user", question="?", **given)


async def test_a_question_for_a_secret_is_refused_with_advice(user: ToolUser) -> None:
    for question in ("What is your OpenAI API key?", "GitHub token:", "请输入你的密码"):
        with pytest.raises(ToolError, match="environment variable"):
            await user.prepare("ask_user", question=question)


async def test_planning_and_asking_touch_nothing(user: ToolUser) -> None:
    assert (await user.prepare("todo", todos=[])).access == NoAccess()
    assert (await user.prepare("ask_user", question="?")).access == NoAccess()


def test_titles_are_built_from_the_available_arguments(user: ToolUser) -> None:
    assert user.title("todo") == "Update the plan"
    assert user.title("todo", todos="x") == "Update the plan"
    todos = [{"status": "completed"}, {"status": "pending"}, "junk"]
    assert user.title("todo", todos=todos) == "Update the plan (1 of 3 done)"
    assert user.title("ask_user") == "Ask the user"
    assert user.title("ask_user", question="Which one?\nReally?") == r"Which one?\nReally?"
