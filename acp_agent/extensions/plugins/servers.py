"""The MCP servers of plugins: `mcp.json` of the standard, and `.mcp.json` of other programs.

Source: Agent Plugins 1.0.0 (https://agent-plugins.org), sections 7.2 and 9. An error in one server
does not affect the others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from acp_agent.config.network_addresses import is_loopback
from acp_agent.content import printable_line
from acp_agent.errors import ConfigError, InvalidInputError
from acp_agent.extensions.definitions.locations import DefinitionFolders
from acp_agent.extensions.mcp.checks import make_http_server, make_program_server
from acp_agent.extensions.mcp.config import HttpServer, ProgramServer, ServerOptions
from acp_agent.extensions.mcp.tables import UnsetVariableError, build_server, project_table
from acp_agent.extensions.plugins.find import find_plugins
from acp_agent.extensions.plugins.manifest import MCP_SCHEMA
from acp_agent.extensions.plugins.package import Part, Plugin
from acp_agent.platform.decoding import convert
from acp_agent.platform.posix import make_private_folder
from acp_agent.trust.store import Trusts

_KEY = "mcpServers"
_MAX_SERVERS = 50  # servers of one file
_RESERVED = ("PLUGIN_ROOT", "PLUGIN_DATA")
_PLACEHOLDER = re.compile(r"\$\{(PLUGIN_ROOT|PLUGIN_DATA)\}")
_Text = Annotated[str, Meta(min_length=1)]


class _Stdio(Struct, frozen=True, forbid_unknown_fields=True, tag="stdio"):
    command: _Text
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None

    @property
    def folder(self) -> str:
        return "${PLUGIN_ROOT}" if self.cwd is None else self.cwd


class _Web(Struct, frozen=True, forbid_unknown_fields=True, tag="streamable-http"):
    url: _Text
    headers: dict[str, str] = {}


class _Sse(Struct, frozen=True, forbid_unknown_fields=True, tag="sse"):
    url: _Text
    headers: dict[str, str] = {}


def plugin_servers(
    folders: DefinitionFolders,
    environ: Mapping[str, str],
    trusts: Trusts,
    problems: list[str],
    notes: list[str],
) -> Iterator[ProgramServer | HttpServer]:
    """Yield the servers of the plugins of a session. Reads files, and creates data folders.

    Args:
        trusts: returns whether the user trusts an item of the project.
        problems: errors are added to this list, in one line of English each.
        notes: what is left out is added to this list, because a variable is not set.
    """
    for plugin in find_plugins(folders, trusts).plugins:
        for part in plugin.servers:
            try:
                servers = _servers_in(plugin, part)
            except ConfigError as error:
                problems.append(printable_line(str(error)))
                continue
            for name, entry in servers.items():
                quoted = printable_line(name)[:80]
                unset: list[str] = []
                try:
                    server = (
                        _portable(plugin, name, entry)
                        if plugin.portable
                        else _foreign(plugin, name, entry, environ, unset)
                    )
                except UnsetVariableError as error:
                    unset.append(str(error))
                except (ConfigError, InvalidInputError, OSError) as error:
                    problems.append(f"{part.file}: {quoted}: {printable_line(str(error))}")
                else:
                    if server is not None:
                        yield server
                notes += [f"{part.file}: {quoted}: {printable_line(note)}" for note in unset]


def _servers_in(plugin: Plugin, part: Part) -> Mapping[str, Any]:
    content = part.content
    if plugin.portable:
        schema = content.get("$schema")
        if schema != MCP_SCHEMA:  # the version must be that of the manifest
            raise ConfigError(f"{part.file}: $schema: expected {MCP_SCHEMA}, so it is not used")
        if unknown := sorted(content.keys() - {"$schema", _KEY}):
            names = printable_line(", ".join(unknown), 200)
            raise ConfigError(f"{part.file}: {names}: unknown, so it is not used; take it out")
    servers = content.get(_KEY)
    if not isinstance(servers, dict):
        raise ConfigError(f"{part.file}: {_KEY}: expected an object, so it is not used")
    if len(servers) > _MAX_SERVERS:
        raise ConfigError(f"{part.file}: more than {_MAX_SERVERS} servers; take some out")
    return servers


def _foreign(
    plugin: Plugin, name: str, entry: object, environ: Mapping[str, str], unset: list[str]
) -> ProgramServer | HttpServer | None:
    table = project_table(name, entry)
    if table is None:
        return None
    built = build_server(
        name,
        table,
        {**environ, **plugin.variables},
        field=_KEY,
        source="user" if plugin.source == "user" else "project",
        notes=unset,
    )
    return _with_plugin(plugin, built)


def _portable(plugin: Plugin, name: str, entry: object) -> ProgramServer | HttpServer:
    field = f"{_KEY}.{name}"
    if not name.strip() or not name.isprintable():
        raise ConfigError(f"{field}: the name cannot be shown; give it another")
    try:
        config = convert(entry, _Stdio | _Web | _Sse)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{error}; fix the value") from None
    options = ServerOptions(source="user" if plugin.source == "user" else "project")
    if isinstance(config, _Stdio):
        if reserved := [key for key in config.env if key in _RESERVED]:
            raise ConfigError(f"env: {reserved[0]} is set by this program; take it out")
        server = make_program_server(
            field,
            name,
            _command(plugin, config.command),
            [_expand(plugin, text) for text in config.args],
            [(key, _expand(plugin, text)) for key, text in config.env.items()],
        )
        folder = _folder(plugin, config.folder)
        return _with_plugin(plugin, replace(server, cwd=str(folder), options=options))
    _require_address(config.url)
    lowered = [key.lower() for key in config.headers]
    if len(set(lowered)) < len(lowered):
        raise ConfigError("headers: one is there twice; take one out")
    http_server = make_http_server(
        field, name, config.url, list(config.headers.items()), sse=isinstance(config, _Sse)
    )
    return _with_plugin(plugin, replace(http_server, options=options))


def _with_plugin(plugin: Plugin, server: ProgramServer | HttpServer) -> ProgramServer | HttpServer:
    """Return a server as a part of its plugin, with its data folder."""
    server = replace(server, name=plugin.full_name(server.name))
    if not isinstance(server, ProgramServer):
        return server
    make_private_folder(plugin.data)
    return replace(
        server,
        env=(*server.env, *plugin.variables.items()),  # the last one of a name wins
        options=replace(server.options, data=str(plugin.data), plugin=str(plugin.root)),
    )


def _expand(plugin: Plugin, text: str) -> str:
    """Return a text with the two placeholders expanded once, and nothing else (section 9.2)."""
    return _PLACEHOLDER.sub(lambda match: plugin.variables[match[1]], text)


def _command(plugin: Plugin, command: str) -> str:
    """Return a plain command name, or the path of a file of the plugin."""
    if not command.startswith("./"):
        if "/" in command or "\\" in command:
            raise ConfigError(
                f"command: expected a name, or a path that begins with ./, found "
                f"{printable_line(command, 80)}"
            )
        return command
    return str(_inside(plugin.root, plugin.root / command, "command"))


def _folder(plugin: Plugin, cwd: str) -> Path:
    for placeholder, top in (("${PLUGIN_ROOT}", plugin.root), ("${PLUGIN_DATA}", plugin.data)):
        if cwd == placeholder or cwd.startswith(f"{placeholder}/"):
            make_private_folder(plugin.data)
            real = Path(os.path.realpath(top))
            return _inside(real, Path(f"{real}{_expand(plugin, cwd[len(placeholder) :])}"), "cwd")
    if cwd.startswith("./"):
        return _inside(plugin.root, Path(f"{plugin.root}/{_expand(plugin, cwd)}"), "cwd")
    raise ConfigError(
        "cwd: expected a path that begins with ./, ${PLUGIN_ROOT} or ${PLUGIN_DATA}, found "
        f"{printable_line(cwd, 80)}"
    )


def _inside(top: Path, path: Path, field: str) -> Path:
    """Return a path if it stays in a folder after links are resolved; else raise ConfigError."""
    if "\0" in str(path) or not Path(os.path.realpath(path)).is_relative_to(top):
        raise ConfigError(f"{field}: {printable_line(str(path), 200)} leads out of {top}")
    return path


def _require_address(url: str) -> None:
    try:
        url_parts = urlsplit(url)
        host = url_parts.hostname or ""
    except ValueError:
        raise ConfigError("url: it is no http or https address") from None
    if url_parts.username is not None or url_parts.password is not None or "#" in url:
        raise ConfigError("url: it has a user or a fragment; take it out")
    is_local_host = host == "localhost" or (host.replace(".", "").isdigit() or ":" in host)
    if url_parts.scheme == "http" and not (is_local_host and is_loopback(host)):
        raise ConfigError("url: http is only for this computer; use https")
