"""Agents and commands in tables of opencode.json, and agents in codex's config.toml."""

from __future__ import annotations

import json
from pathlib import Path

from acp_agent.config.types import Config
from acp_agent.extensions.definitions.discovery import FoundDefinitions, find_definitions
from acp_agent.trust.store import Item
from tests.extensions.definitions.definition_files import Files

UNREADABLE = "cannot be read (No such file or directory); check who may read it"
TABLE = """{
  // the user's own
  "$schema": "https://opencode.ai/config.json",
  "agent": {
    "docs": {
      "description": "Documents.",
      "mode": "subagent",
      "model": "openai/gpt-5.2",
      "prompt": "{file:./prompts/docs.txt}",
      "temperature": 0.3,
      "tools": {"write": false, "read": true},
      "permission": {"bash": "deny"},
    },
    "Chief_One": {"mode": "primary", "prompt": "# Lead.\\nDo it all.", "model": "haiku"},
    "plain": {"model": "openai/gpt-5.2", "description": "As always, elsewhere."},
    "build": {"model": "openai/gpt-5.2"},
    "off": {"disable": true, "prompt": "Never."},
  },
}
"""


def table(folder: Path, text: str, name: str = "opencode.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def agents(folder: Path, **given: object) -> Path:
    return table(folder, json.dumps({"agent": given}))


def prompt(folder: Path, text: str = "Write it down.") -> Path:
    (folder / "prompts").mkdir(parents=True, exist_ok=True)
    (folder / "prompts" / "docs.txt").write_text(f"{text}\n")
    return folder / "prompts" / "docs.txt"


def test_the_fields_of_an_agent_have_the_meaning_of_their_program(files: Files) -> None:
    folder = files.home / ".config" / "opencode"
    table(folder, TABLE, "opencode.jsonc")
    prompt(folder)
    found = files.find()
    assert found.problems == ()
    chief, docs, plain = found.agents
    assert (docs.name, docs.description, docs.prompt) == ("docs", "Documents.", "Write it down.")
    assert (docs.uses.model, docs.uses.temperature) == ("openai/gpt-5.2", 0.3)
    assert [docs.uses.allows(tool) for tool in ("read", "write", "shell")] == [True, False, False]
    assert (docs.takes_tasks, docs.source) == (True, "user")
    assert (chief.name, chief.description, chief.takes_tasks) == ("chief-one", "Lead.", False)
    assert chief.uses.model == "small"
    assert "${DEFAULT}" in plain.prompt


def test_a_file_of_an_agent_goes_before_the_table_and_the_users_before_a_projects(
    files: Files,
) -> None:
    agents(files.home / ".config" / "opencode", mine={"prompt": "User's."})
    path = agents(files.project, mine={"prompt": "Other."}, both={"prompt": "In the table."})
    files.agent("both", place=files.project / ".opencode", text="In a file.")
    found = files.find()
    assert [(one.name, one.prompt) for one in found.agents] == [
        ("both", "In a file."),
        ("mine", "User's."),
    ]
    (problem,) = found.problems
    assert problem.path == path
    assert "which is yours, has the same" in problem.why


def untrusted(files: Files) -> tuple[FoundDefinitions, Item]:
    found = find_definitions(files.places, Config(), lambda _: False)
    (item,) = found.untrusted
    return found, item


def test_a_projects_table_is_unused_until_it_and_its_prompts_are_trusted(
    files: Files,
) -> None:
    text = prompt(files.project)
    path = agents(files.project, docs={"prompt": "{file:./prompts/docs.txt}", "model": "a/b"})
    found, item = untrusted(files)
    assert found.agents == ()
    assert (item.kind, item.path) == ("agent", "opencode.json")
    assert item.what == "agents: docs; model: a/b"
    assert "Write it down." in item.text
    path.write_text(path.read_text().replace("{", '{"theme": "x", ', 1))
    assert untrusted(files)[1].digest == item.digest
    text.write_text("Send everything elsewhere.")
    assert untrusted(files)[1].digest != item.digest


def test_a_project_without_agents_in_its_file_needs_no_trust(files: Files) -> None:
    table(files.project, '{"mcp": {}, "agent": {"build": {"model": "a/b"}}}')
    assert find_definitions(files.places, Config(), lambda _: False) == FoundDefinitions()


def test_a_projects_prompt_file_must_be_in_the_project(files: Files, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key")
    path = agents(
        files.project,
        absolute={"prompt": f"{{file:{tmp_path}/secret}}"},
        above={"prompt": "{file:../secret}"},
        home={"prompt": "{file:~/secret}"},
        good={"prompt": "Good."},
    )
    found = files.find()
    assert [one.name for one in found.agents] == ["good"]
    assert {one.path for one in found.problems} == {path}
    assert len(found.problems) == 3
    assert "key" not in str(found)


def test_an_error_names_its_agent_and_hides_no_other(files: Files) -> None:
    agents(
        files.project,
        good={"prompt": "Good.", "top_p": 1},
        odd={"prompt": 7},
        hot={"prompt": "Hot.", "temperature": 9},
        late={"prompt": "{file:none.txt}"},
        named={"prompt": "It is {env:SECRET}."},
        none="text",
    )
    found = files.find()
    assert [one.name for one in found.agents] == ["good", "named"]
    assert found.agents[1].prompt == "It is {env:SECRET}."
    whys = [one.why for one in found.problems]
    assert whys == [
        "agent good: the field top_p is not used here; take it out, or leave it",
        "agent odd: prompt: expected text",
        "agent hot: temperature: expected a number from 0 to 2, found 9",
        f"agent late: prompt: none.txt: {UNREADABLE}",
        "agent named: prompt: variables of the environment are not filled in; write the text",
    ]


def test_a_file_that_is_no_json_or_has_no_table_hides_nothing(files: Files) -> None:
    path = table(files.project, '{"agent": {')
    files.agent("one")
    found = files.find()
    assert [one.name for one in found.agents] == ["one"]
    assert "line 1, column" in found.problems[0].why
    for text in ("", "[]", '{"agent": []}', "// nothing\n"):
        path.write_text(text)
        assert files.find().problems == ()


COMMANDS = {
    "web/page": {
        "template": "Build $1. Log: !`git log`",
        "description": "Builds a page.",
        "agent": "writer",
        "model": "openai/gpt-5.2",
    },
    "plain": {"template": "{file:./prompts/docs.txt}", "agent": "build", "odd": "x"},
    "broken": {"description": "Has no text."},
}


def test_commands_of_a_table_are_skills_that_only_the_user_chooses(files: Files) -> None:
    prompt(files.project)
    path = table(files.project, json.dumps({"command": COMMANDS}))
    found = files.find()
    plain, page = found.skills
    assert (page.name, page.description, page.text) == (
        "web-page", "Builds a page.", "Build $0. Log: !`git log`",
    )  # fmt: skip
    assert (page.agent, page.runs_in_subagent, page.uses.model) == (
        "writer",
        True,
        "openai/gpt-5.2",
    )
    assert (plain.text, plain.agent, plain.runs_in_subagent) == ("Write it down.", None, False)
    assert not page.by_model and not plain.by_model  # noqa: PT018 - the same of both
    assert [(one.path, one.why, one.skipped) for one in found.problems] == [
        (path, "command plain: the field odd is not used here; take it out, or leave it", False),
        (path, "command broken: template: expected text", True),
    ]


def test_commands_of_a_table_are_trusted_with_their_files(files: Files) -> None:
    prompt(files.project)
    table(files.project, json.dumps({"command": {"a": {"template": "{file:prompts/docs.txt}"}}}))

    def untrusted() -> Item:
        found = find_definitions(files.places, Config(), lambda _: False)
        assert found.skills == ()
        (item,) = found.untrusted
        return item

    before = untrusted()
    assert (before.kind, before.path, before.what) == ("skill", "opencode.json", "commands: a")
    prompt(files.project, "Something else.")
    assert untrusted().digest != before.digest


CODEX = """[agents]
max_threads = 4
[agents.Scout_One]
description = "Looks."
config_file = "roles/scout.toml"
nickname_candidates = ["Ada"]
[agents.plain]
description = "Works."
[agents.worker]
description = "Codex's own."
[agents.lost]
description = "Gone."
config_file = "../../outside.toml"
"""


def test_agents_of_the_configuration_of_codex_are_read_with_their_files(files: Files) -> None:
    folder = files.project / ".codex"
    (folder / "roles").mkdir(parents=True)
    (files.project.parent / "outside.toml").write_text('developer_instructions = "Obey."')
    (folder / "roles" / "scout.toml").write_text(
        'developer_instructions = "Look."\nsandbox_mode = "read-only"\n'
        'model_reasoning_effort = "high"\n'
    )
    path = table(folder, CODEX, "config.toml")
    found = files.find()
    plain, scout = found.agents
    assert (scout.name, scout.description, scout.prompt) == ("scout-one", "Looks.", "Look.")
    assert scout.uses.thought_level == "high"
    assert not scout.uses.allows("edit")
    assert (plain.name, plain.description) == ("plain", "Works.")
    assert "${DEFAULT}" in plain.prompt
    (problem,) = found.problems
    assert problem.path == path
    assert problem.why.startswith("agent lost: config_file: ../../outside.toml: ")
    untrusted = find_definitions(files.places, Config(), lambda _: False)
    assert untrusted.agents == ()
    assert [one.path for one in untrusted.untrusted] == [".codex/config.toml"]


def test_the_table_in_the_folder_of_opencode_counts_with_the_folders_of_skills_that_it_names(
    files: Files,
) -> None:
    folder = files.project / ".opencode"
    folder.mkdir()
    (folder / "prompt.md").write_text("Review it.")
    for name in ("more/first", ".opencode/own/second", "../outside/third"):
        skill = files.project / name / "SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text("---\ndescription: Helps.\n---\nHelp.")
    text = (
        '{"agent": {"review": {"prompt": "{file:./prompt.md}"}},\n"skills": '
        '{"paths": ["more", "own", "../outside", "absent"], "urls": ["https://example.org"]}}'
    )
    path = table(folder, text)
    found = files.find()
    (agent,) = [one for one in found.agents if one.name == "review"]
    assert "Review it." in agent.prompt
    assert [skill.name for skill in found.skills] == ["first", "second"]
    address, outside = found.problems
    assert address.location == f"{path}:2"
    assert address.why.startswith("skills: skills at an address are not loaded")
    assert "outside/third" in str(outside.path)
    untrusted = find_definitions(files.places, Config(), lambda _: False)
    assert untrusted.skills == ()


ROO = """customModes:
  - slug: docs-writer
    name: Docs
    roleDefinition: |-
      You write.
    customInstructions: Be short.
    whenToUse: To write.
    description: Writes.
    groups:
      - read
      - - edit
        - fileRegex: \\.md$
    source: project
  - slug: fixer
    name: Fixer
    roleDefinition: You fix.
    groups: [read, edit, command, mcp]
"""


def test_modes_of_roo_are_agents(files: Files) -> None:
    path = files.project / ".roomodes"
    path.write_text(ROO)
    found = files.find()
    writer, fixer = found.agents
    assert (writer.name, writer.description) == ("docs-writer", "To write.")
    assert writer.prompt == "You write.\n\nBe short."
    allowed = {tool for tool in ("read", "edit", "shell", "mcp__a__b") if writer.uses.allows(tool)}
    assert allowed == {"read"}
    assert (fixer.name, fixer.description) == ("fixer", "Fixer")
    assert all(map(fixer.uses.allows, ("read", "edit", "shell", "mcp__a__b")))
    (problem,) = found.problems
    assert (problem.path, problem.skipped) == (path, False)
    assert problem.why.startswith("agent docs-writer: groups: edits of some files only")
    untrusted = find_definitions(files.places, Config(), lambda _: False)
    assert untrusted.agents == ()
    assert [item.path for item in untrusted.untrusted] == [".roomodes"]


def test_modes_of_roo_can_be_json_and_a_file_without_modes_is_named(files: Files) -> None:
    path = files.project / ".roomodes"
    path.write_text('{\n\t"customModes": [{"slug": "a", "name": "A", "roleDefinition": "Be."}]}')
    assert [agent.name for agent in files.find().agents] == ["a"]
    path.write_text('{"coder": {"prompt": "Code."}}')
    (problem,) = files.find().problems
    assert problem.why.startswith("customModes: expected a list of modes")
