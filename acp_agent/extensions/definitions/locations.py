"""The folders that may contain skills and agents.

This module runs before the first prompt, so it reads none of their files: a session without skills
and agents costs only a few `stat` calls, and a process reads the small index of the bundled skills
once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from acp_agent.config.types import Config, DefinitionConfig

Source = Literal["bundled", "user", "project"]
BUNDLED = Path(__file__).parents[1] / "bundled"
# Folders of other programs' agents, and a table, in the home folder and in projects.
OTHER_AGENTS = (
    ".github/chatmodes", ".github/agents", ".gemini/agents", ".cursor/agents",
    ".claude/agents", ".codex/agents", ".codex/config.toml", ".opencode/agent",
    ".opencode/agents",
)  # fmt: skip
# Folders of other programs' commands; a command is a skill that only the user can choose.
OTHER_COMMANDS = (
    ".github/prompts", ".claude/commands", ".cursor/commands", ".gemini/commands",
    ".opencode/command", ".opencode/commands",
)  # fmt: skip
# Folders of other programs' skills.
OTHER_SKILLS = (
    ".github/skills", ".gemini/skills", ".cursor/skills", ".codex/skills",
    ".opencode/skill", ".opencode/skills", ".claude/skills",
)  # fmt: skip
# Files with a table of agents, in projects and in the user's folder of that program.
AGENT_TABLES = ("opencode.json", "opencode.jsonc")
# Files in which a project names MCP servers; for a duplicate name the later file wins.
_MCP_FILES = (
    ".codex/config.toml", *AGENT_TABLES, ".gemini/settings.json", ".vscode/mcp.json",
    ".cursor/mcp.json", ".mcp.json",
)  # fmt: skip
_HOOK_FILES = (
    ".codex/config.toml", ".codex/hooks.json", ".claude/settings.json",
    ".claude/settings.local.json",
)  # fmt: skip
# Files and folders in projects with other programs' code for another contract, which is not run.
# Only some settings of Gemini have hooks.
OTHER_HOOKS = (
    ".cursor/hooks.json", ".github/hooks", ".gemini/settings.json", ".opencode/plugin",
    ".opencode/plugins", ".opencode/tool", ".opencode/tools", *AGENT_TABLES,
)  # fmt: skip
PACKAGES = ".packages"  # has a folder for each plugin that is a Python package
BUNDLED_INDEX = "index.json"  # in the folders `skills` and `agents`


class BundledSkill(Struct, frozen=True):
    """A skill or agent that comes with the program; `hint` is what may follow its command."""

    name: str
    description: str
    hint: str | None = None


def bundled_skills(config: Config) -> Sequence[BundledSkill]:
    """Return the bundled skills that the user has not disabled.

    Args:
        config: the user's configuration.
    """
    return _offered("skills", config.bundled_skills, config.skills)


def bundled_agents(config: Config) -> Sequence[BundledSkill]:
    """Return the bundled agents that the user has not disabled; see `bundled_skills`."""
    return _offered("agents", config.bundled_agents, config.agents)


def _offered(
    kind: str, chosen: bool | Sequence[str], tables: Mapping[str, DefinitionConfig]
) -> Sequence[BundledSkill]:
    if not chosen:
        return ()
    return [
        one
        for one in _index(kind)
        if (chosen is True or one.name in chosen)
        and (one.name not in tables or tables[one.name].enabled)
    ]


@cache
def _index(kind: str) -> Sequence[BundledSkill]:
    """Return all bundled skills or agents. Blocks: reads one small file, once."""
    index = BUNDLED / kind / BUNDLED_INDEX
    return msgspec.json.decode(index.read_bytes(), type=list[BundledSkill])


class DefinitionFolders(Struct, frozen=True):
    """Folders with their owners, from the most general to the most specific: later ones win.

    Attributes:
        skills: each contains folders with a SKILL.md, and YAML files; one named `commands` contains
            Markdown files instead.
        agents: each contains Markdown files, or is a file with a table of agents.
        plugins: each contains a folder for each plugin; the first has those that were added.
        top: the top folder of the project: that of its repository, or the session's folder.
    """

    skills: tuple[tuple[Path, Source], ...]
    agents: tuple[tuple[Path, Source], ...]
    plugins: tuple[tuple[Path, Source], ...]
    top: Path


def find_folders(cwd: Path, *, user: Path, home: Path) -> DefinitionFolders:
    """Return the folders in which a session looks for definitions.

    Args:
        cwd: the session's folder, absolute.
        user: the folder of the user's configuration file.
        home: the user's home folder, whose `.agents` is shared by all programs.
    """
    return _folders(cwd, find_repository(cwd), user, home)


@lru_cache(maxsize=32)  # called several times in each turn
def _folders(cwd: Path, root: Path | None, user: Path, home: Path) -> DefinitionFolders:
    projects = [cwd] if root is None or root == cwd else [root, cwd]
    return DefinitionFolders(
        _skill_folders(user, home, projects),
        _agent_folders(user, home, projects),
        _plugin_folders(user, home, projects),
        root or cwd,
    )


def _agent_folders(user: Path, home: Path, projects: list[Path]) -> tuple[tuple[Path, Source], ...]:
    """Return the folders of agents; those of other programs come before ours, which win."""
    own = [home / place for place in OTHER_AGENTS]
    own += [home / ".copilot" / "agents"]
    own += [home / ".config" / "opencode" / name for name in (*AGENT_TABLES, "agent", "agents")]
    own += [user / "agents", home / ".agents" / "agents"]
    ours = (*AGENT_TABLES, *OTHER_AGENTS, ".agents/agents", ".acp-agent/agents")
    folders = [folder / place for folder in projects for place in ours]
    return (
        *((folder, "user") for folder in own),
        *((folder, "project") for folder in folders if folder not in own),
    )


def _plugin_folders(
    user: Path, home: Path, projects: list[Path]
) -> tuple[tuple[Path, Source], ...]:
    own = [user / "plugins", home / ".agents" / "plugins"]
    places = (".agents/plugins", ".acp-agent/plugins")
    folders = [folder / place for folder in projects for place in places]
    return (
        *((folder, "user") for folder in own),
        *((folder, "project") for folder in folders if folder not in own),
    )


def _skill_folders(user: Path, home: Path, projects: list[Path]) -> tuple[tuple[Path, Source], ...]:
    """Return the folders of skills; those of other programs come before ours, which win."""
    theirs = (*OTHER_COMMANDS, *OTHER_SKILLS)  # a skill wins over a command of the same name
    only_home = (
        *(f".config/opencode/{name}" for name in AGENT_TABLES),
        ".codex/prompts", ".config/opencode/command", ".config/opencode/commands",
        ".config/opencode/skill", ".config/opencode/skills", ".copilot/skills",
    )  # fmt: skip
    own = [home / place for place in (*only_home, *theirs, ".agents/skills")]
    own.append(user / "skills")
    ours = (*AGENT_TABLES, *theirs, ".agents/skills", ".acp-agent/skills")
    folders = [folder / place for folder in projects for place in ours]
    # If a session is opened in the home folder, its folders still belong to the user.
    return (
        *((folder, "user") for folder in own),
        *((folder, "project") for folder in folders if folder not in own),
    )


def any_folder_exists(places: DefinitionFolders) -> bool:
    """Return whether a folder of definitions exists. Blocks for a few `stat` calls."""
    # Path would raise an error for a folder without permission.
    return any_plugin_folder(places) or any(
        os.path.isfile(place) if is_table(place) else os.path.isdir(place)  # noqa: PTH112, PTH113
        for place, _ in (*places.skills, *places.agents)
    )


def any_plugin_folder(places: DefinitionFolders) -> bool:
    """Return whether a folder of plugins exists. Blocks for a few `stat` calls."""
    return any(os.path.isdir(folder) for folder, _ in places.plugins)  # noqa: PTH112


def readable_skill_folders(places: DefinitionFolders) -> list[Path]:
    """Return the folders of skills and plugins whose other files may be read, with links resolved.

    A project's folder that leads out of the project through a link is excluded: otherwise a project
    could make the agent read any file of the user. Blocks: reads the disk.
    """
    found = []
    for place, source in places.skills:
        project = os.path.realpath(project_folder(place))
        for folder in (str(place), *_linked(place)):
            real = Path(os.path.realpath(folder))
            if real.is_dir() and (source == "user" or real.is_relative_to(project)):
                found.append(real)
    own = (place for place, source in places.plugins if source == "user")
    return [*found, *(folder for place in own for folder in plugin_roots(place))]


def is_table(place: Path) -> bool:
    """Return whether a place is a file with a table of definitions, and not a folder."""
    return place.suffix in {".json", ".jsonc", ".toml"}


def plugin_roots(place: Path) -> list[Path]:
    """Return the real folders of the plugins in a folder, sorted by name. Blocks."""
    try:
        names = sorted(entry.name for entry in os.scandir(place) if entry.name.isprintable())
    except OSError:
        return []
    roots = (Path(os.path.realpath(place / name)) for name in names if not name.startswith("."))
    return [root for root in roots if root.is_dir()]


def _linked(place: Path) -> list[str]:
    """Return the skills in a folder that are symbolic links."""
    try:
        with os.scandir(place) as entries:
            return [entry.path for entry in entries if entry.is_symlink()]
    except OSError:
        return []


def project_folder(place: Path) -> Path:
    """Return the project folder of a place such as `.agents/skills`."""
    return place.parent if place.name in AGENT_TABLES else place.parent.parent


def mcp_files(cwd: Path) -> tuple[Path, ...]:
    """Return the files in which a project names MCP servers, the most general first."""
    top = find_repository(cwd) or cwd
    return tuple(folder / name for folder in dict.fromkeys((top, cwd)) for name in _MCP_FILES)


def hook_files(folder: Path) -> tuple[Path, ...]:
    """Return the files of a folder that may define hooks."""
    return tuple(folder / name for name in _HOOK_FILES)


def project_hook_files(cwd: Path) -> tuple[Path, ...]:
    """Return the files of a project that may define hooks, the most general first."""
    top = find_repository(cwd) or cwd
    return tuple(file for folder in dict.fromkeys((top, cwd)) for file in hook_files(folder))


def any_hook_file(home: Path, cwd: Path) -> bool:
    """Return whether a file exists that may define hooks. Blocks: reads the disk."""
    files = (*hook_files(home), *project_hook_files(cwd))
    return any(map(os.path.lexists, files)) or bool(other_hook_files(cwd))


def other_hook_files(cwd: Path) -> tuple[Path, ...]:
    """Return the files and folders of a project that may have hooks of another contract."""
    top = find_repository(cwd) or cwd
    files = (folder / name for folder in dict.fromkeys((top, cwd)) for name in OTHER_HOOKS)
    return tuple(file for file in files if os.path.exists(file))  # noqa: PTH110 - as above


def find_repository(cwd: Path) -> Path | None:
    """Return the top folder of the repository that contains a folder, or None if there is none."""
    for folder in (cwd, *cwd.parents):
        if os.path.exists(folder / ".git"):  # noqa: PTH110 - as above
            return folder
    return None
