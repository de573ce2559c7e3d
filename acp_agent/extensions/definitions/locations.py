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

from msgspec import Struct

if TYPE_CHECKING:
    from acp_agent.config.types import Config, DefinitionConfig

Source = Literal["bundled", "user", "project"]
BUNDLED = Path(__file__).parents[1] / "bundled"
# Folders of other programs' agents, and a table, in the home folder and in projects.
FOREIGN_AGENT_FOLDERS = (
    ".github/chatmodes", ".github/agents", ".gemini/agents", ".cursor/agents",
    ".claude/agents", ".codex/agents", ".codex/config.toml", ".opencode/agent",
    ".opencode/agents",
)  # fmt: skip
# Folders of other programs' commands; a command is a skill that only the user can choose.
FOREIGN_COMMAND_FOLDERS = (
    ".github/prompts", ".claude/commands", ".cursor/commands", ".gemini/commands",
    ".opencode/command", ".opencode/commands", ".roo/commands", ".windsurf/workflows",
    ".clinerules/workflows",
)  # fmt: skip
# Folders of other programs' skills.
FOREIGN_SKILL_FOLDERS = (
    ".github/skills", ".gemini/skills", ".cursor/skills", ".codex/skills",
    ".opencode/skill", ".opencode/skills", ".roo/skills", ".claude/skills",
)  # fmt: skip
# Files with a table of agents, in projects and in the user's folder of that program.
AGENT_TABLES = ("opencode.json", "opencode.jsonc")
PROJECT_TABLES = (*AGENT_TABLES, *(f".opencode/{name}" for name in AGENT_TABLES))
ROO_MODES = ".roomodes"  # a table of agents at the top of a project
WORKTREES = "/.claude/worktrees/"  # below a session's folder: the worktrees of its agents
# Files in which a project names MCP servers; for a duplicate name the later file wins.
_MCP_FILES = (
    ".codex/config.toml", *PROJECT_TABLES, ".gemini/settings.json", ".vscode/mcp.json",
    ".kiro/settings/mcp.json", ".roo/mcp.json", ".cursor/mcp.json", ".mcp.json",
)  # fmt: skip
_HOOK_FILES = (
    ".codex/config.toml", ".codex/hooks.json", ".claude/settings.json",
    ".claude/settings.local.json",
)  # fmt: skip
# Files with settings of other programs that are used here too; later files win.
_SETTINGS_FILES = (
    ".codex/config.toml", ".gemini/settings.json", ".claude/settings.json",
    ".claude/settings.local.json",
)  # fmt: skip
# Files and folders in projects with other programs' code for another contract, which is not run.
# Only some settings of Gemini have hooks.
FOREIGN_HOOK_PATHS = (
    ".cursor/hooks.json", ".github/hooks", ".gemini/settings.json", ".opencode/plugin",
    ".opencode/plugins", ".opencode/tool", ".opencode/tools", *PROJECT_TABLES,
)  # fmt: skip
# The ends of the names of files with tables of definitions.
_TABLES = (".json", ".jsonc", ".toml", ROO_MODES)
PACKAGES = ".packages"  # has a folder for each plugin that is a Python package
BUNDLED_INDEX = "index.json"  # in the folders `skills` and `agents`


class BundledSkill(Struct, frozen=True):
    """A skill or agent that comes with the program; `hint` is what may follow its command."""

    name: str
    description: str
    hint: str | None = None


def bundled_skills(config: Config) -> Sequence[BundledSkill]:
    """Return the bundled skills that the user has not disabled."""
    return _enabled("skills", config.bundled_skills, config.skills)


def bundled_agents(config: Config) -> Sequence[BundledSkill]:
    """Return the bundled agents that the user has not disabled; see `bundled_skills`."""
    return _enabled("agents", config.bundled_agents, config.agents)


def _enabled(
    kind: str, chosen: bool | Sequence[str], configs: Mapping[str, DefinitionConfig]
) -> Sequence[BundledSkill]:
    if not chosen:
        return ()
    return [
        skill
        for skill in _index(kind)
        if (chosen is True or skill.name in chosen)
        and (skill.name not in configs or configs[skill.name].enabled)
    ]


