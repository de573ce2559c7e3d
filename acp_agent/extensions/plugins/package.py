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
    OWN_FOLDER,
    Manifest,
    PluginError,
    Remark,
    named_parts,
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
        version: its version, for people.
        description: its purpose.
        portable: whether it follows the Agent Plugins standard.
        root: its folder, resolved.
        data: the folder for the data of its programs.
        source: its owner.
        skills: folders that contain a folder for each skill.
        commands: folders of commands, and files of single ones.
        agents: folders of agents, and files of single ones.
        servers: objects with `mcpServers`.
        hooks: objects with `hooks`.
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
        own = {"PLUGIN_ROOT": root, "PLUGIN_DATA": data}
        if self.portable:
            return own
        return {**own, "CLAUDE_PLUGIN_ROOT": root, "CLAUDE_PLUGIN_DATA": data}

    def full_name(self, name: str) -> str:
        """Return the name of one of its parts in a session."""
        return f"{self.name}:{name}"


def read_plugin(
    folder: Path, *, data: Path, source: Source, given: Mapping[str, object] | None = None
) -> Plugin:
    """Read a plugin's manifest and find its parts. Reads files.

    Args:
        folder: the folder of the plugin.
        data: the folder for the data of its programs; may be missing.
        source: its owner.
        given: a marketplace's entry for it, which may replace a manifest.

    Raises:
        PluginError: it is not a plugin, or its manifest cannot be used.
    """
    root = Path(os.path.realpath(folder))
    manifest = read_manifest(root, given)
    problems = list(manifest.remarks)
    parts = _Parts(root, manifest, problems)
    tops = [root / OWN_FOLDER] if manifest.portable else []
    tops += [root] if manifest.foreign else []
    return Plugin(
        name=manifest.name,
        version=manifest.version,
        description=manifest.description,
        portable=manifest.portable,
        root=root,
        data=data,
        source=source,
        skills=tuple(parts.folders(SKILLS, [root / SKILLS], adds=True)),
        commands=tuple(parts.folders(COMMANDS, [top / COMMANDS for top in tops])),
        agents=tuple(parts.folders(AGENTS, [top / AGENTS for top in tops])),
        servers=tuple(
            parts.objects("mcpServers", [root / ("mcp.json" if manifest.portable else ".mcp.json")])
        ),
        hooks=tuple(parts.objects("hooks", [top.joinpath(*_HOOKS) for top in tops])),
        problems=tuple(problems),
    )


class _Parts:
    """Finds the parts of a plugin; parts outside its folder are refused."""

    def __init__(self, root: Path, manifest: Manifest, problems: list[Remark]) -> None:
        self._root = root
        self._parts = manifest.parts
        self._problems = problems

    def folders(self, key: str, usual: Sequence[Path], *, adds: bool = False) -> Iterator[Path]:
        """Yield folders and files: those that the manifest names, or the default ones.

        Args:
            key: the key in the manifest.
            usual: the default folders.
            adds: whether the default folders are used in addition to the named ones.
        """
        named = list(self._named(key))
        for folder in usual if adds or not named else ():
            if not os.path.lexists(folder):
                continue
            if self._is_inside(folder) and folder.is_dir():
                yield folder
            else:
                self._problems.append((folder, "it is no folder of the plugin; put one there"))
        yield from (path for path in named if path not in usual)

    def _named(self, key: str) -> Iterator[Path]:
        for one in named_parts(self._parts, key):
            path = self._path(one)
            if path is not None and path.exists():
                yield path
            else:
                shown = printable_line(str(one), 100)
                self._problems.append(
                    (self._root, f"{key}: {shown} is no path in the plugin; correct it")
                )

    def objects(self, key: str, usual: Sequence[Path]) -> Iterator[Part]:
        """Yield the objects for a key, from the manifest, files that it names and default files."""
        files = [file for file in usual if os.path.lexists(file)]
        for one in named_parts(self._parts, key):
            if isinstance(one, dict):
                yield Part(self._root, {key: one})
                continue
            path = self._path(one)
            if path is None:
                shown = printable_line(str(one), 100)
                self._problems.append((self._root, f"{key}: {shown} is no path in the plugin"))
            elif path not in files:
                files.append(path)
        for file in files:
            try:
                found = read_json(file, self._root)
            except PluginError as error:
                self._problems.append(error.remark)
            else:
                # A file may contain only the servers or hooks, without the key.
                yield Part(file, found if key in found or "$schema" in found else {key: found})

    def _path(self, named: object) -> Path | None:
        if not isinstance(named, str) or "\0" in named:
            return None
        path = Path(os.path.normpath(self._root / named))
        return path if self._is_inside(path) else None

    def _is_inside(self, path: Path) -> bool:
        return Path(os.path.realpath(path)).is_relative_to(self._root)


def describe_parts(plugin: Plugin) -> Sequence[str]:
    """Return the parts of a plugin in English, as lines: names, servers, hooks. Reads folders."""
    lines = []
    for title, places in (
        ("skills", plugin.skills), ("commands", plugin.commands), ("agents", plugin.agents)
    ):  # fmt: skip
        names = [name for place in places for name in _names_in(place)]
        if names:
            lines.append(f"{title}: {printable_line(', '.join(names), 400)}")
    for part in plugin.servers:
        servers = part.content.get("mcpServers")
        for name, one in servers.items() if isinstance(servers, dict) else ():
            lines.append(f"MCP server {printable_line(name, 60)}: {_what_it_is(one)}")
    for part in plugin.hooks:
        hooks = part.content.get("hooks")
        for event, groups in hooks.items() if isinstance(hooks, dict) else ():
            lines += [f"hook at {printable_line(event, 60)}: {one}" for one in _handlers(groups)]
    return lines


def _names_in(place: Path) -> list[str]:
    if place.is_file():
        return [place.stem]
    try:
        names = sorted(entry.name for entry in os.scandir(place))
    except OSError:
        return []
    return [name.removesuffix(".md") for name in names if not name.startswith(".")]


def _what_it_is(server: object) -> str:
    if not isinstance(server, dict):
        return "?"
    arguments = server.get("args")
    words = [server.get("command"), *(arguments if isinstance(arguments, list) else ())]
    line = " ".join(str(word) for word in words if word) or str(server.get("url", "?"))
    return printable_line(line, 200)


def _handlers(groups: object) -> Iterator[str]:
    for group in groups if isinstance(groups, list) else ():
        handlers = group.get("hooks") if isinstance(group, dict) else None
        for one in handlers if isinstance(handlers, list) else ():
            if isinstance(one, dict):
                line = one.get("command") or one.get("url") or one.get("type") or "?"
                yield printable_line(str(line), 200)
