"""The MCP servers of other coding agents in our terms.

Sources: the JSON schema of Gemini's settings and the type declarations of opencode's SDK, both from
npm; codex's `config/src/mcp_types.rs`; `.mcp.json` as `acp_agent.extensions.mcp.configured` has it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from acp_agent.cli.policy.imports.translation import read_settings
from acp_agent.config.load import read_text
from acp_agent.config.mcp_types import McpServerConfig
from acp_agent.config.secrets import is_secret_name
from acp_agent.errors import ConfigError, InvalidInputError
from acp_agent.extensions.mcp.checks import web
from acp_agent.extensions.mcp.tables import project_table

Table = dict[str, Any]  # a server as its program's file has it
_PLAIN_HEADERS = frozenset({"accept", "content-type", "user-agent"})
_NO_LETTER = re.compile(r"[^A-Za-z0-9]+")
_GEMINI_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_OPENCODE_VARIABLE = re.compile(r"\{env:([^}]+)\}")


class Foreign(Struct, frozen=True, kw_only=True):
    """What a file comes to: servers by name, and what could not be taken over, with the reason."""

    file: Path
    servers: dict[str, McpServerConfig]
    notes: list[str]


def places(folder: Path, home: Path, environ: Mapping[str, str]) -> list[Path]:
    """Return where other agents keep servers, of the user and of a folder; those that exist."""
    claude = environ.get("CLAUDE_CONFIG_DIR")
    codex = Path(environ.get("CODEX_HOME") or home / ".codex")
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [
        Path(claude) / ".claude.json" if claude else home / ".claude.json",
        home / ".claude" / "settings.json",
        home / ".gemini" / "settings.json",
        *(config / "opencode" / name for name in _OPENCODE),
        codex / "config.toml",
        folder / ".mcp.json",
        folder / ".claude" / "settings.json",
        folder / ".gemini" / "settings.json",
        *(folder / name for name in _OPENCODE),
        *(folder / ".opencode" / name for name in _OPENCODE),
        folder / ".codex" / "config.toml",
    ]
    return [file for file in dict.fromkeys(files) if file.is_file()]


_OPENCODE = ("opencode.json", "opencode.jsonc")


def read_foreign(file: Path, folder: Path) -> Foreign:
    """Read the servers of a file, by its name and its folder's.

    Args:
        file: of another agent.
        folder: the project, whose own servers a user's file may have.

    Raises:
        ConfigError, InvalidInputError: it cannot be read.
    """
    translate: Callable[[str, Table, list[str]], McpServerConfig | None]
    if file.suffix == ".toml":
        text = read_text(file)
        try:
            tables = tomllib.loads(text).get("mcp_servers", {})
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise ConfigError(f"{file}: not TOML: {error}; fix the line") from None
        translate = _of_codex
    else:
        try:
            document = read_settings(file)
        except InvalidInputError as error:
            raise InvalidInputError(f"{file}: {error}", field="path") from None
        if file.name in _OPENCODE or isinstance(document.get("mcp"), dict):
            tables, translate = document.get("mcp", {}), _of_opencode
        else:
            tables = document.get("mcpServers", {})
            projects = document.get("projects")
            own = projects.get(str(folder)) if isinstance(projects, dict) else None
            local = own.get("mcpServers") if isinstance(own, dict) else None
            tables = {**_object(tables), **_object(local)}
            translate = _of_gemini if file.parent.name == ".gemini" else _of_claude
    found = Foreign(file=file, servers={}, notes=[])
    for name, given in _object(tables).items():
        if not isinstance(given, dict):
            found.notes.append(f"{name}: expected a table")
            continue
        try:
            server = translate(name, given, found.notes)
            if server is not None and server.url and "${" not in server.url:
                web("mcp_servers", name, server.url, [])
        except (ConfigError, InvalidInputError, msgspec.ValidationError) as error:
            found.notes.append(f"{name}: {error}")
            continue
        if server is not None:
            found.servers[name] = _without_secrets(name, server, found.notes)
    return found


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _made(table: Table) -> McpServerConfig:
    """Return a server of our fields; those without a value are left out."""
    filled = {key: value for key, value in table.items() if value is not None}
    return msgspec.convert(filled, McpServerConfig, strict=True)


def _of_claude(name: str, table: Table, notes: list[str]) -> McpServerConfig | None:
    if "oauth" in table or "headersHelper" in table:
        notes.append(f"{name}: its way to log in is not taken over; see acp-agent mcp login")
    return project_table(name, table)


def _of_gemini(name: str, table: Table, notes: list[str]) -> McpServerConfig | None:
    if "tcp" in table:
        notes.append(f"{name}: servers on a socket of their own are not supported")
        return None
    if table.get("trust"):
        notes.append(f"{name}: that its tools run unasked is not taken over")

    def named(value: object) -> object:
        if isinstance(value, str):
            return _GEMINI_VARIABLE.sub(r"${\1}", value)
        if isinstance(value, list):
            return [named(one) for one in value]
        if isinstance(value, dict):
            return {key: named(one) for key, one in value.items()}
        return value

    streamed = table.get("httpUrl")
    return _made(
        {
            "type": "http" if streamed else table.get("type"),
            "url": named(streamed or table.get("url")),
            **{key: named(table.get(key)) for key in ("command", "args", "env", "cwd", "headers")},
            "call_timeout": _seconds(table.get("timeout")),
            "allowed_tools": table.get("includeTools"),
            "denied_tools": table.get("excludeTools"),
        }
    )


def _of_opencode(name: str, table: Table, notes: list[str]) -> McpServerConfig | None:
    def named(value: object) -> object:
        if not isinstance(value, str):
            return value
        if "{file:" in value:
            notes.append(f"{name}: a value that is in a file is not taken over")
        return _OPENCODE_VARIABLE.sub(r"${\1}", value)

    def all_named(value: object) -> object:
        return {key: named(one) for key, one in _object(value).items()} or None

    if "type" not in table:  # it only switches a server of another file on or off
        return None
    command = table.get("command")
    words = [named(one) for one in command] if isinstance(command, list) else []
    local = table.get("type") == "local"
    return _made(
        {
            "command": words[0] if local and words else None,
            "args": words[1:] if local else None,
            "env": all_named(table.get("environment")) if local else None,
            "cwd": named(table.get("cwd")),
            "url": None if local else named(table.get("url")),
            "headers": None if local else all_named(table.get("headers")),
            "enabled": table.get("enabled"),
            "start_timeout": _seconds(table.get("timeout")),
        }
    )


def _of_codex(name: str, table: Table, notes: list[str]) -> McpServerConfig | None:
    del name, notes
    headers = dict(_object(table.get("http_headers")))
    headers |= {
        key: f"${{{variable}}}" for key, variable in _object(table.get("env_http_headers")).items()
    }
    if token := table.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{token}}}"
    given = table.get("env_vars")
    variables = [
        one.get("name") if isinstance(one, dict) else one
        for one in (given if isinstance(given, list) else ())
    ]
    return _made(
        {
            **{key: table.get(key) for key in ("command", "args", "env", "cwd", "url", "enabled")},
            "env_vars": variables or None,
            "headers": headers or None,
            "allowed_tools": table.get("enabled_tools"),
            "denied_tools": table.get("disabled_tools"),
            "start_timeout": table.get("startup_timeout_sec")
            or _seconds(table.get("startup_timeout_ms")),
            "call_timeout": table.get("tool_timeout_sec"),
        }
    )


def _seconds(milliseconds: object) -> float | None:
    if not isinstance(milliseconds, int | float) or isinstance(milliseconds, bool):
        return None
    return milliseconds / 1_000 if milliseconds > 0 else None


def _without_secrets(name: str, server: McpServerConfig, notes: list[str]) -> McpServerConfig:
    """Return a server that gets its secrets from variables: none is copied to our file."""
    env, headers, variables = {}, {}, list(server.env_vars)
    for key, value in server.env.items():
        if is_secret_name(key) and value and "${" not in value:
            variables.append(key)
            notes.append(f"{name}: the value of {key} is not copied; set it in your environment")
        else:
            env[key] = value
    for key, value in server.headers.items():
        if key.lower() in _PLAIN_HEADERS or "${" in value:
            headers[key] = value
            continue
        variable = _NO_LETTER.sub("_", f"{name}_{key}").upper()
        headers[key] = f"${{{variable}}}"
        notes.append(f"{name}: the header {key} is not copied; set {variable} to its value")
    return msgspec.structs.replace(
        server, env=env, headers=headers, env_vars=list(dict.fromkeys(variables))
    )
