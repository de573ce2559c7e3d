"""What files of a project that somebody else wrote cannot make happen, or show."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from acp_agent.content import ResourceLinkBlock
from acp_agent.events import AgentText, NoticeShown, SubagentChanged, ToolCalled, ToolEnded
from tests.session.agent_and_skill import TASK, USE, write_agent, write_skill
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import SECRET, Desk, open_desk


async def test_a_skill_that_only_the_user_may_choose_is_not_run_again_by_a_model_that_saw_its_name(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder, "context: fork\ndisable-model-invocation: true")
    model_server.add(answer("Two faults."), answer(USE), answer("I may not."))
    assert await desk.say("/skill:review the parser") == "end_turn"
    first, second = desk.editor.of(ToolEnded)
    assert first.result == "Two faults."
    assert second.failed
    assert "only the user may choose" in second.result
    assert "/skill:review" in repr(second.content)  # for the user


async def test_keys_in_texts_of_skills_and_agents_reach_neither_model_nor_editor(
    desk: Desk, model_server: ModelServer
) -> None:
    front = f"---\nname: {{0}}\ndescription: Signs with {SECRET}.\nargument-hint: {SECRET}\n---\n"
    agent = write_agent(desk.folder)
    agent.write_text(front.format("explore") + f"You know {SECRET}.")
    skill = write_skill(desk.folder) / "SKILL.md"
    skill.write_text(front.format("review") + f"Sign with {SECRET}.")
    write_agent(desk.folder, f"model: {SECRET}", name="wrong")
    model_server.add(answer(TASK, USE), answer("4711."), answer("Done."))
    await desk.say("Go")
    assert "Signs with [secret]." in str(model_server.requests[0].json["tools"])
    assert "You know [secret]." in str(model_server.requests[1].json["messages"][0])
    assert not [one for one in model_server.requests if SECRET.encode() in one.body]
    assert SECRET not in str(desk.editor.commands)
    assert SECRET not in str(desk.editor.shown)
    assert len(desk.editor.of(NoticeShown)) == 1
    assert SECRET not in str(await desk.journal())


async def test_an_agent_is_titled_with_one_short_line_for_any_title_of_its_task(
    desk: Desk, model_server: ModelServer
) -> None:
    write_agent(desk.folder)
    write_skill(desk.folder, "context: fork")
    strange = "Look \x1b[2J\u202e" + "far " * 100 + "\nand wide"
    task = Call("task", {"agent": "explore", "title": strange, "task": "Look."})
    use = Call("skill", {"skill": "review", "request": strange})
    model_server.add(answer(task, use), answer("One."), answer("Two."), answer("Done."))
    await desk.say("Go")
    titles = [event.title for event in desk.editor.of(SubagentChanged) if event.title]
    assert len(titles) == 2
    for title in titles:
        assert len(title) <= 120
        assert title.isprintable()


async def test_many_skills_and_agents_take_a_bounded_part_of_every_request(
    desk: Desk, model_server: ModelServer
) -> None:
    for number in range(120):
        agent = write_agent(desk.folder, f"metadata: {number}", name=f"agent-{number:03}")
        agent.write_text(
            agent.read_text().replace("nobody knows", "nobody knows" + ", not yet" * 70)
        )
        folder = desk.folder / ".agents" / "skills" / f"skill-{number:03}"
        folder.mkdir(parents=True)
        text = f"---\nname: {folder.name}\ndescription: {'What it does. ' * 70}\n---\nDo it."
        (folder / "SKILL.md").write_text(text)
    nobody = {"agent": "no", "title": "Find it", "task": "Where is it?"}
    wrong = [Call("skill", {"skill": "no" * 9_000}), Call("task", nobody)]
    model_server.add(answer(*wrong), answer("Done."))
    await desk.say("Go")
    tools = {
        tool["function"]["name"]: tool["function"]["description"]
        for tool in model_server.requests[0].json["tools"]
    }
    for tool, name in (("skill", "skill-119"), ("task", "agent-119")):
        assert len(tools[tool]) < 20_000
        assert f"\n- {name}" in tools[tool]
    assert all(len(event.result) < 2_000 for event in desk.editor.of(ToolEnded))


async def test_the_tools_of_a_session_with_skills_and_agents_stay_the_same_bytes(
    desk: Desk, model_server: ModelServer
) -> None:
    write_agent(desk.folder)
    write_skill(desk.folder)
    for _ in range(5):
        model_server.add(answer(TASK, USE), answer("4711."), answer("Done."))
        await desk.say("Go")
    own = [one.body for one in model_server.requests if b"explore: Finds" in one.body]
    assert len(own) == 10
    for before, after in itertools.pairwise(own):
        assert after.startswith(before.removesuffix(b"]}"))


async def test_a_skill_with_its_own_context_gets_the_users_attachments(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder, "context: fork")
    (desk.folder / "parser.py").write_text("pass\n")
    link = ResourceLinkBlock(name="parser.py", uri=(desk.folder / "parser.py").as_uri())
    model_server.add(answer("Two faults."), answer("There are two faults."))
    await desk.say("/skill:review", link)
    assert link.uri in str(model_server.requests[0].json["messages"][-1])
    assert link.uri in desk.editor.of(ToolCalled)[0].arguments


async def test_help_shows_what_a_skill_says_of_itself_and_fetches_and_draws_nothing_for_it(
    desk: Desk, model_server: ModelServer
) -> None:
    skill = write_skill(desk.folder) / "SKILL.md"
    strange = "![x](https://example.com/a.png) <img src=https://example.com/b.png> &#33;[y]"
    front = f"name: review\ndescription: '{strange}'\nargument-hint: 'a`b ![z](c)'"
    skill.write_text(f"---\n{front}\n---\nLook.")
    await desk.say("/help")
    said = "".join(event.text for event in desk.editor.of(AgentText))
    (line,) = [one for one in said.splitlines() if "skill:review" in one]
    assert line == (
        "- ``/skill:review a`b ![z](c)``: !\\[x](https://example.com/a.png) "
        "\\<img src=https://example.com/b.png> \\&#33;\\[y]"
    )


ALLOWED = '[agents.explore]\nmodel = "anthropic/claude-sonnet-4-5"\n'


@pytest.mark.parametrize("allowed", ["", ALLOWED])
async def test_a_projects_file_chooses_no_model_of_a_provider_that_the_user_did_not_choose(
    tmp_path: Path, model_server: ModelServer, allowed: str
) -> None:
    async with open_desk(tmp_path, model_server, config=allowed) as desk:
        write_agent(desk.folder, "model: anthropic/claude-sonnet-4-5")
        write_agent(desk.folder, "model: openai/gpt-5-mini", name="near")
        model_server.otherwise = answer("4711.")
        await desk.say("Go")
        agents = {one.name: one.uses.model for one in desk.session.extensions.definitions.agents}
        told = [event.description for event in desk.editor.of(NoticeShown)]
    assert agents["near"] == "openai/gpt-5-mini"
    if allowed:
        assert agents["explore"] == "anthropic/claude-sonnet-4-5"
        assert told == []
    else:
        assert agents["explore"] is None  # the session's
        assert "anthropic/claude-sonnet-4-5 is at a provider that you have not chosen" in told[0]
        assert "[agents.explore]" in told[0]
