"""An agent's file, and agents that extend others."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from acp_agent import tools
from acp_agent.config.types import AgentConfig, Config
from acp_agent.extensions.definitions.build import MAX_EXTENDS
from acp_agent.extensions.definitions.tool_names import tool_names
from acp_agent.extensions.definitions.types import AgentSpec, RunSettings
from acp_agent.tools.base import Tool
from tests.extensions.definitions.definition_files import Files


def test_an_agent_is_a_file_whose_text_is_its_prompt(files: Files) -> None:
    lines = ("model: small", "tools: [read, grep]", "max_turns: 9")
    path = files.agent("explorer", *lines, text="You look around.")
    assert files.the_agent("explorer") == AgentSpec(
        name="explorer",
        description="What explorer does.",
        prompt="You look around.",
        path=path,
        source="project",
        uses=RunSettings(model="small", tools=("read", "grep"), max_requests=9),
    )


@pytest.mark.parametrize("kind", ["agent", "skill"])
def test_tools_that_are_all_unknown_are_reported_with_their_line(files: Files, kind: str) -> None:
    write = files.agent if kind == "agent" else files.skill
    path = write("fix", "model: small", "tools: [mail_send, Calendar]")
    (problem,) = files.find().problems
    assert problem.location == f"{path}:5"
    assert not problem.skipped
    assert problem.why == (
        "tools: mail_send, Calendar is not known here, so it has no tools; name tools of this "
        "program, such as read and shell, or take the field out"
    )


@pytest.mark.parametrize(
    "tools", ["[Read]", "[mcp__git__*]", "[sample__count]", "[skill_fix]", "'*'", "[]"]
)
def test_names_of_tools_that_may_exist_are_not_reported(files: Files, tools: str) -> None:
    files.agent("fix", f"tools: {tools}")
    assert files.find().problems == ()


def test_each_unknown_tool_is_named_although_another_is_known(files: Files) -> None:
    path = files.agent("fix", "tools: [Read, mail_send, Calendar]")
    (problem,) = files.find().problems
    assert problem.location == f"{path}:4"
    assert problem.why.startswith("tools: mail_send, Calendar is not known here and left out")


def test_unknown_tools_of_github_and_of_a_table_are_reported(files: Files) -> None:
    folder = files.project / ".github"
    github = files.agent("a", "tools: ['vscode/openSimpleBrowser']", place=folder)
    table = files.project / "opencode.json"
    table.write_text(
        '{"agent": {"one": {"prompt": "Do."},\n"two": {"prompt": "Do.",\n'
        '"tools": {"*": false, "mail": true}}}}'
    )
    first, second = sorted(files.find().problems, key=lambda one: one.location)
    assert (first.location, second.location) == (f"{github}:4", f"{table}:3")
    assert first.why.startswith("tools: vscode/openSimpleBrowser is not known here")
    assert second.why.startswith("agent two: tools: mail is not known here")


def test_the_known_tools_are_those_of_the_program() -> None:
    for module in pkgutil.walk_packages(tools.__path__, "acp_agent.tools."):
        importlib.import_module(module.name)

    waiting: list[type] = [Tool]
    names = set()
    while waiting:
        waiting += (one := waiting.pop()).__subclasses__()
        if one.__module__.startswith("acp_agent.tools."):
            names.add(getattr(one, "name", "read"))  # the base has none
    assert names == tool_names().tools


def test_an_agents_file_may_have_another_name_but_two_may_not_have_the_same(files: Files) -> None:
    first = files.agent("a", "name: reviewer")
    second = files.agent("b", "name: reviewer")
    assert files.why(second) == ["name: a.md has the same; give it another"]
    assert [agent.path for agent in files.find().agents] == [first]


def test_the_most_specific_agent_of_a_name_is_used_and_the_configuration_overrides_it(
    files: Files,
) -> None:
    files.agent("reviewer", "model: small")
    path = files.agent("reviewer", "thought-level: low", place=files.project / ".acp-agent")
    config = Config(agents={"reviewer": AgentConfig(thought_level="max", max_output_tokens=5)})
    agent = files.the_agent("reviewer", config)
    assert (agent.path, agent.uses) == (path, RunSettings(thought_level="max", max_output=5))


def test_an_agent_that_the_user_does_not_want_can_still_be_extended(files: Files) -> None:
    files.agent("base", "model: small")
    files.agent("child", "extends: base")
    config = Config(agents={"base": AgentConfig(enabled=False)})
    (agent,) = files.find(config).agents
    assert (agent.name, agent.uses.model) == ("child", "small")


def test_the_texts_of_the_skills_that_an_agent_names_follow_its_prompt(files: Files) -> None:
    files.skill("deploy", text="Push the tag.")
    path = files.agent("shipper", "skills: deploy, review, missing", text="Ship it.")
    (agent,) = files.find().agents
    assert agent.prompt.startswith("Ship it.\n\n# Skill deploy\n\nPush the tag.\n\n# Skill review")
    assert any("there is no skill missing" in why for why in files.why(path))


def test_an_agent_that_extends_another_overrides_only_its_own_fields(files: Files) -> None:
    base = ("model: openai/o9", "temperature: 0.2", "tools: [read, grep]", "disallowed-tools: grep")
    files.agent("base", *base, text="You are careful.")
    files.agent("heir", "extends: base", text="")
    files.agent(
        "rich", "extends: base", "description: Rich.", "tools: [shell]", text="You are you."
    )
    files.agent("free", "extends: heir", "model: inherit", "temperature: 0", "disallowed-tools: []")
    uses = RunSettings(
        model="openai/o9", temperature=0.2, tools=("read", "grep"), without=("grep",)
    )
    heir, rich, free = (files.the_agent(name) for name in ("heir", "rich", "free"))
    assert (heir.description, heir.prompt) == ("What base does.", "You are careful.")
    assert heir.uses == uses
    assert (rich.description, rich.prompt) == ("Rich.", "You are you.")
    assert rich.uses == RunSettings(
        model="openai/o9", temperature=0.2, tools=("shell",), without=("grep",)
    )
    assert free.uses == RunSettings(temperature=0.0, tools=("read", "grep"))


def test_an_error_of_an_agent_is_not_repeated_for_those_that_extend_it(
    files: Files,
) -> None:
    base = files.agent("base", "model: opus")
    files.agent("heir", "extends: base")
    assert len(files.why(base)) == 1


def test_an_agent_that_extends_its_own_name_extends_the_hidden_agent(files: Files) -> None:
    files.agent("reviewer", "model: small", text="You look.")
    lines = ("extends: reviewer", "temperature: 1")
    path = files.agent("reviewer", *lines, place=files.project / ".acp-agent", text="")
    agent = files.the_agent("reviewer")
    assert (agent.path, agent.prompt) == (path, "You look.")
    assert agent.uses == RunSettings(model="small", temperature=1)


@pytest.mark.parametrize("line", ["", "extends: reviewer"])
def test_an_agent_of_a_project_does_not_replace_the_users(files: Files, line: str) -> None:
    agent = files.agent("reviewer", place=files.user, text="You are mine.")
    theirs = files.agent("reviewer", line, text="You are theirs.")
    files.agent("other", "extends: reviewer", text="")  # which is no replacement
    found = files.find()
    assert [one.prompt for one in found.agents] == ["You are mine."] * 2
    assert {problem.path: problem.why for problem in found.problems} == {
        theirs: f"name: {agent}, which is yours, has the same; give it another",
    }
    assert all(problem.skipped for problem in found.problems)


def test_the_arguments_of_a_prompt_stand_in_it_by_their_names(files: Files) -> None:
    text = "You are ${ROLE}, level ${LEVEL}; not $ROLE, ${OTHER} or ${"
    files.agent("base", "system_prompt_args: {ROLE: a tester, LEVEL: 3}", text=text)
    files.agent("heir", "extends: base", "system_prompt_args: {ROLE: a writer}", text="")
    assert files.the_agent("base").prompt == "You are a tester, level 3; not $ROLE, ${OTHER} or ${"
    assert files.the_agent("heir").prompt == "You are a writer, level 3; not $ROLE, ${OTHER} or ${"


def test_an_agent_that_extends_an_unknown_one_is_reported_and_hides_nothing(files: Files) -> None:
    mine = files.agent("reviewer")
    alone = files.agent("reviewer", "extends: nobody", place=files.project / ".acp-agent")
    assert files.why(alone) == [
        "extends: there is no agent nobody to extend; add it, or fix the name"
    ]
    assert [agent.path for agent in files.find().agents] == [mine]


@pytest.mark.parametrize("names", ["a", "ab", "abc"])
def test_agents_that_extend_each_other_in_a_circle_are_skipped(files: Files, names: str) -> None:
    for name, extended in zip(names, names[1:] + names[0], strict=True):
        files.agent(name, f"extends: {extended}")
    found = files.find()
    assert found.agents == ()
    assert len(found.problems) == len(names)
    first = found.problems[0].why
    if len(names) > 1:
        assert (
            first == f"extends: it goes in a circle ({', '.join(names + names[0])}); take one out"
        )
    else:
        assert first == "extends: there is no agent a to extend; add it, or fix the name"


def test_a_line_of_agents_that_extend_each_other_has_an_end(files: Files) -> None:
    files.agent("a0")
    for number in range(1, MAX_EXTENDS + 2):
        files.agent(f"a{number}", f"extends: a{number - 1}")
    found = files.find()
    assert len(found.agents) == MAX_EXTENDS
    assert {problem.why for problem in found.problems} == {
        f"extends: it goes over more than {MAX_EXTENDS} agents; shorten it"
    }


def test_an_agent_needs_its_own_or_an_inherited_description(files: Files) -> None:
    path = files.agent("mute", "description: ' '")
    assert files.why(path) == ["description: it is missing; add it to the front matter"]
    path.write_text("---\nname: mute\n---\nBe quiet.\n")
    assert files.why(path) == ["description: it is missing; add it to the front matter"]


def test_other_files_in_the_folder_of_agents_are_ignored(files: Files) -> None:
    files.agent("one")
    location = files.project / ".agents" / "agents"
    (location / "README.md").write_text("About these agents.")
    (location / "notes.txt").write_text("Later.")
    (location / ".draft.md").write_text("Later.")
    assert [agent.name for agent in files.find().agents] == ["one"]
    assert files.find().problems == ()
