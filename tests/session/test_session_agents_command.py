"""The command /agents: lists agents and their tasks, starts one, messages it, stops it."""

from __future__ import annotations

from pathlib import Path

from acp_agent.events import AgentText, SubagentChanged, ToolEnded
from tests.session.agent_and_skill import TASK, write_agent, write_skill
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.open_session import Desk, open_desk


def last_words(desk: Desk) -> str:
    """What the agent said last by itself."""
    return desk.editor.of(AgentText)[-1].text


async def test_the_user_gives_an_agent_a_task_and_sees_it_in_the_list(
    desk: Desk, model_server: ModelServer
) -> None:
    write_agent(desk.folder)
    model_server.add(answer("Port 80."), answer("It is 80."))
    await desk.say("/agents start explore Which port is used?")
    assert "Port 80." in str(desk.editor.of(ToolEnded)[-1])
    await desk.say("/agents")
    assert "1: explore: Which port is used? (ended)" in last_words(desk)
    assert "`review`" in last_words(desk)
    await desk.say("/agents start nobody Anything")
    assert "explore" in last_words(desk)
    await desk.say("/agents stop 1")
    assert "No running agent has the number 1" in last_words(desk)


async def test_agents_and_skills_that_are_not_trusted_are_named_in_their_lists(
    tmp_path: Path, model_server: ModelServer
) -> None:
    why = "is not used until you trust it: /trust"
    async with open_desk(tmp_path, model_server, trusted=False) as desk:
        write_agent(desk.folder)
        write_skill(desk.folder)
        await desk.say("/agents")
        assert f"- `.agents/agents/explore.md` {why}" in last_words(desk)
        assert "SKILL.md" not in last_words(desk)
        await desk.say("/skills")
        assert f"- `.agents/skills/review/SKILL.md` {why}" in last_words(desk)
        assert "explore.md" not in last_words(desk)


async def test_the_user_lists_the_skills_with_their_files(
    desk: Desk, model_server: ModelServer
) -> None:
    folder = write_skill(desk.folder, "user-invocable: false")
    await desk.say("/skills")
    assert f"- `review`: Reviews a change. (`{folder}/SKILL.md`)" in last_words(desk)
    assert "- `commit-message`: " in last_words(desk)
    (desk.folder / ".claude").mkdir()
    (desk.folder / ".claude" / "settings.json").write_text('{"enabledPlugins": {"fmt@team": true}}')
    await desk.say("/skills")
    assert "- The plugin `fmt` is not added: `acp-agent plugin import`" in last_words(desk)
    assert model_server.requests == []


async def test_the_model_is_asked_to_write_a_new_agent_which_can_be_used_once_it_is_written(
    desk: Desk, model_server: ModelServer
) -> None:
    text = "---\nname: porter\ndescription: Finds ports.\n---\nLook for ports.\n"
    call = Call("write", {"path": ".agents/agents/porter.md", "content": text})
    model_server.add(answer(call), answer("Written."))
    await desk.say("/agent-new finds ports")
    assert "finds ports" in desk.words(0)[-1]
    assert len(desk.editor.asked) == 1
    await desk.say("/agents")
    assert "`porter`: Finds ports." in last_words(desk)


async def test_a_message_reaches_an_agent_with_its_next_request_and_a_stop_ends_it_alone(
    desk: Desk, model_server: ModelServer
) -> None:
    write_agent(desk.folder)
    (desk.folder / "a.py").write_text("PORT = 80\n")
    first, second = Stall(), Stall()
    read = Call("read", {"path": "a.py"})
    model_server.add(answer(TASK), answer(first, read), answer(second, "80"), answer("Stopped."))
    turn = await desk.begin("Go")
    await first.reached.wait()
    await desk.begin("/agents message 1 Look at the tests, too")
    first.release()
    await second.reached.wait()
    assert "Look at the tests, too" in str(model_server.requests[2].json["messages"])
    await desk.begin("/agents stop 1")
    assert await turn.result() == "end_turn"
    assert desk.editor.of(SubagentChanged)[-1].stop_reason == "cancelled"


async def test_a_message_to_an_agent_that_has_ended_continues_its_task(
    desk: Desk, model_server: ModelServer
) -> None:
    write_agent(desk.folder)
    model_server.add(answer("Port 80."), answer("It is 80."), answer("8080."), answer("Now 8080."))
    await desk.say("/agents start explore Which port is used?")
    await desk.say("/agents message 1 And the other one?")
    child = str(model_server.requests[2].json["messages"])
    assert "Which port is used?" in child
    assert "And the other one?" in child
    assert "8080." in str(desk.editor.of(ToolEnded)[-1])
    await desk.say("/agents message 2 Nobody?")
    assert "No running agent has the number 2" in last_words(desk)
