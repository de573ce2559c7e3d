"""Skills that are made of skills: nested agents, with limits."""

from __future__ import annotations

from pathlib import Path

from acp_agent.events import SubagentChanged, ToolCalled
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import Desk


def write(folder: Path, name: str, *tools: str, more: str = "") -> None:
    path = folder / ".agents" / "skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    named = ", ".join(("read", *(f"skill_{tool}" for tool in tools)))
    path.write_text(
        f"---\nname: {name}\ndescription: Does {name}.\ntools: {named}\n{more}\n---\nDo {name}."
    )


def tools_of(server: ModelServer) -> list[list[str]]:
    return [
        [tool["function"]["name"] for tool in request.json["tools"]] for request in server.requests
    ]


async def test_a_skill_calls_others_each_with_an_agent_of_its_own(
    desk: Desk, model_server: ModelServer
) -> None:
    file = "input: {args: [{name: file, type: file, required: true}]}"
    write(desk.folder, "outer", "inner")
    write(desk.folder, "inner", "innermost", more=f"max-requests: 2\n{file}")
    write(desk.folder, "innermost")
    (desk.folder / "a.md").touch()
    model_server.add(
        answer(Call("skill_inner", {"file": "a.md", "request": "closely"})),
        answer(Call("skill_innermost", {"request": "deeper"})),
        answer("Innermost."),
        answer("Inner."),
        answer("Outer."),
    )
    assert await desk.say("/skill:outer go") == "end_turn"
    assert tools_of(model_server) == [
        ["read", "skill_inner"],
        ["read", "skill_innermost"],
        ["read"],
        ["read", "skill_innermost"],
        ["read", "skill_inner"],
    ]
    inner, innermost = (str(request.json["messages"]) for request in model_server.requests[1:3])
    assert "Do inner." in inner
    assert "- file: a.md" in inner
    assert "Use it for this: closely" in inner
    assert "Do innermost." in innermost
    assert model_server.requests[4].json["messages"][-1]["content"] == "Inner."
    agents = {event.session for event in desk.editor.of(SubagentChanged)}
    assert len(agents) == 2


async def test_bundled_skills_are_made_of_bundled_skills(
    desk: Desk, model_server: ModelServer
) -> None:
    (desk.folder / "a.md").touch()
    model_server.add(answer("Fine."))
    await desk.say("/skill:contract-review a.md")
    (tools,) = tools_of(model_server)
    assert {"skill_analyze", "skill_compare", "skill_proofread"} <= set(tools)


async def test_a_skill_that_is_being_followed_cannot_be_called_again(
    desk: Desk, model_server: ModelServer
) -> None:
    write(desk.folder, "one", "two")
    write(desk.folder, "two", "one")
    model_server.add(
        answer(Call("skill_two", {"request": "a"})),
        answer(Call("skill_one", {"request": "b"})),
        answer("Two."),
        answer("One."),
    )
    await desk.say("/skill:one")
    (refused, *_) = [
        message["content"]
        for message in model_server.requests[2].json["messages"]
        if message["role"] == "tool"
    ]
    assert "the skill one is being followed already (one → two → one)" in refused


async def test_skills_call_each_other_over_three_levels_at_most(
    desk: Desk, model_server: ModelServer
) -> None:
    names = ["zero", "one", "two", "three", "four"]
    for name, inner in zip(names, [*names[1:], ""], strict=True):
        write(desk.folder, name, *filter(None, [inner]))
    model_server.add(
        *(answer(Call(f"skill_{name}", {"request": "on"})) for name in names[1:]),
        *(answer(name) for name in names[:-1]),
    )
    await desk.say("/skill:zero")
    last = model_server.requests[4].json["messages"][-1]["content"]
    assert (
        "skills call each other over more than 3 levels (zero → one → two → three → four)" in last
    )
    assert not [event for event in desk.editor.of(ToolCalled) if event.name == "skill_four"]


async def test_a_level_has_its_own_limit_of_requests(desk: Desk, model_server: ModelServer) -> None:
    write(desk.folder, "outer", "inner")
    write(desk.folder, "inner", more="max-requests: 1")
    model_server.add(
        answer(Call("skill_inner", {"request": "go"})),
        answer("Looking.", Call("read", {"path": "."})),
        answer("Outer."),
    )
    assert await desk.say("/skill:outer") == "end_turn"
    assert "stopped before it was done" in model_server.requests[2].json["messages"][-1]["content"]


async def test_a_missing_or_wrong_input_is_reported_to_the_model(
    desk: Desk, model_server: ModelServer
) -> None:
    write(desk.folder, "outer", "inner")
    file = "input: {args: [{name: file, type: file, required: true}]}"
    write(desk.folder, "inner", more=file)
    model_server.add(
        answer(Call("skill_inner", {"request": "x"})),
        answer(Call("skill_inner", {"file": "none.md"})),
        answer("Outer."),
    )
    await desk.say("/skill:outer")
    told = [request.json["messages"][-1]["content"] for request in model_server.requests[1:]]
    assert "file: it is missing" in told[0]
    assert "there is no file none.md" in told[1]
