"""Mistakes of a workflow that show only beside what is installed: skills, and commands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from acp_agent.cli.definitions import only, places_of
from acp_agent.cli.flow.locate import trust_store
from acp_agent.cli.flow.prompts import refuse_command
from acp_agent.cli.localization import translate_rendered
from acp_agent.config.load import load_config
from acp_agent.config.paths import find_paths
from acp_agent.errors import ConfigError, InvalidInputError
from acp_agent.extensions.definitions.discovery import find_definitions
from acp_agent.extensions.definitions.locations import bundled_skills
from acp_agent.extensions.workflows.find import WorkflowFile


def skill_mistakes(file: WorkflowFile, cwd: Path) -> list[str]:
    """Return a line for each step that cannot work here. Blocks: reads files of skills."""
    return [f"{file.path}:{line}: {translate_rendered(why)}" for line, why in _found(file, cwd)]


def _found(file: WorkflowFile, cwd: Path) -> Iterator[tuple[int, str]]:
    if file.workflow is None:
        return
    known: set[str] | None = None
    for step in file.workflow.every_step():
        if step.prompt is not None and step.prompt.lstrip().startswith("/"):
            try:
                refuse_command(step.prompt.lstrip())
            except InvalidInputError as error:
                yield step.line, str(error)
        if step.skill is None:
            continue
        known = _skills(cwd) if known is None else known
        if step.skill not in known:
            missing = ConfigError(
                f"skill: there is no skill {step.skill} here that you trust; see acp-agent skills"
            )
            yield step.line, str(missing)


def _skills(cwd: Path) -> set[str]:
    config = load_config(find_paths(os.environ).config_file, os.environ)
    found = find_definitions(only("skills", places_of(cwd)), config, trust_store().trusts)
    return {one.name for one in found.skills} | {one.name for one in bundled_skills(config)}