@cache
def _index(kind: str) -> Sequence[BundledSkill]:
    """Return all bundled skills or agents. Blocks: reads one small file, once."""
    from acp_agent.platform.decoding import decode_json  # noqa: PLC0415 - not for a start without any

    index = BUNDLED / kind / BUNDLED_INDEX
    return decode_json(index.read_bytes(), list[BundledSkill])


class DefinitionFolders(Struct, frozen=True, cache_hash=True):
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
    user_folders = [home / path for path in FOREIGN_AGENT_FOLDERS]
    user_folders += [home / ".copilot" / "agents"]
    user_folders += [
        home / ".config" / "opencode" / name for name in (*AGENT_TABLES, "agent", "agents")
    ]
    user_folders += [user / "agents", home / ".agents" / "agents"]
    project_paths = (
        *PROJECT_TABLES, ROO_MODES, *FOREIGN_AGENT_FOLDERS, ".agents/agents", ".acp-agent/agents",
    )  # fmt: skip
    project_folders = [folder / path for folder in projects for path in project_paths]
    return (
        *((folder, "user") for folder in user_folders),
        *((folder, "project") for folder in project_folders if folder not in user_folders),
    )


def _plugin_folders(
    user: Path, home: Path, projects: list[Path]
) -> tuple[tuple[Path, Source], ...]:
    user_folders = [user / "plugins", home / ".agents" / "plugins"]
    paths = (".agents/plugins", ".acp-agent/plugins")
    project_folders = [folder / path for folder in projects for path in paths]
    return (
        *((folder, "user") for folder in user_folders),
        *((folder, "project") for folder in project_folders if folder not in user_folders),
    )


def _skill_folders(user: Path, home: Path, projects: list[Path]) -> tuple[tuple[Path, Source], ...]:
    """Return the folders of skills; those of other programs come before ours, which win."""
    # A skill wins over a command of the same name.
    foreign_paths = (*FOREIGN_COMMAND_FOLDERS, *FOREIGN_SKILL_FOLDERS)
    only_home = (
        *(f".config/opencode/{name}" for name in AGENT_TABLES),
        ".codex/prompts", ".config/opencode/command", ".config/opencode/commands",
        ".config/opencode/skill", ".config/opencode/skills", ".copilot/skills",
    )  # fmt: skip
    user_folders = [home / path for path in (*only_home, *foreign_paths, ".agents/skills")]
    user_folders.append(user / "skills")
    project_paths = (*PROJECT_TABLES, *foreign_paths, ".agents/skills", ".acp-agent/skills")
    project_folders = [folder / path for folder in projects for path in project_paths]
    # If a session is opened in the home folder, its folders still belong to the user.
    return (
        *((folder, "user") for folder in user_folders),
        *((folder, "project") for folder in project_folders if folder not in user_folders),
    )


def any_folder_exists(folders: DefinitionFolders) -> bool:
    """Return whether a folder of definitions exists. Blocks: reads the disk."""
    return any_plugin_folder(folders) or any(
        # Path would raise an error for a folder without permission.
        os.path.isfile(path) if path.name.endswith(_TABLES) else os.path.isdir(path)
        for path, _ in (*folders.skills, *folders.agents)
    )


@lru_cache(maxsize=32)
def definition_paths(folders: DefinitionFolders) -> tuple[str, ...]:
    """Return all folders of definitions, and files with tables of them."""
    every = (*folders.skills, *folders.agents, *folders.plugins)
    return tuple(dict.fromkeys(str(path) for path, _ in every))


def any_plugin_folder(folders: DefinitionFolders) -> bool:
    """Return whether a folder of plugins exists. Blocks for a few `stat` calls."""
    return any(os.path.isdir(folder) for folder, _ in folders.plugins)


