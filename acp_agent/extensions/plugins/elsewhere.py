"""Find plugins that settings of Anthropic's command line program enable, per project or user.

`enabledPlugins` has names such as `formatter@team`; `extraKnownMarketplaces` defines where the
marketplace `team` is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.content import printable_line
from acp_agent.extensions.definitions.locations import hook_files, project_hook_files
from acp_agent.extensions.plugins.manifest import PluginError, Remark, read_json

# Marketplaces that are built into that program.
_OFFICIAL = {"claude-plugins-official": "anthropics/claude-plugins-official"}


class Wanted(Struct, frozen=True, kw_only=True):
    """A plugin that is enabled there.

    Attributes:
        name: the plugin's name in its marketplace.
        marketplace: the name of the marketplace.
        source: the folder or the address of the marketplace; "" if unknown.
        ref: a branch, tag or commit.
    """

    name: str
    marketplace: str
    source: str
    ref: str = ""


class FoundElsewhere(Struct, frozen=True):
    """The plugins that settings enable, and the errors in the files."""

    plugins: tuple[Wanted, ...]
    problems: tuple[Remark, ...]


def find_elsewhere(cwd: Path, home: Path) -> FoundElsewhere:
    """Return the plugins that the settings of a project and of its user enable. Reads files.

    Later files override earlier ones: the user's, the project's, then those that are not shared.

    Args:
        cwd: the session's folder.
        home: the user's home folder.
    """
    problems: list[Remark] = []
    enabled: dict[str, bool] = {}
    markets: dict[str, tuple[str, str]] = {name: (place, "") for name, place in _OFFICIAL.items()}
    known = home / ".claude" / "plugins" / "known_marketplaces.json"
    for file in (known, *hook_files(home), *project_hook_files(cwd)):
        if file.parent.name == ".codex":
            continue
        if not file.is_file():
            continue
        try:
            found = read_json(file, file.parent)
        except PluginError as error:
            problems.append(error.remark)
            continue
        named = found if file is known else found.get("extraKnownMarketplaces")
        markets |= dict(_marketplaces(named, cwd))
        plugins = found.get("enabledPlugins")
        if isinstance(plugins, dict) and file is not known:
            enabled |= {name: one is not False for name, one in plugins.items()}
    return FoundElsewhere(tuple(_wanted(enabled, markets)), tuple(problems))


def _wanted(
    enabled: Mapping[str, bool], markets: Mapping[str, tuple[str, str]]
) -> Iterator[Wanted]:
    for full in (name for name, on in enabled.items() if on):
        name, _, marketplace = printable_line(full, 200).partition("@")
        source, ref = markets.get(marketplace, ("", ""))
        yield Wanted(name=name, marketplace=marketplace, source=source, ref=ref)


def _marketplaces(given: object, cwd: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    for name, one in given.items() if isinstance(given, dict) else ():
        source = one.get("source") if isinstance(one, dict) else None
        if not isinstance(source, dict):
            continue
        places: Sequence[object] = (source.get("repo"), source.get("url"), source.get("path"))
        place = next((place for place in places if isinstance(place, str) and place), "")
        if source.get("source") == "directory":
            place = str(cwd / Path(place).expanduser())
        yield name, (place, str(source.get("ref") or ""))
