"""Find plugins that settings of Anthropic's command line program enable, per project or user.

`enabledPlugins` has names such as `formatter@team`; `extraKnownMarketplaces` defines where the
marketplace `team` is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.content import printable_line
from acp_agent.extensions.definitions.locations import hook_files, project_hook_files
from acp_agent.extensions.plugins.manifest import PluginError, Remark, read_json

# Marketplaces that are built into that program.
_OFFICIAL = {"claude-plugins-official": "anthropics/claude-plugins-official"}


class EnabledPlugin(Struct, frozen=True, kw_only=True):
    """A plugin that is enabled there.

    Attributes:
        source: the folder or the address of the marketplace; "" if unknown.
        ref: a branch, tag or commit.
    """

    name: str
    marketplace: str
    source: str
    ref: str = ""


class FoundEnabledPlugins(Struct, frozen=True):
    """The plugins that settings enable, and the errors in the files."""

    plugins: tuple[EnabledPlugin, ...]
    problems: tuple[Remark, ...]


def find_enabled_plugins(cwd: Path, home: Path) -> FoundEnabledPlugins:
    """Return the plugins that the settings of a project and of its user enable. Reads files.

    Later files override earlier ones: the user's, the project's, then those that are not shared.
    """
    problems: list[Remark] = []
    enabled: dict[str, bool] = {}
    markets: dict[str, tuple[str, str]] = {
        name: (address, "") for name, address in _OFFICIAL.items()
    }
    marketplaces_file = home / ".claude" / "plugins" / "known_marketplaces.json"
    for file in (marketplaces_file, *hook_files(home), *project_hook_files(cwd)):
        if file.parent.name == ".codex":
            continue
        if not os.path.isfile(file):
            continue
        try:
            settings = read_json(file, file.parent)
        except PluginError as error:
            problems.append(error.remark)
            continue
        entries = settings if file is marketplaces_file else settings.get("extraKnownMarketplaces")
        markets |= dict(_marketplaces(entries, cwd))
        plugins = settings.get("enabledPlugins")
        if isinstance(plugins, dict) and file is not marketplaces_file:
            enabled |= {name: value is not False for name, value in plugins.items()}
    return FoundEnabledPlugins(tuple(_enabled_plugins(enabled, markets)), tuple(problems))


def _enabled_plugins(
    enabled: Mapping[str, bool], markets: Mapping[str, tuple[str, str]]
) -> Iterator[EnabledPlugin]:
    for full in (name for name, is_enabled in enabled.items() if is_enabled):
        name, _, marketplace = printable_line(full, 200).partition("@")
        source, ref = markets.get(marketplace, ("", ""))
        yield EnabledPlugin(name=name, marketplace=marketplace, source=source, ref=ref)


def _marketplaces(entries: object, cwd: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        source = entry.get("source") if isinstance(entry, dict) else None
        if not isinstance(source, dict):
            continue
        addresses: Sequence[object] = (source.get("repo"), source.get("url"), source.get("path"))
        address = next(
            (address for address in addresses if isinstance(address, str) and address), ""
        )
        if source.get("source") == "directory":
            address = str(cwd / Path(address).expanduser())
        yield name, (address, str(source.get("ref") or ""))
