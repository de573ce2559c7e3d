"""Find and read the files of skills and agents, and report what is wrong with them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, structs

from acp_agent.config.types import Config, DefinitionConfig
from acp_agent.content import printable_line
from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.agent_files import read_agent
from acp_agent.extensions.definitions.build import (
    AgentInheritance,
    DefinitionFile,
    build_agent,
    build_skill,
    find_warnings,
)
from acp_agent.extensions.definitions.fields import (
    AgentFields,
    SkillFields,
    parse_fields,
    unused_fields,
)
from acp_agent.extensions.definitions.locations import (
    AGENT_TABLES,
    DefinitionFolders,
    Source,
    project_folder,
)
from acp_agent.extensions.definitions.reading import (
    Kind,
    Problem,
    Project,
    decode,
    files_in,
    problem,
    read_file,
    unused,
)
from acp_agent.extensions.definitions.skill_files import (
    FILE_NAME,
    is_single_file,
    plain_name,
    read_skill,
)
from acp_agent.extensions.definitions.types import AgentSpec, Skill
from acp_agent.platform.trusted_files import (
    trusted_owners,
)
from acp_agent.trust.items import Item, Trusts, folder_digest, folder_name, text_item

_Fields = TypeVar("_Fields", SkillFields, AgentFields)
_DEFAULT = DefinitionConfig()
_NAMED = 8  # fields that are not used, or programs
# What a file asks for, found without parsing it.
_WANTED = re.compile(rb"^(model|tools|context|agent|extends):[ \t]*(\S.*)$", re.MULTILINE)


class Found(Struct, frozen=True, kw_only=True):
    """What there is, by name, and what is left out or cannot be done as it says."""

    skills: tuple[Skill, ...] = ()
    agents: tuple[AgentSpec, ...] = ()
    problems: tuple[Problem, ...] = ()
    untrusted: tuple[Item, ...] = ()


def find_definitions(places: DefinitionFolders, config: Config, trusts: Trusts) -> Found:
    """Find the skills and agents of a session; the most specific of a name wins.

    An agent of the user's wins over one of the project.
    The configuration overrides a file. A broken file is left out and hides nothing, and one of the
    project that is not trusted is not parsed. Blocks: reads every file.

    Args:
        places: the folders to look into.
        config: the user's configuration.
        trusts: whether the user trusts a file of the project.
    """
    problems: list[Problem] = []
    untrusted: list[Item] = []

    def trusted(item: Item) -> bool:
        if trusts(item):
            return True
        untrusted.append(item)
        return False

    skills = _find_skills(places, config.skills, problems, trusted)
    agents = _find_agents(places, config.agents, problems, trusted)
    return Found(
        skills=tuple(sorted(skills, key=lambda skill: skill.name)),
        agents=tuple(sorted(agents, key=lambda agent: agent.name)),
        problems=tuple(problems),
        untrusted=tuple(untrusted),
    )


def _find_skills(
    places: DefinitionFolders,
    config: Mapping[str, DefinitionConfig],
    problems: list[Problem],
    trusts: Trusts,
) -> list[Skill]:
    found: dict[str, tuple[Skill, DefinitionFile[SkillFields]]] = {}
    for place, source in places.skills:
        project = _project(places, place, source, trusts)
        for file in _read(place, project, "skills", SkillFields, problems):
            name = file.fields.name
            try:
                found[name] = build_skill(file, config.get(name, _DEFAULT)), file
            except ConfigError as error:
                problems.append(problem(file.path, error))
    return [skill for skill, file in found.values() if _is_enabled(file, config, problems)]


def _find_agents(
    places: DefinitionFolders,
    config: Mapping[str, DefinitionConfig],
    problems: list[Problem],
    trusts: Trusts,
) -> list[AgentSpec]:
    files: list[DefinitionFile[AgentFields]] = []
    for place, source in places.agents:
        here: dict[str, DefinitionFile[AgentFields]] = {}
        project = _project(places, place, source, trusts)
        for file in _agents_of(place, project, problems):
            first = here.setdefault(file.fields.name, file)
            if first is not file:
                taken = ConfigError(f"name: {first.path.name} has the same; give it another")
                problems.append(problem(file.path, taken))
        users = {file.fields.name: file.path for file in files if file.source == "user"}
        for name, file in here.items():
            if source == "project" and name in users:
                problems.append(problem(file.path, _name_taken_error(users[name])))
            else:
                files.append(file)
    if any(file.fields.extends for file in files):  # it may be a bundled one
        from acp_agent.extensions.definitions.bundled import bundled_agent_files  # noqa: PLC0415 - where one may be extended

        files = [*bundled_agent_files(), *files]
    family = AgentInheritance(files)
    found: list[AgentSpec] = []
    for several in family.named():
        for file in several:
            if file.source == "bundled":
                break  # a session offers it by the index
            own = config.get(file.fields.name, _DEFAULT)
            try:
                agent = build_agent(family.whole(file), own)
            except ConfigError as error:
                problems.append(problem(file.path, error))
                continue  # with the one that it would have hidden
            if _is_enabled(file, config, problems):
                found.append(agent)
            break
    return found


def _agents_of(
    place: Path, project: Project | None, problems: list[Problem]
) -> list[DefinitionFile[AgentFields]]:
    if place.name not in AGENT_TABLES:
        return _read(place, project, "agents", AgentFields, problems)
    from acp_agent.extensions.definitions.agent_tables import read_table  # noqa: PLC0415 - rarely there

    return read_table(place, project, problems)


def _project(
    places: DefinitionFolders, place: Path, source: Source, trusts: Trusts
) -> Project | None:
    """The project that a place is a part of; None for the user's own."""
    if source == "user":
        return None
    every = (*places.skills, *places.agents)
    folders = {project_folder(one) for one, whose in every if whose == "project"}
    return Project(project_folder(place), trusted_owners(*folders), folder_name(places.top), trusts)


