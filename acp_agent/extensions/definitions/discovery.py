"""Find and read the files of skills and agents, and report their errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.config.types import Config, DefinitionConfig
from acp_agent.content import printable_line
from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.build import (
    AgentInheritance,
    DefinitionFile,
    build_agent,
    build_skill,
    find_warnings,
)
from acp_agent.extensions.definitions.fields import FIELD_ALIASES, AgentFields, SkillFields
from acp_agent.extensions.definitions.front_matter import field_line
from acp_agent.extensions.definitions.locations import (
    DefinitionFolders,
    Source,
    any_plugin_folder,
    is_table,
    project_folder,
)
from acp_agent.extensions.definitions.reading import (
    Kind,
    Origin,
    Problem,
    problem,
    read_definitions,
)
from acp_agent.extensions.definitions.types import AgentSpec, Skill
from acp_agent.platform.trusted_files import trusted_owners
from acp_agent.trust.items import Item, Trusts, folder_name

if TYPE_CHECKING:
    from acp_agent.extensions.plugins.package import Plugin

_Fields = TypeVar("_Fields", SkillFields, AgentFields)
_DEFAULT = DefinitionConfig()


class Found(Struct, frozen=True, kw_only=True):
    """The definitions found, problems, and files of the project that are not trusted."""

    skills: tuple[Skill, ...] = ()
    agents: tuple[AgentSpec, ...] = ()
    problems: tuple[Problem, ...] = ()
    untrusted: tuple[Item, ...] = ()


def find_definitions(places: DefinitionFolders, config: Config, trusts: Trusts) -> Found:
    """Find the skills and agents of a session; the most specific definition of a name wins.

    An agent of the user takes precedence over one of the project. The configuration overrides a
    file. An invalid file is left out and overrides nothing, and an untrusted file of the project is
    not parsed. Blocks: reads every file.

    Args:
        places: the folders to search.
        config: the user's configuration.
        trusts: returns whether the user trusts a file of the project.
    """
    problems: list[Problem] = []
    untrusted: list[Item] = []

    def trusted(item: Item) -> bool:
        if trusts(item):
            return True
        untrusted.append(item)
        return False

    plugins: Sequence[Plugin] = ()
    if any_plugin_folder(places):
        from acp_agent.extensions.plugins.find import find_plugins  # noqa: PLC0415 - where there may be any

        found = find_plugins(places, trusted)
        plugins = found.plugins
        problems += [Problem(path, printable_line(why)) for path, why in found.problems]
    skills = _find_skills(places, plugins, config.skills, problems, trusted)
    agents = _find_agents(places, plugins, config.agents, problems, trusted)
    return Found(
        skills=tuple(sorted(skills, key=lambda skill: skill.name)),
        agents=tuple(sorted(agents, key=lambda agent: agent.name)),
        problems=tuple(problems),
        untrusted=tuple(untrusted),
    )


def _find_skills(
    places: DefinitionFolders,
    plugins: Sequence[Plugin],
    config: Mapping[str, DefinitionConfig],
    problems: list[Problem],
    trusts: Trusts,
) -> list[Skill]:
    found: dict[str, tuple[Skill, DefinitionFile[SkillFields]]] = {}
    files: list[DefinitionFile[SkillFields]] = []
    for place, source in places.skills:
        project = _project(places, place, source, trusts)
        files += _skills_of(place, project, problems)
    for plugin in plugins:
        files += [
            *_of_plugin(plugin, plugin.commands, "commands", SkillFields, problems),
            *_of_plugin(plugin, plugin.skills, "skills", SkillFields, problems),
        ]
    for file in files:
        name = file.fields.name
        try:
            found[name] = build_skill(file, config.get(name, _DEFAULT)), file
        except ConfigError as error:
            problems.append(problem(file.path, error))
    return [skill for skill, file in found.values() if _is_enabled(file, config, problems)]


def _find_agents(
    places: DefinitionFolders,
    plugins: Sequence[Plugin],
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
    for plugin in plugins:
        files += _agents_of_plugin(plugin, problems)
    if any(file.fields.extends for file in files):  # it may be a bundled one
        from acp_agent.extensions.definitions.bundled import bundled_agent_files  # noqa: PLC0415 - where one may be extended

        files = [*bundled_agent_files(), *files]
    family = AgentInheritance(files)
    found: list[AgentSpec] = []
    for several in family.named():
        for file in several:
            if file.source == "bundled":
                break  # sessions offer it through the index
            own = config.get(file.fields.name, _DEFAULT)
            try:
                agent = build_agent(family.whole(file), own)
            except ConfigError as error:
                problems.append(problem(file.path, error))
                continue  # use the one that it would have overridden
            if _is_enabled(file, config, problems):
                found.append(agent)
            break
    return found


def _skills_of(
    place: Path, origin: Origin | None, problems: list[Problem]
) -> list[DefinitionFile[SkillFields]]:
    if not is_table(place):
        return read_definitions(place, origin, "skills", SkillFields, problems)
    from acp_agent.extensions.definitions.agent_tables import read_commands  # noqa: PLC0415 - rarely there

    return read_commands(place, origin, problems)


def _agents_of(
    place: Path, origin: Origin | None, problems: list[Problem]
) -> list[DefinitionFile[AgentFields]]:
    if not is_table(place):
        return read_definitions(place, origin, "agents", AgentFields, problems)
    from acp_agent.extensions.definitions.agent_tables import read_agents  # noqa: PLC0415 - rarely there

    return read_agents(place, origin, problems)


def _project(
    places: DefinitionFolders, place: Path, source: Source, trusts: Trusts
) -> Origin | None:
    """Return the project that a place belongs to, or None for the user's own places."""
    if source == "user":
        return None
    every = (*places.skills, *places.agents)
    folders = {project_folder(one) for one, whose in every if whose == "project"}
    return Origin(
        folder=project_folder(place),
        owners=trusted_owners(*folders),
        source=source,
        top=folder_name(places.top),
        trusts=trusts,
    )


