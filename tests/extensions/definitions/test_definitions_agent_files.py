"""Agents of other programs are read as they are."""

from __future__ import annotations

from pathlib import Path

from tests.extensions.definitions.definition_files import Files

CLAUDE = """---
name: reviewer
description: Reviews.
tools: Read, Grep, Bash
model: inherit
color: red
---
Look."""
OPENCODE = """---
description: Documents.
mode: subagent
model: openai/gpt-5.2
steps: 5
tools: {write: false, read: true}
permission: {bash: deny, webfetch: ask}
---
Write."""
CODEX = '''
name = "scout"
description = "Finds."
developer_instructions = """
Find it."""
model_reasoning_effort = "high"
sandbox_mode = "read-only"
nickname_candidates = ["Ann"]
'''


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_each_form_gives_name_prompt_tools_and_settings(files: Files) -> None:
    write(files.home / ".claude" / "agents" / "r.md", CLAUDE)
    write(files.home / ".opencode" / "agents" / "docs.md", OPENCODE)
    write(files.home / ".opencode" / "agents" / "off.md", "---\ndisable: true\n---\nNever.")
    write(files.home / ".codex" / "agents" / "scout.toml", CODEX)
    found = files.find()
    assert found.problems == ()
    docs, reviewer, scout = found.agents
    assert (docs.name, docs.prompt, docs.uses.model) == ("docs", "Write.", "openai/gpt-5.2")
    assert docs.uses.max_requests == 5
    assert [docs.uses.allows(tool) for tool in ("read", "write", "shell")] == [True, False, False]
    assert (reviewer.name, reviewer.prompt, reviewer.uses.model) == ("reviewer", "Look.", None)
    assert reviewer.uses.tools == ("read", "grep", "shell")
    assert (scout.prompt, scout.uses.thought_level) == ("Find it.", "high")
    assert not scout.uses.allows("edit")


def test_tool_names_are_converted_and_a_denied_edit_denies_writes(files: Files) -> None:
    long = "Use it for Parsers. " * 100
    write(
        files.home / ".claude" / "agents" / "a.md",
        f'---\nname: Code Reviewer\ndescription: "{long}"\n---\nLook.',
    )
    permission = "permission: {edit: deny, bash: {'*': ask, 'rm *': deny}}"
    write(
        files.home / ".config" / "opencode" / "agent" / "Docs_Only.md",
        f"---\ndescription: Documents.\n{permission}\n---\nWrite.",
    )
    write(
        files.home / ".opencode" / "agent" / "few.md",
        "---\ndescription: Looks.\ntools: {'*': false, read: true}\n---\nLook.",
    )
    found = files.find()
    assert found.problems == ()
    reviewer, docs, few = found.agents
    assert (reviewer.name, len(reviewer.description)) == ("code-reviewer", 1_023)
    assert docs.name == "docs-only"
    for tool in ("edit", "write", "apply_patch", "shell"):
        assert not docs.uses.allows(tool)
    assert [few.uses.allows(tool) for tool in ("read", "grep")] == [True, False]


def test_a_bundled_agent_can_be_extended(files: Files) -> None:
    write(
        files.home / ".agents" / "agents" / "plan.md",
        "---\nname: plan\nextends: plan\ntools: [read]\n---\n",
    )
    (plan,) = files.find().agents
    assert plan.prompt.startswith("You work out how a change")
    assert (plan.uses.tools, plan.uses.model) == (("read",), "small")


def test_the_error_of_an_invalid_agent_is_reported(files: Files) -> None:
    codex = files.home / ".codex" / "agents"
    for name, text in {
        "a": "name = ",
        "b": 'name = "b"',
        "c": CODEX + "mcp_servers = {}\n",
    }.items():
        write(codex / f"{name}.toml", text)
    found = files.find()
    assert [one.name for one in found.agents] == ["scout"]
    first, second, third = (problem.why for problem in found.problems)
    assert first.startswith("line 1 is not TOML")
    assert second == "developer_instructions: expected text"
    assert "mcp_servers" in third


GITHUB = """---
name: "C++ Expert"
description: Writes C++.
tools: ['codebase', 'edit/editFiles', 'github/*', 'web/fetch', 'vscode/openSimpleBrowser']
model: [GPT-5, Claude Sonnet 4.5]
infer: false
---
Write."""