def _read(
    place: Path, project: Project | None, kind: Kind, fields: type[_Fields], problems: list[Problem]
) -> list[DefinitionFile[_Fields]]:
    """Read and parse the files of a folder; report those that are broken."""
    source: Source = "user" if project is None else "project"
    try:
        paths = files_in(place, kind)
    except ConfigError as error:
        problems.append(problem(place, error))
        return []
    found = []
    for path in paths:
        try:
            raw = read_file(path, project)
            if project is not None and not project.trusts(_item(kind, path, raw, project.top)):
                continue
            whole = text = decode(raw)
            if kind == "skills":
                front_matter, text = read_skill(place, path, text)
            elif (parts := read_agent(path, text)) is not None:
                front_matter, text = parts
            else:
                continue
            checked = parse_fields(front_matter, fields)
        except ConfigError as error:
            problems.append(problem(path, error))
        else:
            if names := unused_fields(front_matter, fields):
                problems.append(problem(path, unused(names), left_out=False))
            folder = path.parent.name
            if path.name == FILE_NAME and checked.name not in {folder, plain_name(folder)}:
                problems.append(problem(path, _other_name(checked.name, path), left_out=False))
            line = _first_line(whole, text)
            found.append(
                DefinitionFile(path=path, source=source, fields=checked, text=text, line=line)
            )
    return found


def _first_line(whole: str, text: str) -> int:
    """Return the number of the line at which the Markdown of a file begins."""
    return 1 + whole.count("\n", 0, max(0, whole.replace("\r\n", "\n").find(text)))


def _name_taken_error(path: Path) -> ConfigError:
    """The error for a project's file with the name of one of the user's."""
    return ConfigError(f"name: {path}, which is yours, has the same; give it another")


def _other_name(name: str, path: Path) -> ConfigError:
    folder = path.parent.name
    return ConfigError(f"name: it is {name}, that of its folder {folder}; give both the same")


def _is_enabled(
    file: DefinitionFile[_Fields],
    config: Mapping[str, DefinitionConfig],
    problems: list[Problem],
) -> bool:
    """Return whether it is enabled; if so, add warnings about its fields."""
    own = config.get(file.fields.name, _DEFAULT)
    if own.enabled:
        problems += [
            problem(file.path, remark, left_out=False) for remark in find_warnings(file.fields, own)
        ]
    return own.enabled


def _item(kind: Kind, path: Path, raw: bytes, top: str) -> Item:
    """The file of an agent, or a skill with all files beside its own."""
    wanted = {one[1].decode(): one[2].decode("utf-8", "replace") for one in _WANTED.finditer(raw)}
    wants = [f"{name}: {printable_line(value.strip())[:80]}" for name, value in wanted.items()]
    if kind == "agents":
        return text_item("agent", top, path, raw, "; ".join(wants))
    if is_single_file(path):
        return text_item("skill", top, path, raw, "; ".join(wants))
    digest, programs = folder_digest(Path(os.path.realpath(path.parent)))
    if programs:
        wants.append(f"programs: {printable_line(', '.join(programs[:_NAMED]))[:80]}")
    item = text_item("skill", top, path, raw, "; ".join(wants))
    both = digest and hashlib.sha256(f"{digest} {item.digest}".encode()).hexdigest()
    return structs.replace(item, digest=both)
