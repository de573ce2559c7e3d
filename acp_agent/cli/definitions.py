"""`acp-agent skills` and `acp-agent agents`: list the definitions of a session."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import structs

from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import say, say_json, say_table
from acp_agent.cli.parser import Parser, add_folder
from acp_agent.cli.user_config import load_user_config
from acp_agent.config.paths import find_paths
from acp_agent.config.types import AgentConfig, DefinitionConfig
from acp_agent.extensions.definitions.discovery import FoundDefinitions, find_definitions
from acp_agent.extensions.definitions.locations import (
    DefinitionFolders,
    bundled_agents,
    bundled_skills,
)
from acp_agent.extensions.definitions.reading import Problem, group_problems
from acp_agent.extensions.definitions.types import AgentSpec, Skill

Kind = Literal["skills", "agents"]
Settings = TypeVar("Settings", bound=DefinitionConfig)


def run_skills(argv: list[str]) -> int:
    """List the skills of a session in a folder; return the exit status."""
    parser = Parser(
        prog="acp-agent skills",
        description="List the skills available in a folder, and errors in their files.",
    )
    return _run("skills", parser, argv)


def run_agents(argv: list[str]) -> int:
    """List the agents of a session in a folder; return the exit status."""
    parser = Parser(
        prog="acp-agent agents",
        description="List the agents available in a folder, and errors in their files.",
    )
    return _run("agents", parser, argv)


def _run(kind: Kind, parser: Parser, argv: list[str]) -> int:
    add_folder(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(argv)
    return _show(kind, options.cwd, as_json=options.json)


def _show(kind: Kind, cwd: Path, *, as_json: bool) -> int:
    """List the definitions that a session in a folder finds; return the exit status."""
    setup = load_user_config()
    config, trusts = setup.config, setup.trusts
    folders = restrict_folders(kind, setup.folders(cwd))
    definitions = find_definitions(folders, config, trusts)
    enabled = {definition.path for definition in _of_kind(kind, definitions)}
    all_enabled = structs.replace(
        config, skills=_enabled(config.skills), agents=_enabled(config.agents)
    )
    all_definitions = _of_kind(kind, find_definitions(folders, all_enabled, trusts))
    bundled_definitions = bundled_skills(config) if kind == "skills" else bundled_agents(config)
    programs_ = config.agents if kind == "agents" else {}
    programs = {
        name: definition
        for name, definition in programs_.items()
        if definition.command and definition.enabled
    }
    bundled = [
        definition.name for definition in bundled_definitions if definition.name not in programs
    ]
    if as_json:
        untrusted = [
            f"{definition.folder}/{definition.path}" for definition in definitions.untrusted
        ]
        say_json(
            {
                kind: [
                    {
                        "name": definition.name,
                        "description": definition.description,
                        "source": definition.source,
                        "path": _text(definition.path),
                        "enabled": definition.path in enabled,
                        **msgspec.to_builtins(definition.uses),
                    }
                    for definition in all_definitions
                ],
                "problems": [
                    {
                        "path": _text(definition.path),
                        "line": definition.line,
                        "why": definition.why,
                        "left_out": definition.skipped,
                    }
                    for definition in definitions.problems
                ],
                **({"untrusted": untrusted} if untrusted else {}),
                **({"bundled": bundled} if bundled else {}),
                **({"programs": _commands(programs)} if programs else {}),
            }
        )
        return 0
    if all_definitions:
        rows = [
            _row(definition, enabled=definition.path in enabled) for definition in all_definitions
        ]
        say_table(("NAME", "SOURCE", "MODEL", "PATH"), rows)
    else:
        say(_how_to_add(kind))
    if bundled:
        say()
        say(translate("Bundled: {names}", names=", ".join(bundled)))
    if programs:
        say()
        lines = [
            f"{name} ({shlex.join(definition)})" for name, definition in _commands(programs).items()
        ]
        say(translate("Other programs: {names}", names=", ".join(lines)))
    if definitions.problems:
        say()
        for problem in group_problems(definitions.problems):
            say(problem_line(problem))
    if definitions.untrusted:
        say()
        say(untrusted_line(definitions))
    return 0


def _commands(programs: Mapping[str, AgentConfig]) -> dict[str, list[str]]:
    return {name: [agent.command, *agent.args] for name, agent in programs.items()}


def _how_to_add(kind: Kind) -> str:
    """Return the text that is shown if there is nothing to list."""
    user = find_paths(os.environ).config_file.parent / kind
    if kind == "skills":
        return translate(
            "No skills found. Add one as .agents/skills/NAME/SKILL.md in the project, or as "
            "{folder}/NAME/SKILL.md for every project.",
            folder=user,
        )
    return translate(
        "No agents found. Add one as .agents/agents/NAME.md in the project, or as "
        "{folder}/NAME.md for every project.",
        folder=user,
    )


def restrict_folders(kind: Kind, folders: DefinitionFolders) -> DefinitionFolders:
    """Return the folders of skills only, or of agents only."""
    hidden = {"agents": ()} if kind == "skills" else {"skills": ()}
    return structs.replace(folders, **hidden)


def problem_line(problem: Problem) -> str:
    """Return a problem in the user's language."""
    line = f"{problem.location}: {translate_rendered(problem.why)}"
    if not problem.further_files:
        return line
    return f"{line} ({translate('the same in {count} other files', count=problem.further_files)})"


def untrusted_line(definitions: FoundDefinitions) -> str:
    """Return a line about project files that the user does not trust."""
    return translate(
        "{count} not used until you trust the folder. Run acp-agent trust {folder}",
        count=len(definitions.untrusted),
        folder=definitions.untrusted[0].folder,
    )


def _of_kind(
    kind: Kind, definitions: FoundDefinitions
) -> tuple[Skill, ...] | tuple[AgentSpec, ...]:
    return definitions.skills if kind == "skills" else definitions.agents


def _enabled(tables: dict[str, Settings]) -> dict[str, Settings]:
    return {name: structs.replace(table, enabled=True) for name, table in tables.items()}


def _row(definition: Skill | AgentSpec, *, enabled: bool) -> list[str]:
    model = definition.uses.model or translate("the session's")
    source = translate("user") if definition.source == "user" else translate("project")
    return [
        definition.name,
        source,
        model if enabled else translate("disabled"),
        str(definition.path),
    ]


def _text(path: Path) -> str:
    """Return a path as valid JSON text, whatever its bytes."""
    return os.fsencode(path).decode("utf-8", "replace")
