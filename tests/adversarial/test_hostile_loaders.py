"""Damaged files of every kind are reported, raise nothing, and take a bounded time.

`ACP_AGENT_FUZZ` and `ACP_AGENT_FUZZ_SEED` set how many projects are tried, and from which seed on
(`make fuzz`).
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from acp_agent.config.types import Config
from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.discovery import FoundDefinitions, find_definitions
from acp_agent.extensions.definitions.locations import find_folders
from acp_agent.extensions.definitions.skill_files import plain_name
from acp_agent.extensions.mcp.configured import find_servers
from acp_agent.extensions.plugins.elsewhere import find_enabled_plugins
from acp_agent.extensions.plugins.sources import read_marketplace
from acp_agent.extensions.workflows.find import find_workflows
from acp_agent.hooks.sources import find_hooks
from acp_agent.permissions.policy.loading import project_rules
from acp_agent.session.definition_search import definition_hooks, hook_problems
from acp_agent.tools.memory.notes import NoteFolders
from acp_agent.workspace.instructions.files import read_instructions
from tests.adversarial.file_fuzz import DEFINITIONS, write_damaged_files

PROJECTS = max(12, int(os.environ.get("ACP_AGENT_FUZZ", "0")) // 100)
SEED = int(os.environ.get("ACP_AGENT_FUZZ_SEED", "0"))
FAILED_BEFORE = (5_284,)
SECONDS = 20.0  # for all files of a project, on a busy machine


@pytest.mark.parametrize("seed", [*FAILED_BEFORE, *range(SEED, SEED + PROJECTS)])
def test_damaged_files_are_reported_and_stop_nothing(tmp_path: Path, seed: int) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    (project / ".git").mkdir(parents=True)
    notes = NoteFolders(tmp_path / "notes", project)
    files = write_damaged_files(project, seed)
    write_damaged_files(notes.folder("project"), seed, 5)
    for path in notes.folder("project").rglob("*.md"):
        with suppress(OSError):
            path.rename(notes.folder("project") / path.name)
    folders = find_folders(project, user=tmp_path / "user", home=home)
    started = time.process_time()
    found = find_definitions(folders, Config(), lambda _: True)
    hooks = find_hooks(
        {},
        config_file="config.toml",
        home=home,
        folders=folders,
        cwd=project,
        trusts=lambda _: True,
    )
    for skill in found.skills:
        definition_hooks(skill)
    for agent in found.agents:
        definition_hooks(agent)
    problems = [*found.problems, *hook_problems(found.skills), *hook_problems(found.agents)]
    servers = find_servers(
        Config(), tmp_path / "c", project, {}, folders=folders, trusts=lambda _: True
    )
    rules = project_rules(str(project))
    workflows = find_workflows(project, user=tmp_path / "user")
    read_instructions(project, tmp_path / "AGENTS.md", lambda _: True)
    find_enabled_plugins(project, home)
    notes.all()
    with suppress(ConfigError):
        read_marketplace(project)
    assert time.process_time() - started < SECONDS
    texts = [problem.why for problem in problems]
    texts += [problem.why for problem in hooks.problems]
    texts += [*servers.problems, *(rule.problem for rule in rules)]
    texts += [mistake.why for workflow in workflows for mistake in workflow.mistakes]
    for text in texts:
        assert "\n" not in text
        assert len(text) < 2_000
    assert all(mistake.why for workflow in workflows for mistake in workflow.mistakes)
    assert all(workflow.workflow or workflow.mistakes for workflow in workflows)
    for path, place in files:
        if place in DEFINITIONS and path.exists() and not path.name.startswith("."):
            assert _is_mentioned(path, found), path


def _is_mentioned(path: Path, found: FoundDefinitions) -> bool:
    """Return whether a file is used, overridden by one that is used, or reported."""
    paths = {skill.path for skill in found.skills} | {agent.path for agent in found.agents}
    paths |= {problem.path for problem in found.problems}
    names = {skill.name for skill in found.skills} | {agent.name for agent in found.agents}
    name = path.parent.name if path.name == "SKILL.md" else path.name.partition(".")[0]
    if not name.isprintable():
        return any("cannot be seen" in problem.why for problem in found.problems)
    return path in paths or any(plain_name(name) in other for other in names)
