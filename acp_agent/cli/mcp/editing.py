"""`acp-agent mcp add` and `remove`: change the user's servers; some are known by name alone."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from shutil import which
from typing import TypedDict

import tomlkit
from msgspec.structs import asdict, replace

from acp_agent.cli.editors import config_file
from acp_agent.cli.localization import translate
from acp_agent.cli.output import say
from acp_agent.cli.user_config import AnyVariable
from acp_agent.config.load import parse, read_text
from acp_agent.config.mcp_types import McpServerConfig
from acp_agent.config.paths import find_paths
from acp_agent.errors import InvalidInputError
from acp_agent.extensions.mcp.configured import KEY
from acp_agent.extensions.mcp.tables import build_server
from acp_agent.platform.data_tables import read_table

_DEFAULT = asdict(McpServerConfig())


def add(options: argparse.Namespace) -> int:
    """Add a server to the user's configuration; return the exit status.

    Raises:
        ConfigError, InvalidInputError: it is invalid, or the file cannot be written.
    """
    if options.target is None:
        table = configure_known_server(options.name)
    else:
        address = options.target.startswith(("http://", "https://"))
        table = McpServerConfig(
            type=options.type,
            command="" if address else options.target,
            args=list(options.args),
            url=options.target if address else "",
            headers=dict(_pair(argument, ":", "--header") for argument in options.header),
        )
    table = replace(
        table,
        env=dict(_pair(argument, "=", "--env") for argument in options.env),
        env_vars=list(options.env_var),
    )
    # Variables may be set later, so only errors in the definition itself are refused.
    build_server(options.name, table, AnyVariable(), field=KEY, source="user")
    file = find_paths(os.environ).config_file
    save({options.name: table}, file)
    say(translate("Added {name} to {file}.", name=options.name, file=file))
    say(translate("Try it: acp-agent mcp test {name}", name=options.name))
    return 0


def remove(options: argparse.Namespace) -> int:
    """Remove a server from the user's configuration; return the exit status.

    Raises:
        ConfigError, InvalidInputError: there is none, or the file cannot be written.
    """
    file = find_paths(os.environ).config_file

    def change(servers: MutableMapping[str, object]) -> None:
        if options.name not in servers:
            names = ", ".join(servers) or "none"
            raise InvalidInputError(
                f"{file} has no MCP server {options.name!r}; it has: {names}", field="name"
            )
        del servers[options.name]

    _change(file, change)
    say(translate("Removed {name} from {file}.", name=options.name, file=file))
    return 0


def save(tables: Mapping[str, McpServerConfig], file: Path) -> None:
    """Add servers to a configuration file; the rest of the file is unchanged.

    Raises:
        ConfigError: it is not TOML.
        InvalidInputError: it already has a server with this name, or cannot be written.
    """

    def change(servers: MutableMapping[str, object]) -> None:
        for name, table in tables.items():
            if name in servers:
                raise InvalidInputError(
                    f"{file} has an MCP server {name!r} already; remove it first", field="name"
                )
            servers[name] = toml_table(table)

    _change(file, change)


def toml_table(table: McpServerConfig) -> tomlkit.items.Table:
    """Return a server as a configuration table, without default values."""
    server_table = tomlkit.table()
    for key, value in asdict(table).items():
        if value == _DEFAULT[key]:
            continue
        if isinstance(value, dict):
            inline = tomlkit.inline_table()
            inline.update(value)
            server_table.add(key, inline)
        else:
            server_table.add(key, value)
    return server_table


def _change(file: Path, change: Callable[[MutableMapping[str, object]], None]) -> None:
    text = read_text(file)
    parse(file, text)
    document = tomlkit.parse(text)
    servers = document.get(KEY)
    if servers is None:
        servers = tomlkit.table(is_super_table=True)
        change(servers)
        document.add(KEY, servers)
    else:
        change(servers)
    try:
        config = config_file.read(file)
        config_file.write(config, document.as_string().encode(), keep=True)
    except InvalidInputError as error:
        raise InvalidInputError(f"{file}: {error}", field="file") from None


def _pair(text: str, mark: str, option: str) -> tuple[str, str]:
    name, separator, value = text.partition(mark)
    if not separator or not name.strip():
        raise InvalidInputError(f"{option}: expected NAME{mark}VALUE", field=option)
    return name.strip(), value.strip() if mark == ":" else value


class KnownServer(TypedDict, total=False):
    """An entry of known_servers.toml, which documents the fields."""

    command: str
    args: list[str]
    root_args: list[str]
    program_option: str
    programs: list[str]
    start_timeout: float
    install: dict[str, str]


def load_known_servers() -> Mapping[str, KnownServer]:
    """Return the known servers, by name."""
    table = read_table(__package__, "known_servers.toml", dict[str, dict[str, KnownServer]])
    return table["servers"]


def configure_known_server(name: str) -> McpServerConfig:
    """Return the configuration that starts a known server on this computer.

    Raises:
        InvalidInputError: the name is unknown, or a required program is missing.
    """
    servers = load_known_servers()
    entry = servers.get(name)
    if entry is None:
        raise InvalidInputError(
            f"{name} is no known server, so its program or address is needed: "
            f"acp-agent mcp add {name} COMMAND_OR_URL; known are: {', '.join(servers)}",
            field="name",
        )
    args = list(entry["args"])
    _require_program(name, entry, [entry["command"]])
    if entry.get("programs"):
        args += [entry["program_option"], _require_program(name, entry, entry["programs"])]
    if os.geteuid() == 0:
        args += entry.get("root_args", [])
    return McpServerConfig(
        command=entry["command"], args=args, start_timeout=entry.get("start_timeout")
    )


def _require_program(name: str, entry: KnownServer, programs: list[str]) -> str:
    """Return the path of the first installed program."""
    for program in programs:
        path = which(program)
        if path is not None:
            return path
    remedy = entry["install"][programs[0]]
    raise InvalidInputError(f"{name} needs {programs[0]}: {remedy}", field="name")
