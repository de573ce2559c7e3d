"""Find and read the files of skills and agents, and report their errors."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
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
    bundled_skills,
    is_table,
    project_folder,
)
from acp_agent.extensions.definitions.reading import (
    Kind,
    Origin,
    Problem,
    make_problem,
    read_definitions,
)
from acp_agent.extensions.definitions.types import AgentSpec, Skill
from acp_agent.platform.trusted_files import trusted_owners
from acp_agent.trust.store import Item, Trusts, folder_name

if TYPE_CHECKING:
    from acp_agent.extensions.plugins.package import Plugin

_Fields = TypeVar("_Fields", SkillFields, AgentFields)
_DEFAULT = DefinitionConfig()


class FoundDefinitions(Struct, frozen=True, kw_only=True):
    """The definitions found, problems, and files of the project that are not trusted."""

    skills: tuple[Skill, ...] = ()
    agents: tuple[AgentSpec, ...] = ()
    problems: tuple[Problem, ...] = ()
    untrusted: tuple[Item, ...] = ()


def find_definitions(
    folders: DefinitionFolders, config: Config, trusts: Trusts
) -> FoundDefinitions:
    """Find the skills and agents of a session; the most specific definition of a name wins.

    An agent of the user takes precedence over one of the project. The configuration overrides a
    file. An invalid file is left out and overrides nothing, and an untrusted file of the project is
    not parsed. Blocks: reads every file.

    Args:
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
    if any_plugin_folder(folders):
        from acp_agent.extensions.plugins.find import find_plugins  # noqa: PLC0415 - where there may be any

        plugin_search = find_plugins(folders, trusted)
        plugins = plugin_search.plugins
        problems += [Problem(path, printable_line(why)) for path, why in plugin_search.problems]
    skills = _find_skills(folders, plugins, config.skills, problems, trusted)
    agents = _find_agents(folders, plugins, config.agents, problems, trusted)
    agent_names = {agent.name for agent in agents}
    skills = [
        replace(skill, agent=_name_in_plugin(skill.name, skill.agent, agent_names))
        if skill.agent
        else skill
        for skill in skills
    ]
    texts = {skill.name: skill.text for skill in skills}
    agents = [_with_skills(agent, texts, config, problems) for agent in agents]
    return FoundDefinitions(
        skills=tuple(sorted(skills, key=lambda skill: skill.name)),
        agents=tuple(sorted(agents, key=lambda agent: agent.name)),
        problems=tuple(problems),
        untrusted=tuple(untrusted),
    )


def _name_in_plugin(owner: str, name: str, names: Container[str]) -> str:
    """Return a name that a definition uses, in full if it is that of a part of the same plugin."""
    prefix, colon, _ = owner.rpartition(":")
    full_name = f"{prefix}{colon}{name}"
    return full_name if full_name in names else name


def _with_skills(
    agent: AgentSpec, texts: Mapping[str, str], config: Config, problems: list[Problem]
) -> AgentSpec:
    """Return an agent whose prompt has the texts of the skills that it names."""
    sections = [agent.prompt]
    for name in agent.skills:
        text = texts.get(_name_in_plugin(agent.name, name, texts))
        if text is None and name in {skill.name for skill in bundled_skills(config)}:
            from acp_agent.extensions.definitions.bundled import read_bundled  # noqa: PLC0415 - rarely named

            text = read_bundled(name, config.skills.get(name, _DEFAULT)).text
        if text is None:
            error = ConfigError(f"skills: there is no skill {name}; add it, or fix the name")
            problems.append(make_problem(agent.path, error, skipped=False))
        else:
            sections.append(f"# Skill {name}\n\n{text.strip()}")
    return replace(agent, prompt="\n\n".join(sections)) if agent.skills else agent


def _find_skills(
    folders: DefinitionFolders,
    plugins: Sequence[Plugin],
    config: Mapping[str, DefinitionConfig],
    problems: list[Problem],
    trusts: Trusts,
) -> list[Skill]:
    by_name: dict[str, tuple[Skill, DefinitionFile[SkillFields]]] = {}
    files: list[DefinitionFile[SkillFields]] = []
    for folder, source in folders.skills:
        project = _project(folders, folder, source, trusts)
        files += _read_skills(folder, project, problems)
    for plugin in plugins:
        files += [
            *_read_plugin_files(plugin, plugin.commands, "commands", SkillFields, problems),
            *_read_plugin_files(plugin, plugin.skills, "skills", SkillFields, problems),
        ]
    for file in files:
        name = file.fields.name
        try:
            by_name[name] = build_skill(file, config.get(name, _DEFAULT)), file
        except ConfigError as error:
            problems.append(make_problem(file.path, error))
    return [skill for skill, file in by_name.values() if _is_enabled(file, config, problems)]