def readable_skill_folders(folders: DefinitionFolders) -> list[Path]:
    """Return the folders of skills and plugins whose other files may be read, with links resolved.

    A project's folder that leads out of the project through a link is excluded: otherwise a project
    could make the agent read any file of the user. Blocks: reads the disk.
    """
    real_folders = []
    for folder, source in folders.skills:
        project = os.path.realpath(project_folder(folder))
        for path in (str(folder), *_linked(folder)):
            real = Path(os.path.realpath(path))
            if os.path.isdir(real) and (source == "user" or real.is_relative_to(project)):
                real_folders.append(real)
    user_folders = (folder for folder, source in folders.plugins if source == "user")
    return [*real_folders, *(path for folder in user_folders for path in plugin_roots(folder))]


def is_table(path: Path) -> bool:
    """Return whether a place is a file with a table of definitions, and not a folder."""
    return path.name.endswith(_TABLES)


def plugin_roots(folder: Path) -> list[Path]:
    """Return the real folders of the plugins in a folder, sorted by name. Blocks."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.isprintable())
    except OSError:
        return []
    roots = (Path(os.path.realpath(folder / name)) for name in names if not name.startswith("."))
    return [root for root in roots if os.path.isdir(root)]


def _linked(folder: Path) -> list[str]:
    """Return the skills in a folder that are symbolic links."""
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_symlink()]
    except OSError:
        return []


def project_folder(path: Path) -> Path:
    """Return the project folder of a place such as `.agents/skills`."""
    is_at_top = path.name in (*AGENT_TABLES, ROO_MODES) and path.parent.name != ".opencode"
    return path.parent if is_at_top else path.parent.parent


def mcp_files(cwd: Path) -> tuple[Path, ...]:
    """Return the files in which a project names MCP servers, the most general first."""
    return _files_of_project(cwd, project_top(cwd), _MCP_FILES)


def any_mcp_file(cwd: Path) -> bool:
    """Return whether a project has a file that names MCP servers. Blocks: reads the disk."""
    return any(map(os.path.lexists, mcp_files(cwd)))


def settings_files(cwd: Path) -> tuple[Path, ...]:
    """Return the files of a project with settings of other programs, the most general first."""
    return _files_of_project(cwd, project_top(cwd), _SETTINGS_FILES)


def hook_files(folder: Path) -> tuple[Path, ...]:
    """Return the files of a folder that may define hooks."""
    return _files_of_project(folder, folder, _HOOK_FILES)


def project_hook_files(cwd: Path) -> tuple[Path, ...]:
    """Return the files of a project that may define hooks, the most general first."""
    return _files_of_project(cwd, project_top(cwd), _HOOK_FILES)


def any_project_hook_file(cwd: Path) -> bool:
    """Return whether a project has a file that may define hooks. Blocks: reads the disk."""
    return any(map(os.path.lexists, project_hook_files(cwd)))


def foreign_hook_paths(cwd: Path) -> tuple[Path, ...]:
    """Return the places of a project in which other programs keep hooks of another contract."""
    return _files_of_project(cwd, project_top(cwd), FOREIGN_HOOK_PATHS)


def foreign_hook_files(cwd: Path) -> tuple[Path, ...]:
    """Return the files and folders of a project that may have hooks of another contract."""
    return tuple(path for path in foreign_hook_paths(cwd) if os.path.exists(path))


@lru_cache(maxsize=64)
def _files_of_project(cwd: Path, top: Path, names: Sequence[str]) -> tuple[Path, ...]:
    return tuple(folder / name for folder in dict.fromkeys((top, cwd)) for name in names)


def worktree_owner(folder: str) -> str:
    """Return the session's folder for that of an agent in a worktree, other folders as they are.

    Both arguments and results are resolved. The rules and grants of the owner apply.
    """
    return folder.partition(WORKTREES)[0]


def project_top(cwd: Path) -> Path:
    """Return the top folder of a project: that of its repository, or the folder itself."""
    return find_repository(cwd) or cwd


def find_repository(cwd: Path) -> Path | None:
    """Return the top folder of the repository that contains an absolute folder, or None."""
    folder = str(cwd)
    while not os.path.exists(f"{folder}/.git"):
        parent = os.path.dirname(folder)  # noqa: PTH120 - faster; each turn asks
        if parent == folder:
            return None
        folder = parent
    return Path(folder)