def test_agents_of_github_have_our_tools_that_do_the_same(files: Files) -> None:
    folder = files.project / ".github" / "agents"
    write(folder / "cpp.agent.md", GITHUB)
    write(folder / "c.agent.md", "---\nname: C Expert\ndescription: C.\ntools: ['*']\n---\nWrite.")
    write(
        files.project / ".github" / "chatmodes" / "Ask Me.chatmode.md",
        "---\ntools: []\n---\n# Asks.\nAsk.",
    )
    found = files.find()
    assert [(one.path.name, one.why.partition(" is")[0]) for one in found.problems] == [
        ("cpp.agent.md", "model: GPT-5")
    ]
    ask, c, cpp = found.agents
    assert (ask.name, ask.description) == ("ask-me", "Asks.")
    assert (c.name, cpp.name, cpp.takes_tasks) == ("c-expert", "c-plus-plus-expert", False)
    allowed = {
        tool: cpp.uses.allows(tool)
        for tool in ("grep", "read", "edit", "write", "web_fetch", "mcp__github__issue", "shell")
    }
    assert [tool for tool, yes in allowed.items() if not yes] == ["shell"]
    assert c.uses.allows("shell")


def test_agents_of_cursor_and_gemini_keep_their_limits(files: Files) -> None:
    write(
        files.project / ".cursor" / "agents" / "looks.md",
        "---\nname: looks\ndescription: Looks.\nreadonly: true\nmodel: fast\n---\nLook.",
    )
    write(
        files.project / ".gemini" / "agents" / "few.md",
        "---\nname: few\ndescription: Few.\nkind: local\ntools: [read_file, mcp_git_log]\n"
        "max_turns: 3\n---\nLook.",
    )
    write(
        files.project / ".gemini" / "agents" / "far.md",
        "---\nname: far\ndescription: Far.\nkind: remote\n---\n",
    )
    write(
        files.project / ".claude" / "agents" / "plans.md",
        "---\nname: plans\ndescription: Plans.\npermissionMode: plan\n"
        "disallowedTools: Bash\n---\nPlan.",
    )
    found = files.find()
    assert [one.path.name for one in found.problems] == ["far.md"]
    few, looks, plans = found.agents
    assert few.uses.tools == ("read", "mcp__git__log")
    assert few.uses.max_requests == 3
    assert looks.uses.model == "small"
    for tool in ("write", "edit", "apply_patch", "shell"):
        assert not looks.uses.allows(tool)
        assert not plans.uses.allows(tool)
    assert looks.uses.allows("read")


def test_wrong_values_of_fields_of_others_are_reported(files: Files) -> None:
    for place in (".github/agents", ".cursor/agents", ".gemini/agents", ".claude/agents"):
        write(
            files.project / place / "a.md",
            "---\nname: a\ndescription: d\nmode: [1]\nkind: [1]\nmodel: [1]\n---\nLook.",
        )
    assert len([one for one in files.find().problems if one.skipped]) == 4


def test_agents_in_subfolders_are_read(files: Files) -> None:
    write(files.project / ".claude" / "agents" / "team" / "deep" / "one.md", CLAUDE)
    write(files.project / ".opencode" / "agent" / "code" / "tester.md", OPENCODE)
    same = write(files.project / ".claude" / "agents" / "team" / "other.md", CLAUDE)
    write(files.project / ".claude" / "agents" / "team" / "guide.md", "# How the team works")
    found = files.find()
    assert [agent.name for agent in found.agents] == ["code-tester", "reviewer"]
    (problem,) = found.problems
    assert problem.path == same
    assert problem.why == "name: team/deep/one.md has the same; give it another"


def test_an_agent_with_a_memory_has_the_tool_for_notes(files: Files) -> None:
    text = CLAUDE.replace("color: red", "memory: local")
    write(files.project / ".claude" / "agents" / "reviewer.md", text)
    agent = files.the_agent("reviewer")
    assert agent.uses.memory
    assert agent.uses.allows("memory")
    assert "note `reviewer` of the scope project" in agent.prompt
    odd = text.replace("memory: local", "memory: always")
    write(files.project / ".claude" / "agents" / "reviewer.md", odd)
    assert not files.the_agent("reviewer").uses.memory