def _find_agents(
    folders: DefinitionFolders,
    plugins: Sequence[Plugin],
    config: Mapping[str, DefinitionConfig],
    problems: list[Problem],
    trusts: Trusts,
) -> list[AgentSpec]:
    files: list[DefinitionFile[AgentFields]] = []
    for folder, source in folders.agents:
        by_name: dict[str, DefinitionFile[AgentFields]] = {}
        project = _project(folders, folder, source, trusts)
        for file in _read_agents(folder, project, problems):
            first = by_name.setdefault(file.fields.name, file)
            if first is not file:
                is_inside = first.path.is_relative_to(folder)
                other = first.path.relative_to(folder) if is_inside else first.path.name
                name_error = ConfigError(f"name: {other} has the same; give it another")
                problems.append(make_problem(file.path, name_error, is_note=True))
        user_files = {file.fields.name: file.path for file in files if file.source == "user"}
        for name, file in by_name.items():
            if source == "project" and name in user_files:
                error = ConfigError(
                    f"name: {user_files[name]}, which is yours, has the same; give it another"
                )
                problems.append(make_problem(file.path, error, is_note=True))
            else:
                files.append(file)
    for plugin in plugins:
        files += _read_plugin_agents(plugin, problems)
    if any(file.fields.extends for file in files):  # it may be a bundled one
        from acp_agent.extensions.definitions.bundled import bundled_agent_files  # noqa: PLC0415 - where one may be extended

        files = [*bundled_agent_files(), *files]
    inheritance = AgentInheritance(files)
    agents: list[AgentSpec] = []
    for files_of_name in inheritance.by_name():
        for file in files_of_name:
            if file.source == "bundled":
                break  # sessions offer it through the index
            agent_config = config.get(file.fields.name, _DEFAULT)
            try:
                agent = build_agent(inheritance.resolve(file), agent_config)
            except ConfigError as error:
                problems.append(make_problem(file.path, error))
                continue  # use the one that it would have overridden
            if _is_enabled(file, config, problems):
                agents.append(agent)
            break
    return agents


def _read_skills(
    location: Path, origin: Origin | None, problems: list[Problem]
) -> list[DefinitionFile[SkillFields]]:
    if not is_table(location):
        return read_definitions(location, origin, "skills", SkillFields, problems)
    from acp_agent.extensions.definitions.agent_tables import (  # noqa: PLC0415 - rarely there
        named_skill_folders,
        read_commands,
    )

    files = read_commands(location, origin, problems)
    folder_origin = None if origin is None else replace(origin, is_lenient=True)
    for folder in named_skill_folders(location, origin, problems):
        files += read_definitions(folder, folder_origin, "skills", SkillFields, problems)
    return files


def _read_agents(
    location: Path, origin: Origin | None, problems: list[Problem]
) -> list[DefinitionFile[AgentFields]]:
    if not is_table(location):
        return read_definitions(location, origin, "agents", AgentFields, problems)
    from acp_agent.extensions.definitions.agent_tables import read_agents  # noqa: PLC0415 - rarely there

    return read_agents(location, origin, problems)


def _project(
    folders: DefinitionFolders, folder: Path, source: Source, trusts: Trusts
) -> Origin | None:
    """Return the project that a place belongs to, or None for the user's own places."""
    if source == "user":
        return None
    entries = (*folders.skills, *folders.agents)
    project_folders = {project_folder(folder) for folder, owner in entries if owner == "project"}
    return Origin(
        folder=project_folder(folder),
        owners=trusted_owners(*project_folders),
        source=source,
        top=folder_name(folders.top),
        trusts=trusts,
    )


def _read_plugin_agents(
    plugin: Plugin, problems: list[Problem]
) -> Iterator[DefinitionFile[AgentFields]]:
    """Yield the agents of a plugin; `extends` may name an agent of the same plugin."""
    files = _read_plugin_files(plugin, plugin.agents, "agents", AgentFields, problems)
    names = {file.fields.name for file in files}
    for file in files:
        extended = plugin.full_name(file.fields.extends or "")
        if extended in names:
            yield replace(file, fields=replace(file.fields, extends=extended))
        else:
            yield file


def _read_plugin_files(
    plugin: Plugin,
    locations: Sequence[Path],
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
        file
        for location in locations
        for file in read_definitions(location, origin, kind, fields, problems)
    ]


def _is_enabled(
    file: DefinitionFile[_Fields], config: Mapping[str, DefinitionConfig], problems: list[Problem]
) -> bool:
    """Return whether a definition is enabled; if so, add warnings about its fields."""
    definition_config = config.get(file.fields.name, _DEFAULT)
    if definition_config.enabled:
        problems += [
            make_problem(
                file.path, _with_entry_name(file, warning), skipped=False, line=_line(file, warning)
            )
            for warning in find_warnings(file.fields, definition_config)
        ]
    return definition_config.enabled


def _with_entry_name(file: DefinitionFile[_Fields], error: ConfigError) -> ConfigError:
    """Return an error, with the name of the definition if the file has several."""
    if not file.entry:
        return error
    kind, name = file.entry[0], printable_line(file.entry[-1], 80)
    return ConfigError(f"{kind} {name}: {error}")


def _line(file: DefinitionFile[_Fields], error: ConfigError) -> int | None:
    """Return the line of the field that an error begins with, or None if it is unknown."""
    field: str = str(error).partition(":")[0]
    if file.entry:
        from acp_agent.config.json_files import member_line  # noqa: PLC0415 - rarely

        return member_line(file.file_text, (*file.entry, field)) if file.file_text else None
    names = (field, *(alias for alias, name in FIELD_ALIASES.items() if name == field))
    lines = (field_line(file.file_text, name) for name in names)
    return next(filter(None, lines), None)
