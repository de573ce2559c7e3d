"""Read a plugin's folder and find its parts, as named in its manifest or at the default places."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from acp_agent.content import printable_line
from acp_agent.extensions.definitions.locations import Source
from acp_agent.extensions.plugins.manifest import (
    PROGRAM_FOLDER,
    Manifest,
    PluginError,
    Remark,
    part_values,
    read_json,
    read_manifest,
)

SKILLS, COMMANDS, AGENTS = "skills", "commands", "agents"
_HOOKS = ("hooks", "hooks.json")


class Part(Struct, frozen=True):
    """A JSON object of a plugin, and the file that contains it."""

    file: Path
    content: Mapping[str, Any]


class Plugin(Struct, frozen=True, kw_only=True):
    """A plugin as defined by its folder.

    Attributes:
        name: the name by which it is chosen, and the prefix of its parts' names.
        portable: whether it follows the Agent Plugins standard.
        skills: folders that contain a folder for each skill.
        problems: errors: the file or folder, and the reason and remedy in English.
    """

    name: str
    version: str
    description: str
    portable: bool
    root: Path
    data: Path
    source: Source
    skills: tuple[Path, ...]
    commands: tuple[Path, ...]
    agents: tuple[Path, ...]
    servers: tuple[Part, ...]
    hooks: tuple[Part, ...]
    problems: tuple[Remark, ...]

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables for its programs."""
        root, data = str(self.root), str(self.data)
        variables = {"PLUGIN_ROOT": root, "PLUGIN_DATA": data}
        if self.portable:
            return variables
        return {**variables, "CLAUDE_PLUGIN_ROOT": root, "CLAUDE_PLUGIN_DATA": data}

    def full_name(self, name: str) -> str:
        """Return the name of one of its parts in a session."""
        return f"{self.name}:{name}"


def read_plugin(
    folder: Path,
    *,
    data: Path,
    source: Source,
    marketplace_entry: Mapping[str, object] | None = None,
) -> Plugin:
    """Read a plugin's manifest and find its parts. Reads files.

    Args:
        data: the folder for the data of its programs; may be missing.
        marketplace_entry: a marketplace's entry for it, which may replace a manifest.

    Raises:
        PluginError: it is not a plugin, or its manifest cannot be used.
    """
    root = Path(os.path.realpath(folder))
    manifest = read_manifest(root, marketplace_entry)
    problems = list(manifest.remarks)
    finder = _PartFinder(root, manifest, problems)
    tops = [root / PROGRAM_FOLDER] if manifest.portable else []
    tops += [root] if manifest.foreign else []
    return Plugin(
        name=manifest.name,
        version=manifest.version,
        description=manifest.description,
        portable=manifest.portable,
        root=root,
        data=data,
        source=source,
        skills=tuple(finder.folders(SKILLS, [root / SKILLS], adds=True)),
        commands=tuple(finder.folders(COMMANDS, [top / COMMANDS for top in tops])),
        agents=tuple(finder.folders(AGENTS, [top / AGENTS for top in tops])),
        servers=tuple(
            finder.objects(
                "mcpServers", [root / ("mcp.json" if manifest.portable else ".mcp.json")]
            )
        ),
        hooks=tuple(finder.objects("hooks", [top.joinpath(*_HOOKS) for top in tops])),
        problems=tuple(problems),
    )


