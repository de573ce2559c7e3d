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
from acp_agent.cli.output import USAGE, complain, guarded, say, say_json, say_table
from acp_agent.cli.parser import Parser, add_folder
from acp_agent.config.load import load_config
from acp_agent.config.paths import find_paths
from acp_agent.config.types import AgentConfig, Config, DefinitionConfig
from acp_agent.extensions.definitions.discovery import FoundDefinitions, find_definitions
from acp_agent.extensions.definitions.locations import (
    DefinitionFolders,
    bundled_agents,
    bundled_skills,
    find_folders,
)
from acp_agent.extensions.definitions.reading import Problem, group_problems
from acp_agent.extensions.definitions.types import AgentSpec, Skill
from acp_agent.trust.store import TrustStore

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
    return guarded(lambda: _show(kind, options.cwd, as_json=options.json))


def _show(kind: Kind, cwd: Path, *, as_json: bool) -> int:
    """List the definitions that a session in a folder finds; return the exit status."""
    if not cwd.is_dir():
        complain(translate("{folder} is not a directory", folder=cwd))
        return USAGE
    paths = find_paths(os.environ)
    config = load_config(paths.config_file, os.environ)
    here = only(kind, places_of(cwd))
    trusts = TrustStore(paths.trust_file, config.trusted_folders).trusts
    found = find_definitions(here, config, trusts)
    enabled = {one.path for one in _of(kind, found)}
    every = _of(kind, find_definitions(here, _all_enabled(config), trusts))
    offered = bundled_skills(config) if kind == "skills" else bundled_agents(config)
    others = config.agents if kind == "agents" else {}
    programs = {name: one for name, one in others.items() if one.command and one.enabled}
    bundled = [one.name for one in offered if one.name not in programs]
    if as_json:
        untrusted = [f"{one.folder}/{one.path}" for one in found.untrusted]
        say_json(
            {
                kind: [_as_json(one, enabled=one.path in enabled) for one in every],
                "problems": [
                    {
                        "path": _text(one.path),
                        "line": one.line,
                        "why": one.why,
                        "left_out": one.skipped,
                    }
                    for one in found.problems
                ],
                **({"untrusted": untrusted} if untrusted else {}),
                **({"bundled": bundled} if bundled else {}),
                **({"programs": _commands(programs)} if programs else {}),
            }
        )
        return 0
    if every:
        rows = [_row(one, enabled=one.path in enabled) for one in every]
        headings = [translate("NAME"), translate("SOURCE"), translate("MODEL"), translate("PATH")]
        say_table(headings, rows)
    else:
        say(_how_to_add(kind))
    if bundled:
        say()
        say(translate("Bundled: {names}", names=", ".join(bundled)))
    if programs:
        say()
        lines = [f"{name} ({shlex.join(one)})" for name, one in _commands(programs).items()]
        say(translate("Other programs: {names}", names=", ".join(lines)))
    if found.problems:
        say()
        for problem in group_problems(found.problems):
            say(problem_line(problem))
    if found.untrusted:
        say()
        say(untrusted_line(found))
    return 0


def _commands(programs: Mapping[str, AgentConfig]) -> dict[str, list[str]]:
    return {name: [one.command, *one.args] for name, one in programs.items()}


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


def places_of(cwd: Path) -> DefinitionFolders:
    """Return the folders that a session in a folder searches."""
    user = find_paths(os.environ).config_file.parent
    return find_folders(cwd.expanduser().absolute(), user=user, home=Path.home())


def only(kind: Kind, places: DefinitionFolders) -> DefinitionFolders:
    """Return the folders of skills only, or of agents only."""
    hidden = {"agents": ()} if kind == "skills" else {"skills": ()}
    return structs.replace(places, **hidden)


def problem_line(problem: Problem) -> str:
    """Return a problem in the user's language."""
    line = f"{problem.location}: {translate_rendered(problem.why)}"
    if not problem.further_files:
        return line
    return f"{line} ({translate('the same in {count} other files', count=problem.further_files)})"


def untrusted_line(found: FoundDefinitions) -> str:
    """Return a line about project files that the user does not trust."""
    return translate(
        "{count} not used until you trust the folder. Run acp-agent trust {folder}",
        count=len(found.untrusted),
        folder=found.untrusted[0].folder,
    )


def _of(kind: Kind, found: FoundDefinitions) -> tuple[Skill, ...] | tuple[AgentSpec, ...]:
    return found.skills if kind == "skills" else found.agents


def _all_enabled(config: Config) -> Config:
    """Return the configuration with everything enabled, to list disabled definitions too."""
    return structs.replace(config, skills=_enabled(config.skills), agents=_enabled(config.agents))


def _enabled(tables: dict[str, Settings]) -> dict[str, Settings]:
    return {name: structs.replace(table, enabled=True) for name, table in tables.items()}


def _row(one: Skill | AgentSpec, *, enabled: bool) -> list[str]:
    model = one.uses.model or translate("the session's")
    source = translate("user") if one.source == "user" else translate("project")
    return [one.name, source, model if enabled else translate("disabled"), str(one.path)]


def _as_json(one: Skill | AgentSpec, *, enabled: bool) -> dict[str, object]:
    return {
        "name": one.name,
        "description": one.description,
        "source": one.source,
        "path": _text(one.path),
        "enabled": enabled,
        **msgspec.to_builtins(one.uses),
    }


def _text(path: Path) -> str:
    """Return a path as valid JSON text, whatever its bytes."""
    return os.fsencode(path).decode("utf-8", "replace")
