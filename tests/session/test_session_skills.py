"""Skills: chosen by the user as commands, by the model as a tool, run as they want to be run."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.content import ImageBlock
from acp_agent.errors import InvalidInputError
from acp_agent.events import AgentText, ChildWorked, ToolCalled, ToolEnded
from acp_agent.extensions.definitions.discovery import FoundDefinitions
from acp_agent.session import definition_search
from acp_agent.session.core import SessionCore
from acp_agent.session.definition_search import find_session_definitions
from acp_agent.tools.base import Answer
from tests.session.agent_and_skill import USE, make_the_users, write_skill
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.open_session import Desk, open_desk, presses


def models(server: ModelServer) -> list[str]:
    return [request.json["model"] for request in server.requests]


async def test_a_skill_is_a_command_that_sends_its_text_with_the_users_request(
    desk: Desk, model_server: ModelServer
) -> None:
    folder = write_skill(desk.folder)
    model_server.add(answer("Fine."))
    await desk.say("/skill:review the parser")
    words = desk.words()[-1]
    assert words.startswith("/skill:review the parser")
    assert "Look at the diff first." in words
    assert "Use it for this: the parser" in words
    assert str(folder) in words
    offered = {command.name: command for command in desk.editor.commands}
    assert offered["skill:review"].hint == "what to review"


async def test_the_files_are_read_once_for_each_prompt_and_changes_take_effect_with_it(
    desk: Desk, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    skill = write_skill(desk.folder) / "SKILL.md"
    reads: list[str] = []

    def find(core: SessionCore) -> FoundDefinitions:
        reads.append(core.id)
        return find_session_definitions(core)

    monkeypatch.setattr(definition_search, "find_session_definitions", find)
    model_server.otherwise = answer("Fine.")
    for number, prompt in enumerate(("/skill:review a", "/review b", "Hi", "/help"), 1):
        skill.write_text(skill.read_text() + f"\nRule {number}.")
        await desk.say(prompt)
        assert len(reads) == number, prompt
        if prompt.startswith(("/skill", "/review")):
            assert f"Rule {number}." in desk.words()[-1]


async def test_a_skill_answers_with_the_model_that_it_names_for_its_turn_alone(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder, "model: openai/blind")
    model_server.otherwise = answer("Fine.")
    await desk.say("Hi")
    await desk.say("/skill:review")
    await desk.say("And now?")
    assert models(model_server) == ["gpt-5", "blind", "gpt-5"]
    assert desk.session.core.settings.model.ref == "openai/gpt-5"


async def test_a_skill_can_use_the_small_model(tmp_path: Path, model_server: ModelServer) -> None:
    async with open_desk(tmp_path, model_server, config='small_model = "openai/blind"\n') as desk:
        write_skill(desk.folder, "model: small")
        model_server.add(answer("Fine."))
        await desk.say("/skill:review")
        assert models(model_server) == ["blind"]


async def test_the_users_configuration_beats_the_model_that_a_skill_names(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = '[skills.review]\nmodel = "openai/gpt-5"\nthought_level = "high"\n'
    async with open_desk(tmp_path, model_server, config=config) as desk:
        write_skill(desk.folder, "model: openai/blind")
        model_server.add(answer("Fine."))
        await desk.say("/skill:review")
        assert models(model_server) == ["gpt-5"]
        assert model_server.requests[0].json["reasoning_effort"] == "high"


async def test_a_skill_with_an_output_folder_edits_files_only_there(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder, "output: {description: A report., directory: reports}")
    (desk.folder / "notes.md").write_text("old\n")
    model_server.add(
        answer(
            Call("write", {"path": "reports/week.md", "content": "Fine.\n"}),
            Call("edit", {"path": "notes.md", "old": "old", "new": "new"}),
            Call("write", {"path": "reports/../other.md", "content": "Fine.\n"}),
        ),
        answer("Done."),
        answer(Call("edit", {"path": "notes.md", "old": "old", "new": "newer"})),
        answer("Done."),
    )
    await desk.say("/skill:review")
    assert (desk.folder / "reports" / "week.md").read_text() == "Fine.\n"
    assert (desk.folder / "notes.md").read_text() == "old\n"
    assert not (desk.folder / "other.md").exists()
    assert "writes only below reports" in desk.results()[1]
    await desk.say("And now without it")
    assert (desk.folder / "notes.md").read_text() == "newer\n"


async def test_a_skill_with_an_unusable_model_reports_it_and_sends_nothing(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder, "model: anthropic/claude-sonnet-4-5")
    make_the_users(desk.folder, desk.session.core.services.user_folder)
    assert await desk.say("/skill:review") == "end_turn"
    said = "".join(event.text for event in desk.editor.of(AgentText))
    assert "The skill review cannot be used: its model anthropic/claude-sonnet-4-5" in said
    assert model_server.requests == []


async def test_a_skill_has_only_the_tools_that_it_names(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder, "tools: read, gr*")
    model_server.otherwise = answer("Fine.")
    await desk.say("/skill:review")
    await desk.say("And now?")
    tools = [
        [tool["function"]["name"] for tool in request.json["tools"]]
        for request in model_server.requests
    ]
    assert tools[0] == ["read", "grep"]
    assert "shell" in tools[1]


async def test_an_image_is_sent_only_to_a_skill_whose_model_sees_images(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder, "model: openai/blind")
    image = ImageBlock(data="iVBORw0KGgo=", mime_type="image/png")
    with pytest.raises(InvalidInputError, match="openai/blind cannot see images"):
        await desk.say("/skill:review", image)
    assert model_server.requests == []


async def test_a_skill_in_a_running_turn_joins_in(desk: Desk, model_server: ModelServer) -> None:
    write_skill(desk.folder, "model: openai/blind")
    stall = Stall()
    model_server.add(answer("Half", stall, " done."), answer("Reviewed."))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    assert await desk.begin("/skill:review the parser") is turn
    stall.release()
    assert await turn.result() == "end_turn"
    assert "Look at the diff first." in desk.words()[-1]
    assert models(model_server) == ["gpt-5", "gpt-5"]


@pytest.mark.parametrize("others", [True, False])
async def test_a_missing_skill_is_reported_in_a_running_turn_and_is_no_part_of_it(
    desk: Desk, model_server: ModelServer, others: bool
) -> None:
    if others:
        write_skill(desk.folder)
    stall = Stall()
    model_server.add(answer("Half", stall, " done."), answer("More."))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    assert await desk.begin("/skill:revue the parser") is turn
    said = "".join(event.text for event in desk.editor.of(AgentText))
    assert "Unknown skill 'revue'" in said
    stall.release()
    assert await turn.result() == "end_turn"
    assert len(model_server.requests) == 1
    assert await desk.say("And now?") == "end_turn"
    assert not any("revue" in words for words in desk.words())


async def test_the_model_uses_a_skill_by_itself_and_follows_its_text(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder)
    model_server.add(answer(USE), answer("Reviewed."))
    assert await desk.say("Look at my change") == "end_turn"
    assert "- review: Reviews a change." in str(model_server.requests[0].json["tools"])
    assert "Look at the diff first." in desk.editor.of(ToolEnded)[0].result
    assert desk.editor.of(ChildWorked) == []


async def test_a_skill_with_a_model_of_its_own_is_run_apart_when_the_model_uses_it(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder, "model: openai/blind")
    model_server.add(answer(USE), answer("Two faults."), answer("There are two faults."))
    assert await desk.say("Look at my change") == "end_turn"
    assert models(model_server) == ["gpt-5", "blind", "gpt-5"]
    child = model_server.requests[1].json["messages"]
    assert "Look at the diff first." in str(child[-1]["content"])
    assert "Look at my change" not in str(child)
    assert desk.editor.of(ToolEnded)[0].result == "Two faults."


@pytest.mark.parametrize("more", ["context: fork", "context: fork\ndisable-model-invocation: true"])
async def test_a_skill_runs_in_an_agent_and_the_model_reports_its_result(
    desk: Desk, model_server: ModelServer, more: str
) -> None:
    write_skill(desk.folder, more + "\nmodel: openai/blind")
    model_server.add(answer("Two faults."), answer("There are two faults."))
    assert await desk.say("/skill:review the parser") == "end_turn"
    assert models(model_server) == ["blind", "gpt-5"]
    child, after = (request.json["messages"] for request in model_server.requests)
    assert "Look at the diff first." in str(child[-1]["content"])
    assert "Look at the diff first." not in str(after)
    assert [message["role"] for message in after] == ["system", "user", "assistant", "tool"]
    assert after[-1]["content"] == "Two faults."
    assert [event.title for event in desk.editor.of(ToolCalled)] == ["Use the skill review"]


async def test_a_skill_run_apart_is_run_by_the_agent_that_it_names_with_its_own_wishes_first(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder, "context: fork\nagent: critic\nmodel: openai/blind")
    agents = desk.folder / ".agents" / "agents"
    agents.mkdir()
    front = "name: critic\ndescription: Criticises.\nmodel: openai/gpt-5\ntools: read"
    (agents / "critic.md").write_text(f"---\n{front}\n---\nYou criticise.")
    model_server.add(answer("Two faults."), answer("There are two faults."))
    await desk.say("/skill:review the parser")
    child = model_server.requests[0].json
    assert child["model"] == "blind"
    assert child["messages"][0]["content"].startswith("You criticise.")
    assert [tool["function"]["name"] for tool in child["tools"]] == ["read"]


async def test_a_skill_that_wants_an_agent_that_is_missing_says_so(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder, "context: fork\nagent: critic")
    model_server.add(answer("It cannot be run."))
    assert await desk.say("/skill:review the parser") == "end_turn"
    assert "wants the agent critic, which is missing" in desk.editor.of(ToolEnded)[0].result


async def test_a_projects_skills_open_no_folder_outside_of_it(
    desk: Desk, model_server: ModelServer, tmp_path: Path
) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / "diary.txt").write_text("private words")
    (desk.folder / ".agents").mkdir()
    (desk.folder / ".agents" / "skills").symlink_to(private)
    model_server.add(answer(Call("read", {"path": str(private / "diary.txt")})), answer("No."))
    await desk.say("Go")
    assert "private words" not in str(model_server.requests[-1].json)


async def test_a_skill_to_be_run_apart_joins_in_where_a_turn_runs(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder, "context: fork")
    stall = Stall()
    model_server.add(answer("Half", stall, " done."), answer("Reviewed."))
    turn = await desk.begin("Go")
    await desk.editor.until(AgentText)
    assert await desk.begin("/skill:review the parser") is turn
    stall.release()
    assert await turn.result() == "end_turn"
    assert "Look at the diff first." in desk.words()[-1]


async def test_a_skill_that_only_the_user_may_choose_is_not_offered_to_the_model(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder, "disable-model-invocation: true")
    model_server.add(answer("Fine."))
    await desk.say("/skill:review")
    assert "Reviews a change." not in str(model_server.requests[0].json["tools"])


async def test_the_files_of_the_users_own_skills_can_be_read(
    desk: Desk, model_server: ModelServer, tmp_path: Path
) -> None:
    folder = write_skill(desk.services.home)
    (folder / "scripts").mkdir()
    script = folder / "scripts" / "lines.sh"
    script.write_text("wc -l\n")
    model_server.add(answer(Call("read", {"path": str(script)})), answer("Done."))
    await desk.say("/skill:review")
    assert "wc -l" in desk.editor.of(ToolEnded)[0].result


def write_compare(folder: Path) -> None:
    path = folder / ".agents" / "skills" / "compare.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "name: compare\ndescription: Compares.\nmodel: inherit\nsystem_prompt: Compare them.\n"
        "tools: [file_read]\ninput:\n  args:\n"
        "    - {name: old, type: file, required: true}\n"
        "    - {name: depth, type: integer, required: true}\n"
    )


async def test_a_missing_input_of_a_skill_is_requested_before_the_model_runs(
    desk: Desk, model_server: ModelServer
) -> None:
    write_compare(desk.folder)
    desk.editor.answer = Answer(text="3")
    model_server.add(answer("Compared."))
    (desk.folder / "a.md").touch()
    await desk.say("/skill:compare a.md")
    (question,) = desk.editor.questions
    assert (question.text, question.kind) == ("The skill compare needs depth (integer).", "integer")
    assert [entry["role"] for entry in model_server.requests[0].json["messages"]][-1] == "tool"
    assert "The user answered: 3" in str(model_server.requests[0].json["messages"][-1])
    assert "- old: a.md" in desk.words()[-1]


async def test_an_input_is_requested_as_text_if_the_editor_has_no_forms(
    desk: Desk, model_server: ModelServer
) -> None:
    write_compare(desk.folder)
    assert await desk.say("/skill:compare") == "end_turn"
    said = "".join(event.text for event in desk.editor.of(AgentText))
    assert "The skill compare needs old (file)." in said
    assert model_server.requests == []


async def test_an_input_of_the_wrong_type_is_reported_and_nothing_is_sent(
    desk: Desk, model_server: ModelServer
) -> None:
    write_compare(desk.folder)
    await desk.say("/skill:compare none.md")
    said = "".join(event.text for event in desk.editor.of(AgentText))
    assert "old: there is no file none.md. Its inputs are: old depth" in said
    assert model_server.requests == []


async def test_a_command_of_another_program_works_under_its_own_name(
    desk: Desk, model_server: ModelServer
) -> None:
    path = desk.folder / ".claude" / "commands" / "deploy.md"
    path.parent.mkdir(parents=True)
    path.write_text("Deploy to $0: $ARGUMENTS!")
    model_server.add(answer("Hello."), answer("Done."))
    await desk.say("Hi")
    await desk.say("/deploy staging now")
    assert "Deploy to staging: staging now!" in desk.words()[-1]
    assert "Use it for this" not in desk.words()[-1]


async def test_a_skill_for_some_files_is_sent_with_them_and_not_listed(
    desk: Desk, model_server: ModelServer
) -> None:
    write_skill(desk.folder, "paths: src/**/*.ts, '*.{sql,ddl}'")
    (desk.folder / "src").mkdir()
    (desk.folder / "src" / "a.ts").write_text("let a = 1\n")
    (desk.folder / "b.py").write_text("b = 1\n")
    reads = [answer(Call("read", {"path": path})) for path in ("b.py", "src/a.ts", "src/a.ts")]
    model_server.add(*reads, answer(USE), answer("Reviewed."))
    await desk.say("Look at my change")
    assert "Reviews a change." not in str(model_server.requests[0].json["tools"])
    told = [
        str(request.json).count("there is the skill review") for request in model_server.requests
    ]
    assert told == [0, 0, 1, 1, 1]
    assert "Look at the diff first." in desk.results()[-1]


async def test_arguments_of_the_model_fill_the_placeholder_of_a_skill(
    desk: Desk, model_server: ModelServer
) -> None:
    path = write_skill(desk.folder) / "SKILL.md"
    path.write_text(
        path.read_text() + "\nReview $ARGUMENTS in ${CLAUDE_PROJECT_DIR}, ${CLAUDE_SESSION_ID}."
    )
    model_server.add(answer(USE), answer("Reviewed."))
    await desk.say("Look at my change")
    filled = f"Review the parser in {desk.folder}, {desk.session.core.id}."
    assert filled in desk.editor.of(ToolEnded)[0].result


async def test_the_text_of_a_plugins_skill_names_the_plugins_folder(
    desk: Desk, model_server: ModelServer
) -> None:
    path = write_skill(desk.folder) / "SKILL.md"
    path.write_text(path.read_text() + "\nRun ${CLAUDE_PLUGIN_ROOT}/scripts/x.sh.")
    manifest = desk.folder / ".agents" / ".claude-plugin" / "plugin.json"
    manifest.parent.mkdir()
    manifest.write_text("{}")
    model_server.add(answer("Done."))
    await desk.say("/skill:review")
    assert f"Run {desk.folder}/.agents/scripts/x.sh." in desk.words()[-1]


async def test_a_plugins_command_needs_no_plugin_in_its_name_unless_two_have_it(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Done.")

    def write_plugin(name: str) -> None:
        folder = desk.folder / ".agents" / "plugins" / name
        for file in (folder / ".claude-plugin" / "plugin.json", folder / "commands" / "greet.md"):
            file.parent.mkdir(parents=True)
        (folder / ".claude-plugin" / "plugin.json").write_text(f'{{"name": "{name}"}}')
        (folder / "commands" / "greet.md").write_text(f"Greet as {name}.")

    write_plugin("first")
    for command in ("/greet", "/first:greet", "/skill:first:greet"):
        await desk.say(command)
        assert "Greet as first." in desk.words()[-1], command
    write_plugin("second")
    await desk.say("/greet")
    assert "Greet as" not in desk.words()[-1]
    await desk.say("/second:greet")
    assert "Greet as second." in desk.words()[-1]


async def test_commands_in_a_skill_that_the_user_chooses_are_run_first_as_calls(
    desk: Desk, model_server: ModelServer
) -> None:
    path = write_skill(desk.folder) / "SKILL.md"
    text = "\nStatus: !`echo one two`\n\n```!\necho three\necho four\n```\nNo!`echo five`"
    path.write_text(path.read_text() + text)
    model_server.add(answer("Done."), answer("Done."))
    await desk.say("/skill:review")
    (ended,) = desk.editor.of(ToolEnded)
    lines = ended.result.splitlines()
    assert lines[:2] == ["$ echo one two", "one two"]
    assert lines[-3:-1] == ["three", "four"]
    assert "five" not in ended.result
    assert desk.editor.asked == []
    assert "one two" in desk.results()[0]
    path.write_text(path.read_text().replace("description:", "tools: read\ndescription:"))
    await desk.say("/skill:review")
    assert len(desk.editor.of(ToolEnded)) == 1


async def test_a_command_in_a_skill_needs_the_usual_permission(
    desk: Desk, model_server: ModelServer
) -> None:
    path = write_skill(desk.folder) / "SKILL.md"
    path.write_text(path.read_text() + "\nMade: !`touch made`")
    desk.editor.decide = presses("reject_once")
    model_server.add(answer("Pity."))
    await desk.say("/skill:review")
    assert len(desk.editor.asked) == 1
    assert not (desk.folder / "made").exists()
