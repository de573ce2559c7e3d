"""Flow skills: a chart drives the turn, shows as the plan, and can be stopped and resumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.events import AgentText, PlanChanged
from tests.support.model_server import ModelServer, Stall, answer
from tests.support.open_session import Desk

CHART = """
```mermaid
flowchart TD
A([BEGIN]) --> B[Look at $ARGUMENTS]
B --> C{Is it good?}
C -->|Yes| D[Report]
C -->|No| E[Improve it]
E --> C
D --> F([END])
```
"""


def write_flow(folder: Path, chart: str = CHART, more: str = "") -> Path:
    path = folder / ".agents" / "skills" / "check" / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"---\nname: check\ndescription: Checks.\ntype: flow\n{more}---\nBe short.\n{chart}"
    )
    return path


def asked(server: ModelServer) -> list[str]:
    found = []
    for request in server.requests:
        content = request.json["messages"][-1]["content"]
        found.append(content if isinstance(content, str) else content[-1]["text"])
    return found


def plans(desk: Desk) -> list[str]:
    marks = {"pending": ".", "in_progress": ">", "completed": "x"}
    shown = desk.editor.of(PlanChanged)
    return ["".join(marks[entry.status] for entry in plan.entries) for plan in shown]


def said(desk: Desk) -> str:
    return "".join(event.text for event in desk.editor.of(AgentText))


async def test_a_flow_sends_the_model_one_step_at_a_time_and_is_shown_as_the_plan(
    desk: Desk, model_server: ModelServer
) -> None:
    write_flow(desk.folder)
    model_server.add(
        answer("Looked."),
        answer("It is bad. <choice>No</choice>"),
        answer("Improved."),
        answer("Now <choice>No</choice>, no: <choice> yes </choice>"),
        answer("Reported."),
    )
    assert await desk.say("/flow:check the parser") == "end_turn"
    steps = asked(model_server)
    assert "Look at the parser" in steps[0]
    assert "Be short." in steps[0]
    assert "Report" not in steps[0]
    assert steps[1].startswith("Is it good?\n\nThen choose what comes next")
    assert steps[2] == "Improve it"
    assert steps[4] == "Report"
    assert plans(desk) == [">...", "x>..", "xx.>", "x>.x", "xx>x", "xxxx"]
    assert "**Step 2: Is it good?**" in said(desk)
    assert "The flow ended after 5 steps." in said(desk)
    tools = [tool["function"]["name"] for tool in model_server.requests[1].json["tools"]]
    assert "read" in tools
    assert not {"todo", "finish_loop"} & set(tools)
    offered = [command.name for command in desk.editor.commands]
    assert "flow:check" in offered
    assert "skill:check" not in offered


async def test_a_flow_that_was_cancelled_continues_where_it_was_stopped(
    desk: Desk, model_server: ModelServer
) -> None:
    write_flow(desk.folder)
    stall = Stall()
    model_server.add(answer("Looked."), answer("Hm", stall))
    turn = await desk.begin("/flow:check it")
    await desk.editor.until(AgentText, 4)
    turn.cancel()
    assert await turn.result() == "cancelled"
    stall.release()
    model_server.add(answer("<choice>Yes</choice>"), answer("Reported."))
    assert await desk.say("/flow:check resume") == "end_turn"
    assert "Is it good?" in asked(model_server)[2]
    assert plans(desk)[-1] == "xxx."
    await desk.say("/flow:check resume")
    assert "There is no stopped run of the flow check in this session." in said(desk)


async def test_an_unknown_branch_is_requested_again_and_then_the_flow_stops(
    desk: Desk, model_server: ModelServer
) -> None:
    write_flow(desk.folder)
    model_server.add(
        answer("Looked."),
        answer("Good!"),
        answer("<choice>Maybe</choice>"),
        answer("<choice>Yes</choice>"),
        answer("Reported."),
    )
    assert await desk.say("/flow:check") == "end_turn"
    assert "chooses none of the branches" in asked(model_server)[2]
    model_server.add(answer("Looked."), *(answer("Good!") for _ in range(3)))
    await desk.say("/flow:check")
    assert "the model chose none of the branches Yes, No" in said(desk)
    assert plans(desk)[-1] == "x>.."


async def test_a_flow_in_a_circle_ends_after_a_bounded_number_of_steps(
    desk: Desk, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_agent.session.turns.flow.MAX_STEPS", 4)
    write_flow(desk.folder, "```d2\nBEGIN -> a -> b\nb -> a: on\nb -> END: off\n```")
    model_server.otherwise = answer("<choice>on</choice>")
    assert await desk.say("/flow:check") == "max_turn_requests"
    assert "The flow ended: it reached the limit of 4 steps." in said(desk)
    assert len(model_server.requests) == 4


async def test_a_flow_that_cannot_run_is_reported_with_its_line(
    desk: Desk, model_server: ModelServer
) -> None:
    path = write_flow(desk.folder, "```d2\nBEGIN -> a\n\na -> \n```")
    await desk.session.extensions.definitions.load()
    notice = str(desk.editor.shown[-1])
    assert f"{path}: line 10: expected a name" in notice
    await desk.say("/flow:check")
    assert "Unknown skill 'check'" in said(desk)
    assert model_server.requests == []


async def test_a_flow_can_be_used_as_any_skill_and_waits_for_the_turn_that_runs(
    desk: Desk, model_server: ModelServer
) -> None:
    write_flow(desk.folder)
    stall = Stall()
    model_server.add(answer("Half", stall, "."), answer("Done."))
    turn = await desk.begin("/skill:check it")
    await desk.editor.until(AgentText)
    await desk.begin("/flow:check it")
    stall.release()
    assert await turn.result() == "end_turn"
    assert "A flow starts its own turn" in said(desk)
    assert "flowchart TD" in desk.words()[0]