def _agents_of_plugin(
    plugin: Plugin, problems: list[Problem]
) -> Iterator[DefinitionFile[AgentFields]]:
    """Yield the agents of a plugin; `extends` may name an agent of the same plugin."""
    files = _of_plugin(plugin, plugin.agents, "agents", AgentFields, problems)
    names = {file.fields.name for file in files}
    for file in files:
        extended = plugin.full_name(file.fields.extends or "")
        if extended in names:
            yield replace(file, fields=replace(file.fields, extends=extended))
        else:
            yield file


def _of_plugin(
    plugin: Plugin,
    places: Sequence[Path],
    kind: Kind,
    fields: type[_Fields],
    problems: list[Problem],
) -> list[DefinitionFile[_Fields]]:
    """Return the files of a plugin, which the user added or trusts as a whole."""
    origin = Origin(
        folder=plugin.root,
        owners=trusted_owners(plugin.root),
        source=plugin.source,
        is_lenient=not plugin.portable,
        prefix=plugin.full_name(""),
    )
    return [
        file for place in places for file in read_definitions(place, origin, kind, fields, problems)
    ]


def _name_taken_error(path: Path) -> ConfigError:
    """Return the error for a project's file with the name of a user's file."""
    return ConfigError(f"name: {path}, which is yours, has the same; give it another")


def _is_enabled(
    file: DefinitionFile[_Fields],
    config: Mapping[str, DefinitionConfig],
    problems: list[Problem],
) -> bool:
    """Return whether a definition is enabled; if so, add warnings about its fields."""
    own = config.get(file.fields.name, _DEFAULT)
    if own.enabled:
        problems += [
            problem(file.path, _named(file, remark), left_out=False, line=_line(file, remark))
            for remark in find_warnings(file.fields, own)
        ]
    return own.enabled


def _named(file: DefinitionFile[_Fields], error: ConfigError) -> ConfigError:
    """Return an error, with the name of the definition if the file has several."""
    if not file.entry:
        return error
    kind, name = file.entry[0], printable_line(file.entry[-1], 80)
    return ConfigError(f"{kind} {name}: {error}")


def _line(file: DefinitionFile[_Fields], error: ConfigError) -> int | None:
    """Return the line of the field that an error begins with, or None if it is unknown."""
    wrong: str = str(error).partition(":")[0]
    if file.entry:
        from acp_agent.config.json_lines import member_line  # noqa: PLC0415 - rarely

        return member_line(file.whole, (*file.entry, wrong)) if file.whole else None
    names = (wrong, *(alias for alias, name in FIELD_ALIASES.items() if name == wrong))
    lines = (field_line(file.whole, name) for name in names)
    return next(filter(None, lines), None)