class _PartFinder:
    """Finds the parts of a plugin; parts outside its folder are refused."""

    def __init__(self, root: Path, manifest: Manifest, problems: list[Remark]) -> None:
        self._root = root
        self._part_paths = manifest.part_paths
        self._problems = problems

    def folders(
        self, key: str, default_folders: Sequence[Path], *, adds: bool = False
    ) -> Iterator[Path]:
        """Yield folders and files: those that the manifest names, or the default ones.

        Args:
            adds: whether the default folders are used in addition to the named ones.
        """
        manifest_paths = list(self._named_paths(key))
        for folder in default_folders if adds or not manifest_paths else ():
            if not os.path.lexists(folder):
                continue
            if self._is_inside(folder) and os.path.isdir(folder):
                yield folder
            else:
                self._problems.append((folder, "it is no folder of the plugin; put one there"))
        yield from (path for path in manifest_paths if path not in default_folders)

    def _named_paths(self, key: str) -> Iterator[Path]:
        for value in part_values(self._part_paths, key):
            path = self._path(value)
            if path is not None and os.path.exists(path):
                yield path
            else:
                quoted = printable_line(str(value), 100)
                self._problems.append(
                    (self._root, f"{key}: {quoted} is no path in the plugin; correct it")
                )

    def objects(self, key: str, default_files: Sequence[Path]) -> Iterator[Part]:
        """Yield the objects for a key, from the manifest, files that it names and default files."""
        files = [file for file in default_files if os.path.lexists(file)]
        for value in part_values(self._part_paths, key):
            if isinstance(value, dict):
                yield Part(self._root, {key: value})
                continue
            path = self._path(value)
            if path is None:
                quoted = printable_line(str(value), 100)
                self._problems.append((self._root, f"{key}: {quoted} is no path in the plugin"))
            elif path not in files:
                files.append(path)
        for file in files:
            try:
                content = read_json(file, self._root)
            except PluginError as error:
                self._problems.append(error.remark)
            else:
                # A file may contain only the servers or hooks, without the key.
                yield Part(
                    file, content if key in content or "$schema" in content else {key: content}
                )

    def _path(self, value: object) -> Path | None:
        if not isinstance(value, str) or "\0" in value:
            return None
        path = Path(os.path.normpath(self._root / value))
        return path if self._is_inside(path) else None

    def _is_inside(self, path: Path) -> bool:
        return Path(os.path.realpath(path)).is_relative_to(self._root)


def describe_parts(plugin: Plugin) -> Sequence[str]:
    """Return the parts of a plugin in English, as lines: names, servers, hooks. Reads folders."""
    lines = []
    for title, paths in (
        ("skills", plugin.skills), ("commands", plugin.commands), ("agents", plugin.agents)
    ):  # fmt: skip
        names = [name for path in paths for name in _list_names(path)]
        if names:
            lines.append(f"{title}: {printable_line(', '.join(names), 400)}")
    for part in plugin.servers:
        servers = part.content.get("mcpServers")
        for name, server in servers.items() if isinstance(servers, dict) else ():
            lines.append(f"MCP server {printable_line(name, 60)}: {_describe_server(server)}")
    for part in plugin.hooks:
        hooks = part.content.get("hooks")
        for event, groups in hooks.items() if isinstance(hooks, dict) else ():
            lines += [
                f"hook at {printable_line(event, 60)}: {server}"
                for server in _handler_lines(groups)
            ]
    return lines


def _list_names(path: Path) -> list[str]:
    if os.path.isfile(path):
        return [path.stem]
    try:
        names = sorted(entry.name for entry in os.scandir(path))
    except OSError:
        return []
    return [name.removesuffix(".md") for name in names if not name.startswith(".")]


def _describe_server(server: object) -> str:
    if not isinstance(server, dict):
        return "?"
    arguments = server.get("args")
    words = [server.get("command"), *(arguments if isinstance(arguments, list) else ())]
    line = " ".join(str(word) for word in words if word) or str(server.get("url", "?"))
    return printable_line(line, 200)


def _handler_lines(groups: object) -> Iterator[str]:
    for group in groups if isinstance(groups, list) else ():
        handlers = group.get("hooks") if isinstance(group, dict) else None
        for handler in handlers if isinstance(handlers, list) else ():
            if isinstance(handler, dict):
                line = handler.get("command") or handler.get("url") or handler.get("type") or "?"
                yield printable_line(str(line), 200)
