"""Read the tables that describe MCP servers in a configuration file and in `.mcp.json`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from acp_agent.config.mcp_types import McpServerConfig
from acp_agent.config.secrets import is_secret_name
from acp_agent.content import printable_line
from acp_agent.errors import ConfigError
from acp_agent.extensions.mcp.checks import make_http_server, make_program_server
from acp_agent.extensions.mcp.config import HttpServer, ProgramServer, ServerOptions
from acp_agent.platform.decoding import convert

PROJECT_KEY = "mcpServers"
_MAX_NAME_LENGTH = 100  # characters

VARIABLE = re.compile(r"\$\{([^}]+)\}")
_TYPES = {
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "http-stream": "http",
    "local": "stdio",
}
_PROJECT_FIELDS = frozenset({"type", "command", "args", "env", "cwd", "url", "headers", "enabled"})


def project_table(name: str, entry: object) -> McpServerConfig | None:
    """Return a server of a `.mcp.json`; None for one that only its own program can provide.

    Unknown fields are ignored: the file is shared with other programs.

    Raises:
        ConfigError: a field has the wrong type.
    """
    field = f"{PROJECT_KEY}.{name}"
    if not isinstance(entry, dict):
        raise ConfigError(f"{field}: expected an object with a command or a url")
    table = {key: entry[key] for key in entry if key in _PROJECT_FIELDS and entry[key] is not None}
    kind = table.get("type")
    if kind == "sdk":
        return None
    if isinstance(entry.get("disabled"), bool):
        table["enabled"] = not entry["disabled"]
    if isinstance(kind, str):
        table["type"] = _TYPES.get(kind, kind)
    try:
        return convert(table, McpServerConfig)
    except msgspec.ValidationError as error:
        why = str(error).replace(" - at `$", f" at `{field}")
        raise ConfigError(f"{field}: {why}; fix the value") from None


class UnsetVariableError(ConfigError):
    """A server needs a variable of the environment that is not set."""


def build_server(
    name: str,
    table: McpServerConfig,
    environ: Mapping[str, str],
    *,
    field: str,
    source: Literal["user", "project"],
    notes: list[str] | None = None,
) -> ProgramServer | HttpServer:
    """Return a server with its variables expanded.

    Variables of its environment and headers are left out if what they are made from is not set:
    most servers work without them, or ask for a login.

    Args:
        field: the key of the table of all servers, for errors.
        notes: what is left out is added to this list, in one line of English each.

    Raises:
        UnsetVariableError: the command, an argument or the address has a variable that is not set.
        ConfigError, InvalidInputError: the server is invalid; the message names the key.
    """
    field = f"{field}.{name}"
    if not name.strip() or not name.isprintable() or len(name) > _MAX_NAME_LENGTH:
        raise ConfigError(f"{field}: the name cannot be shown; give it another")
    if bool(table.command.strip()) == bool(table.url.strip()):
        raise ConfigError(f"{field}: it needs either a command or a url; give it one of them")
    kind = table.type or ("stdio" if table.command else "http")
    if (kind == "stdio") != bool(table.command):
        raise ConfigError(f"{field}.type: {kind} does not fit the rest; correct it or take it out")
    secrets: list[str] = []

    def expand(key: str, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            variable, has_default, default = match[1].partition(":-")
            setting = environ.get(variable)
            if setting is None and not has_default:
                raise UnsetVariableError(
                    f"{field}.{key}: the variable {printable_line(variable)} is not set; set it, "
                    "or give it a default with :- behind its name"
                )
            if setting is not None and is_secret_name(variable):
                secrets.append(setting)
            return default if setting is None else setting

        return VARIABLE.sub(value, text)

    def expand_all(key: str, values: Mapping[str, str]) -> list[tuple[str, str]]:
        entries = []
        for entry_key, text in values.items():
            try:
                entries.append((entry_key, expand(key, text)))
            except UnsetVariableError as error:
                if notes is not None:
                    notes.append(f"{error}; without it {printable_line(entry_key)} is left out")
        return entries

    def options() -> ServerOptions:
        return ServerOptions(
            source=source,
            enabled=table.enabled,
            allowed=None if table.allowed_tools is None else tuple(table.allowed_tools),
            denied=tuple(table.denied_tools),
            start_timeout=table.start_timeout,
            call_timeout=table.call_timeout,
            secrets=tuple(dict.fromkeys(secrets)),
            # A project must not decide what its server can reach, nor spend the user's money.
            sampling=source == "user" and table.sampling,
            sandbox=None if source == "project" else table.sandbox,
            hosts=() if source == "project" else tuple(table.hosts),
        )

    if kind != "stdio":
        server = make_http_server(
            field,
            name,
            expand("url", table.url),
            expand_all("headers", table.headers),
            sse=kind == "sse",
        )
        return msgspec.structs.replace(server, options=options())
    env_variables = [(item, environ[item]) for item in table.env_vars if item in environ]
    program_server = make_program_server(
        field,
        name,
        expand("command", table.command),
        [expand("args", item) for item in table.args],
        [*env_variables, *expand_all("env", table.env)],
    )
    folder = expand("cwd", table.cwd)
    return msgspec.structs.replace(
        program_server, cwd=str(Path(folder).expanduser()) if folder else "", options=options()
    )
