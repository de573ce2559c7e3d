"""`acp-agent plugin list` and `check`: show plugins, their contents and problems."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from msgspec import to_builtins

from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import FAILED, complain, say, say_json, say_table
from acp_agent.cli.user_config import AnyVariable, UserConfig, load_user_config
from acp_agent.config.types import Config
from acp_agent.extensions.definitions.discovery import find_definitions
from acp_agent.extensions.definitions.locations import DefinitionFolders
from acp_agent.extensions.plugins.find import find_plugins
from acp_agent.extensions.plugins.installed import Installed, read_installed
from acp_agent.extensions.plugins.package import Plugin, describe_parts, read_plugin
from acp_agent.extensions.plugins.servers import plugin_servers


def plugins_folder(setup: UserConfig) -> Path:
    """Return the folder of the plugins that the user added."""
    return setup.paths.config_file.parent / "plugins"


def show(options: argparse.Namespace) -> int:
    """List the plugins of a folder and their problems; return the exit status."""
    setup = load_user_config()
    discovered = find_plugins(setup.folders(options.cwd.resolve()), setup.trusts)
    plugins_dir = plugins_folder(setup)
    installed = read_installed(plugins_dir)
    names = {plugin.name for plugin in discovered.plugins}
    packages = {
        name: record
        for name, record in installed.items()
        if record.kind == "package" and record.enabled
    }
    unused = {name: record for name, record in installed.items() if name not in {*names, *packages}}
    if options.json:
        say_json(
            {
                "plugins": [
                    _as_json(plugin, installed.get(plugin.name)) for plugin in discovered.plugins
                ],
                "packages": {name: to_builtins(record) for name, record in packages.items()},
                "unused": sorted(unused),
                "problems": [f"{path}: {reason}" for path, reason in discovered.problems],
                "untrusted": [f"{item.folder}/{item.path}" for item in discovered.untrusted],
            }
        )
        return FAILED if discovered.problems else 0
    rows = [
        (plugin.name, plugin.version or "-", *_origin(installed.get(plugin.name), plugin))
        for plugin in discovered.plugins
    ]
    rows += [
        (name, record.revision, record.source, record.digest[:12])
        for name, record in packages.items()
    ]
    rows += [
        (
            name,
            "-",
            record.source,
            translate("turned off") if not record.enabled else translate("not usable"),
        )
        for name, record in unused.items()
    ]
    if rows:
        say_table(("Name", "Version", "From", "Pinned to"), rows)
    else:
        say(translate("No plugins found."))
    for item in discovered.untrusted:
        say(translate("{file} is not used until you trust it: acp-agent trust", file=item.path))
    for path, reason in discovered.problems:
        complain(f"{path}: {translate_rendered(reason)}")
    return FAILED if discovered.problems else 0


def _origin(record: Installed | None, plugin: Plugin) -> tuple[str, str]:
    if record is None:
        return str(plugin.root), "-"
    pinned = record.revision or record.digest
    return record.source, pinned[:12] or "-"


def _as_json(plugin: Plugin, record: Installed | None) -> dict[str, object]:
    return {
        "name": plugin.name,
        "version": plugin.version,
        "description": plugin.description,
        "root": str(plugin.root),
        "source": plugin.source,
        "from": "" if record is None else record.source,
        "revision": "" if record is None else record.revision,
        "digest": "" if record is None else record.digest,
        "parts": list(describe_parts(plugin)),
    }


def check(options: argparse.Namespace) -> int:
    """Check the folder of a plugin, for its author; return the exit status.

    Raises:
        ConfigError: it is not a plugin, or its manifest is invalid.
    """
    with tempfile.TemporaryDirectory() as empty:
        plugin = read_plugin(options.path, data=Path(empty, "data"), source="user")
        # As a session finds it: in a folder of plugins, without others.
        plugins_dir = Path(empty, "plugins")
        plugins_dir.mkdir()
        (plugins_dir / plugin.name).symlink_to(plugin.root)
        folders = DefinitionFolders((), (), ((plugins_dir, "user"),), Path(empty))
        definitions = find_definitions(folders, Config(), lambda _: True)
        problems = [
            f"{definition.path}: {definition.why}"
            for definition in definitions.problems
            if definition.why
        ]
        servers = list(plugin_servers(folders, AnyVariable(), lambda _: True, problems, []))
    names = [definition.name for definition in (*definitions.skills, *definitions.agents, *servers)]
    if options.json:
        say_json({"name": plugin.name, "parts": names, "problems": problems})
    else:
        say(f"{plugin.name} {plugin.version}".strip())
        for line in describe_parts(plugin):
            say(f"  {line}")
        for problem in problems:
            complain(translate_rendered(problem))
        if not problems:
            say(translate("No errors found."))
    return FAILED if problems else 0
