"""An agent whose task is done goes on with its conversation when it is given another one."""

from __future__ import annotations

import pytest

from acp_agent.events import ChildWorked, SubagentChanged, UsageReported
from tests.session.agent_and_skill import TASK, USE, write_agent, write_skill
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.open_session import Desk

GO_ON = Call("task", {"agent": "#1", "task": "And the host?"})


@pytest.fixture
def explorer(desk: Desk) -> Desk:
    write_agent(desk.folder)
    return desk


async def test_it_has_its_own_conversation_and_its_prompt_as_they_were(
    explorer: Desk, model_server: ModelServer
) -> None:
    read = Call("read", {"path": "a.py"})
    (explorer.folder / "a.py").write_text("PORT = 80\n")
    model_server.add(answer(TASK), answer(read), answer("80."), answer(GO_ON), answer("Here."))
    model_server.add(answer("Both."))
    await explorer.say("Which port and host?")
    first, again = model_server.requests[2].json, model_server.requests[4].json
    assert again["messages"][: len(first["messages"])] == first["messages"]
    assert [one["role"] for one in explorer.sent(4)][-2:] == ["assistant", "user"]
    assert "And the host?" in explorer.words(4)[-1]
    assert again["tools"] == first["tools"]
    assert explorer.results()[-1] == 'Here.\n\n[To go on with it: agent "#1".]'
    shown = explorer.editor.of(SubagentChanged)
    assert len({one.session for one in shown}) == 1
    assert [one.state for one in shown] == ["running", "idle", "running", "idle"]
    calls = {one.call for one in explorer.editor.of(ChildWorked)}
    assert len(calls) == 2
    costs = [
        one.did.cost
        for one in explorer.editor.of(ChildWorked)
        if isinstance(one.did, UsageReported) and one.did.cost is not None
    ]
    assert costs == sorted(costs)


async def test_it_continues_in_a_later_turn_and_when_the_session_is_opened_again(
    explorer: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(TASK), answer("80."), answer("It is 80."))
    await explorer.say("Which port?")
    await explorer.reopen()
    model_server.add(answer(GO_ON), answer("Here."), answer("That host."))
    await explorer.say("And the host?")
    assert "80." in str(explorer.sent(4))
    assert "Which port is used?" in explorer.words(4)[0]
    model_server.add(answer(GO_ON), answer("Still here."), answer("Yes."))
    await explorer.say("Really?")
    assert [one["content"] for one in explorer.sent(7) if one["role"] == "assistant"] == [
        "80.",
        "Here.",
    ]


async def test_a_stopped_agent_continues_with_its_conversation(
    explorer: Desk, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer(TASK), answer("Half", stall))
    turn = await explorer.begin("Go")
    await stall.reached.wait()
    await explorer.cancel(turn)
    model_server.add(answer(GO_ON), answer("Whole."), answer("Done."))
    await explorer.say("Go on")
    assert explorer.results()[-1].startswith("Whole.")
    assert "Which port is used?" in explorer.words(3)[0]


async def test_an_agent_that_cannot_continue_is_reported_and_nothing_runs(
    explorer: Desk, model_server: ModelServer
) -> None:
    write_skill(explorer.folder, "context: fork")
    model_server.add(answer(USE), answer("Fine."), answer(GO_ON), answer("No."))
    await explorer.say("Review it")
    assert "nobody can go on with agent #1" in explorer.results()[-1]
    model_server.add(answer(Call("task", {"agent": "#7", "task": "t"})), answer("No."))
    await explorer.say("Go on")
    assert "there is no agent #7" in explorer.results()[-1]


async def test_an_agent_at_work_takes_no_other_task(
    explorer: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(TASK), answer("80."), answer(GO_ON, GO_ON), answer("Here."))
    model_server.add(answer("One of them."))
    await explorer.say("Go")
    results = sorted(explorer.results())
    assert "at work" in str(results)
    assert len(model_server.requests) == 5


async def test_its_file_decides_what_it_may_do_when_it_continues(
    explorer: Desk, model_server: ModelServer
) -> None:
    write_agent(explorer.folder, name="scout")
    look = Call("task", {"agent": "scout", "task": "Which port is used?"})
    model_server.add(answer(look), answer("80."), answer("It is 80."))
    await explorer.say("Which port?")
    path = write_agent(explorer.folder, "tools: [read]", name="scout")
    model_server.add(answer(GO_ON), answer("Here."), answer("Done."))
    await explorer.say("Go on")
    assert [one["function"]["name"] for one in model_server.requests[4].json["tools"]] == ["read"]
    path.unlink()
    model_server.add(answer(GO_ON), answer("No."))
    await explorer.say("Go on")
    assert "any more" in explorer.results()[-1]


async def test_a_fork_does_not_continue_with_the_agents_of_its_source(
    explorer: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(TASK), answer("80."), answer("It is 80."))
    await explorer.say("Which port?")
    source = explorer.session.id
    fork = await explorer.manager.fork(source, str(explorer.folder), [], explorer.editor)
    explorer._session = fork
    model_server.add(answer(GO_ON), answer("No."))
    await explorer.say("Go on")
    assert "nobody can go on with agent #1" in explorer.results()[-1]
