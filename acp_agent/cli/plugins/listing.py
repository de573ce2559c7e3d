"""`acp-agent plugin list` and `check`: show plugins, their contents and problems."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from msgspec import to_builtins

from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import FAILED, complain, say, say_json, say_table
from acp_agent.cli.user_config import UserConfig, load_user_config
from acp_agent.config.types import Config
from acp_agent.extensions.definitions.discovery import find_definitions
from acp_agent.extensions.definitions.locations import DefinitionFolders, find_folders
from acp_agent.extensions.plugins.find import find_plugins
from acp_agent.extensions.plugins.installed import Installed, read_installed
from acp_agent.extensions.plugins.package import Plugin, describe_parts, read_plugin
from acp_agent.extensions.plugins.servers import plugin_servers
from acp_agent.trust.store import TrustStore


def folder_of_plugins(setup: UserConfig) -> Path:
    """Return the folder of the plugins that the user added."""
    return setup.paths.config_file.parent / "plugins"


def show(options: argparse.Namespace) -> int:
    """List the plugins of a folder and their problems; return the exit status."""
    setup = load_user_config()
    places = find_folders(options.cwd, user=setup.paths.config_file.parent, home=Path.home())
    trusts = TrustStore(setup.paths.trust_file, setup.config.trusted_folders).trusts
    found = find_plugins(places, trusts)
    own = folder_of_plugins(setup)
    known = read_installed(own)
    names = {one.name for one in found.plugins}
    packages = {name: one for name, one in known.items() if one.kind == "package" and one.enabled}
    off = {name: one for name, one in known.items() if name not in {*names, *packages}}
    if options.json:
        say_json(
            {
                "plugins": [_as_json(one, known.get(one.name)) for one in found.plugins],
                "packages": {name: to_builtins(one) for name, one in packages.items()},
                "unused": sorted(off),
                "problems": [f"{path}: {why}" for path, why in found.problems],
                "untrusted": [f"{item.folder}/{item.path}" for item in found.untrusted],
            }
        )
        return FAILED if found.problems else 0
    headings = [translate("Name"), translate("Version"), translate("From"), translate("Pinned to")]
    rows = [
        (one.name, one.version or "-", *_origin(known.get(one.name), one)) for one in found.plugins
    ]
    rows += [(name, one.revision, one.source, one.digest[:12]) for name, one in packages.items()]
    rows += [
        (
            name,
            "-",
            one.source,
            translate("turned off") if not one.enabled else translate("not usable"),
        )
        for name, one in off.items()
    ]
    if rows:
        say_table(headings, rows)
    else:
        say(translate("No plugins found."))
    for item in found.untrusted:
        say(translate("{file} is not used until you trust it: acp-agent trust", file=item.path))
    for path, why in found.problems:
        complain(f"{path}: {translate_rendered(why)}")
    return FAILED if found.problems else 0


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
        plugin = read_plugin(options.path.expanduser(), data=Path(empty, "data"), source="user")
        # As a session finds it: in a folder of plugins, without others.
        alone = Path(empty, "plugins")
        alone.mkdir()
        (alone / plugin.name).symlink_to(plugin.root)
        places = DefinitionFolders((), (), ((alone, "user"),), Path(empty))
        definitions = find_definitions(places, Config(), lambda _: True)
        problems = [f"{one.path}: {one.why}" for one in definitions.problems if one.why]
        servers = list(plugin_servers(places, _Anything(), lambda _: True, problems))
    names = [one.name for one in (*definitions.skills, *definitions.agents, *servers)]
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


class _Anything(dict[str, str]):
    """An environment in which every variable is set."""

    def get(self, key: str, default: str | None = None) -> str:  # type: ignore[override] # never None
        """Return a value."""
        del key
        return default or "value"
