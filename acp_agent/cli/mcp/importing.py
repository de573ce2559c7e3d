"""`acp-agent mcp import`: import the MCP servers of other coding agents."""

from __future__ import annotations

import argparse
from pathlib import Path

import tomlkit

from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.mcp.editing import save, toml_table
from acp_agent.cli.mcp.foreign import ForeignServers, find_files, read_foreign
from acp_agent.cli.output import FAILED, can_ask, complain, confirm, say
from acp_agent.cli.user_config import load_user_config
from acp_agent.config.mcp_types import McpServerConfig
from acp_agent.errors import ConfigError, InvalidInputError
from acp_agent.extensions.mcp.configured import KEY


def import_servers(options: argparse.Namespace) -> int:
    """Show the servers of other agents, and save them after confirmation; return the exit status.

    Raises:
        ConfigError, InvalidInputError: the configuration cannot be read or written.
    """
    setup = load_user_config()
    failed = False
    new: dict[str, McpServerConfig] = {}
    paths = [path.expanduser().absolute() for path in options.path]
    files = paths or find_files(options.cwd, Path.home(), setup.environ)
    for file in files:
        try:
            foreign = read_foreign(file, options.cwd)
        except (ConfigError, InvalidInputError) as error:
            failed = True
            complain(translate_rendered(str(error)))
            continue
        _show(foreign)
        for name, table in foreign.servers.items():
            if name in setup.config.mcp_servers or name in new:
                say(f"  {translate('{name}: the name is already in use', name=name)}")
            else:
                new[name] = table
    if not new:
        say(translate("No new MCP servers."))
        return FAILED if failed else 0
    file = setup.paths.config_file
    say(translate("New servers for {file}:", file=file))
    say()
    say(_toml(new))
    say()
    if _confirmed(options):
        save(new, file)
        say(translate("Saved to {file}.", file=file))
    return FAILED if failed else 0


def _show(foreign: ForeignServers) -> None:
    say(f"{foreign.file}: {', '.join(foreign.servers) or '-'}")
    for note in foreign.notes:
        say(f"  {translate_rendered(note)}")


def _toml(servers: dict[str, McpServerConfig]) -> str:
    document = tomlkit.document()
    tables = tomlkit.table(is_super_table=True)
    for name, table in servers.items():
        tables.add(name, toml_table(table))
    document.add(KEY, tables)
    return document.as_string().strip()


def _confirmed(options: argparse.Namespace) -> bool:
    if options.save:
        return True
    if not can_ask():
        say(translate("Nothing saved: not a terminal. Use --save to save."))
        return False
    return confirm(translate("Save these servers? [y/N] "))
