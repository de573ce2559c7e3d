"""Agents that have agents of their own: who may, how deep, and with what limits."""

from __future__ import annotations

import asyncio

import pytest

from acp_agent.events import ChildWorked, SubagentChanged, TurnEnded, UsageReported
from acp_agent.session.history.interruption import close_open_turn
from tests.session.agent_and_skill import TASK, write_agent
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.open_session import Desk, never_answers

LEAD = Call("task", {"agent": "lead", "title": "All", "task": "Have it done."})


def give(agent: str) -> Call:
    return Call("task", {"agent": agent, "task": f"Do it, {agent}."})


def tools_of(server: ModelServer, request: int) -> dict[str, str]:
    tools = (tool["function"] for tool in server.requests[request].json["tools"])
    return {tool["name"]: str(tool) for tool in tools}


@pytest.fixture
def team(desk: Desk) -> Desk:
    """A session with an agent that may have others work for it, and two of these."""
    write_agent(desk.folder, "tools: [read, edit, task]\nmax-requests: 5", name="lead")
    write_agent(desk.folder, "subagents: [lead, scout]", name="worker")
    write_agent(desk.folder, name="scout")
    return desk


async def test_an_agent_may_use_agents_if_its_file_says_so(
    team: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(LEAD), answer(give("scout")), answer("80."), answer("It is 80."))
    model_server.add(answer("Done."))
    await team.say("Which port?")
    assert team.words(2) == [one for one in team.words(2) if "Do it, scout." in one]
    assert team.results(3) == ["80."]
    assert team.results()[-1].startswith("It is 80.")
    told = tools_of(model_server, 1)["task"]
    assert "scout" in told
    assert "worker" in told
    assert "- lead" not in told
    assert "role" not in told
    began = [one.title for one in team.editor.of(SubagentChanged) if one.title]
    assert began == ["lead: All", "scout: Do it, scout."]


async def test_an_inner_agent_has_no_more_rights_than_its_parent(
    team: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(LEAD), answer(give("worker")), answer(give("scout")), answer("80."))
    model_server.add(answer("80."), answer("80."), answer("Done."))
    await team.say("Which port?")
    assert set(tools_of(model_server, 1)) == {"read", "edit", "task"}
    assert set(tools_of(model_server, 2)) == {"read", "edit", "task"}
    assert "lead" not in tools_of(model_server, 2)["task"], "who is at work already"
    assert set(tools_of(model_server, 3)) == {"read", "edit"}


async def test_an_inner_agent_has_no_more_requests_than_its_parent(
    team: Desk, model_server: ModelServer
) -> None:
    (team.folder / "a.py").write_text("PORT = 80\n")
    reads = [answer(Call("read", {"path": "a.py", "line": n + 1})) for n in range(5)]
    model_server.add(answer(LEAD), answer(give("scout")), *reads, answer("Cut."), answer("Done."))
    await team.say("Which port?")
    assert len(model_server.requests) == 9
    assert "reached a limit" in team.results(7)[0]


async def test_agents_have_at_most_three_levels(desk: Desk, model_server: ModelServer) -> None:
    names = ["one", "two", "three", "four"]
    for name in names:
        write_agent(desk.folder, "subagents: '*'", name=name)
    model_server.add(*(answer(give(name)) for name in names[:3]))
    model_server.add(answer("3."), answer("2."), answer("1."), answer("Done."))
    await desk.say("Go")
    assert ["task" in tools_of(model_server, request) for request in range(4)] == [
        True,
        True,
        True,
        False,
    ]
    assert "three" in tools_of(model_server, 2)["task"]


async def test_only_the_file_of_an_agent_lets_it_use_agents(
    desk: Desk, model_server: ModelServer
) -> None:
    write_agent(desk.folder, name="explore")
    write_agent(desk.folder, "tools: '*'\nsubagents: []", name="none")
    write_agent(desk.folder, "subagents: explore\ndisallowed-tools: task", name="never")
    model_server.add(answer(TASK, give("none"), give("never")))
    model_server.add(*[answer("Hm.")] * 3, answer("Done."))
    await desk.say("Go")
    assert all("task" not in tools_of(model_server, request) for request in (1, 2, 3))


async def test_another_name_is_refused(team: Desk, model_server: ModelServer) -> None:
    made = Call("task", {"agent": "new", "task": "t", "role": "New."})
    again = Call("task", {"agent": "#1", "task": "t"})
    model_server.add(answer(LEAD), answer(give("lead"), made, again), answer("No."), answer("No."))
    await team.say("Go")
    first, second, third = team.results(2)
    assert "there is no agent 'lead'" in first
    assert "there is no agent 'new'" in second
    assert "there is no agent '#1'" in third


async def test_the_cost_of_an_inner_agent_counts_for_each_above_it(
    team: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(LEAD), answer(give("scout")), answer("80."), answer("It is 80."))
    model_server.add(answer("Done."))
    await team.say("Which port?")
    lead, scout = dict.fromkeys(one.session for one in team.editor.of(ChildWorked))
    costs = {
        one.session: one.did.cost
        for one in team.editor.of(ChildWorked)
        if isinstance(one.did, UsageReported) and one.did.cost is not None
    }
    whole = team.editor.of(UsageReported)[-1].cost
    assert whole is not None
    assert 0 < costs[scout] < costs[lead] < whole
    assert costs[lead] == pytest.approx(costs[scout] * 3, rel=0.5)


async def test_stopping_an_agent_stops_its_inner_agents(
    team: Desk, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer(LEAD), answer(give("scout")), answer("80", stall), answer("Stopped."))
    turn = await team.begin("Go")
    await stall.reached.wait()
    left = close_open_turn(await team.journal())  # what is written after a kill
    assert sum(isinstance(one, SubagentChanged) and one.state == "idle" for one in left) == 2
    await team.begin("/agents stop 1")
    async with asyncio.timeout(60):
        assert await turn.result() == "end_turn"
    states = {one.session: one for one in team.editor.of(SubagentChanged) if one.state}
    assert [(one.state, one.stop_reason) for one in states.values()] == [("idle", "cancelled")] * 2
    ends = [one for one in team.editor.of(ChildWorked) if isinstance(one.did, TurnEnded)]
    assert len(ends) == 2


async def test_one_agent_is_stopped_and_the_other_continues(
    team: Desk, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer(LEAD), answer(give("scout")), answer("80", stall), answer("Without."))
    model_server.add(answer("Done."))
    turn = await team.begin("Go")
    await stall.reached.wait()
    await team.begin("/agents stop 2")
    async with asyncio.timeout(60):
        assert await turn.result() == "end_turn"
    assert "stopped" in team.results(3)[0]
    assert team.results()[-1].startswith("Without.")


async def test_a_turn_that_ends_ends_all_of_them(team: Desk, model_server: ModelServer) -> None:
    team.editor.decide = never_answers
    write = Call("edit", {"path": "a.py", "old": "8", "new": "9"})
    (team.folder / "a.py").write_text("PORT = 80\n")
    model_server.add(answer(LEAD), answer(give("scout")), answer(write))
    turn = await team.begin("Go")
    await team.editor.until_asked()
    states = [one.state for one in team.editor.of(SubagentChanged)]
    assert states == ["running", "running", "requires_action"]
    assert await team.cancel(turn) == "cancelled"
    states = [one.state for one in team.editor.of(SubagentChanged)][-2:]
    assert states == ["idle", "idle"]
