"""Read MCP servers from the files of other coding agents.

Sources: the JSON schema of Gemini's settings and the type declarations of opencode's SDK, both from
npm; codex's `config/src/mcp_types.rs`; the documentation of Cursor and VS Code.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from acp_agent.config.json_files import read_json
from acp_agent.config.mcp_types import McpServerConfig
from acp_agent.config.toml_errors import explain_syntax_error
from acp_agent.content import as_object
from acp_agent.errors import ConfigError, InvalidInputError
from acp_agent.extensions.definitions.locations import AGENT_TABLES
from acp_agent.extensions.mcp.tables import PROJECT_KEY, project_table
from acp_agent.platform.decoding import convert

Table = dict[str, Any]  # a server as in its program's file
Translate = Callable[[str, Table, list[str]], McpServerConfig | None]
_GEMINI_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_OPENCODE_VARIABLE = re.compile(r"\{env:([^}]+)\}")
_EDITOR_VARIABLE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)((?::-[^}]*)?)\}")
_FOLDER = re.compile(r"\$\{workspaceFolder(?::[^}]*)?\}")
_FOLDER_NAME = re.compile(r"\$\{workspaceFolderBasename\}")
_HOME = re.compile(r"\$\{userHome\}")
_SEPARATOR = re.compile(r"\$\{(?:pathSeparator|/)\}")
# Files of editors of the kind of Cursor that are in no folder of their project.
_WINDSURF = frozenset({"windsurf", "windsurf-next"})


class ServerFormat(Struct, frozen=True):
    """The format of a program's file: the key of its servers, and how to translate one."""

    key: str
    translate: Translate


def server_format(file: Path) -> ServerFormat:
    """Return the format of a file, by its name and its folder's name."""
    folder = file.parent.name
    if file.suffix == ".toml":
        return ServerFormat("mcp_servers", _translate_codex)
    if file.name in AGENT_TABLES:
        return ServerFormat("mcp", _translate_opencode)
    if folder == ".zed" or (folder.lower() == "zed" and file.name == "settings.json"):
        return ServerFormat("context_servers", _translate_zed)
    if folder in {".vscode", ".cursor", ".roo", "User"} or folder in _WINDSURF:
        key = "servers" if folder in {".vscode", "User"} else PROJECT_KEY
        return ServerFormat(key, partial(_translate_editor, file.parent.parent))
    if folder == ".gemini":
        return ServerFormat(PROJECT_KEY, _translate_gemini)
    return ServerFormat(PROJECT_KEY, _translate_claude)


def read_document(file: Path, text: str) -> Mapping[str, Any]:
    """Return the content of a settings file.

    Raises:
        ConfigError: it is not TOML or JSON with comments, or not an object; the message has the
            line.
    """
    document: object
    if file.suffix == ".toml":
        try:
            document = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            line, why = explain_syntax_error(text, error)
            raise ConfigError(f"{file}:{line or 1}: not TOML ({why}); fix the line") from None
    else:
        try:
            document = read_json(text.encode())
        except InvalidInputError as error:
            raise ConfigError(f"{file}: {error}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{file}:1: expected an object; see the page on MCP servers")
    if file.parent.name == ".gemini":
        return {**document, PROJECT_KEY: _gemini_servers(document)}
    return document


def _gemini_servers(document: Mapping[str, Any]) -> Table:
    """Return the servers that `mcp.allowed` and `mcp.excluded` of Gemini's settings leave."""
    selection = as_object(document.get("mcp"))
    servers = dict(as_object(document.get(PROJECT_KEY)))
    if isinstance(allowed := selection.get("allowed"), list):
        servers = {name: server for name, server in servers.items() if name in allowed}
    if isinstance(excluded := selection.get("excluded"), list):
        servers = {name: server for name, server in servers.items() if name not in excluded}
    return servers


def _map_texts(value: object, replace: Callable[[str], str]) -> object:
    """Return a value with `replace` applied to all texts in it."""
    if isinstance(value, str):
        return replace(value)
    if isinstance(value, list):
        return [_map_texts(item, replace) for item in value]
    if isinstance(value, dict):
        return {key: _map_texts(item, replace) for key, item in value.items()}
    return value


def _server(table: Table) -> McpServerConfig:
    """Return a server from our fields; fields without a value are left out."""
    filled = {key: value for key, value in table.items() if value is not None}
    return convert(filled, McpServerConfig)


def _translate_claude(name: str, table: Table, notes: list[str]) -> McpServerConfig | None:
    if "oauth" in table or "headersHelper" in table:
        notes.append(f"{name}: its way to log in is not taken over; see acp-agent mcp login")
    return project_table(name, table)


def _translate_zed(name: str, table: Table, notes: list[str]) -> McpServerConfig | None:
    if "command" not in table and "url" not in table:
        notes.append(f"{name}: an extension of its editor starts it, which is not supported")
        return None
    command = table.get("command")
    if isinstance(command, dict):
        table = {**table, **command, "command": command.get("path")}
    return project_table(name, table)


def _translate_editor(
    project: Path, name: str, table: Table, notes: list[str]
) -> McpServerConfig | None:
    if "${input:" in str(table):
        notes.append(f"{name}: values that its program asks for are not; use a variable")
        return None
    if "envFile" in table:
        notes.append(f"{name}: the variables of its envFile are not read; set them")

    def expand(text: str) -> str:
        text = _EDITOR_VARIABLE.sub(r"${\1\2}", text)
        text = _FOLDER.sub(lambda _: str(project), text)
        text = _FOLDER_NAME.sub(lambda _: project.name, text)
        return _SEPARATOR.sub("/", _HOME.sub("${HOME}", text))

    if isinstance(address := table.get("serverUrl"), str) and "url" not in table:
        table = {**table, "url": address}
    server = project_table(name, _map_texts(table, expand))
    denied = table.get("disabledTools")
    if server is None or not isinstance(denied, list):
        return server
    names = [tool for tool in denied if isinstance(tool, str)]
    return msgspec.structs.replace(server, denied_tools=names)


def _translate_gemini(name: str, table: Table, notes: list[str]) -> McpServerConfig | None:
    if "tcp" in table:
        notes.append(f"{name}: servers on a socket of their own are not supported")
        return None
    if table.get("trust"):
        notes.append(f"{name}: that its tools run unasked is not taken over")

    def expanded(key: str) -> object:
        return _map_texts(table.get(key), lambda text: _GEMINI_VARIABLE.sub(r"${\1}", text))

    streamed = table.get("httpUrl")
    return _server(
        {
            "type": "http" if streamed else table.get("type"),
            "url": expanded("httpUrl" if streamed else "url"),
            **{key: expanded(key) for key in ("command", "args", "env", "cwd", "headers")},
            "call_timeout": _seconds(table.get("timeout")),
            "allowed_tools": table.get("includeTools"),
            "denied_tools": table.get("excludeTools"),
        }
    )


def _translate_opencode(name: str, table: Table, notes: list[str]) -> McpServerConfig | None:
    if "type" not in table:  # it only enables or disables a server of another file
        return None
    if "{file:" in str(table):
        notes.append(f"{name}: a value that is in a file is not taken over")

    def expand(value: object) -> object:
        return _map_texts(value, lambda text: _OPENCODE_VARIABLE.sub(r"${\1}", text))

    command = expand(table.get("command"))
    words = command if isinstance(command, list) else []
    local = table.get("type") == "local"
    return _server(
        {
            "command": words[0] if local and words else None,
            "args": words[1:] if local else None,
            "env": (expand(table.get("environment")) or None) if local else None,
            "cwd": expand(table.get("cwd")),
            "url": None if local else expand(table.get("url")),
            "headers": None if local else (expand(table.get("headers")) or None),
            "enabled": table.get("enabled"),
            "start_timeout": _seconds(table.get("timeout")),
        }
    )


def _translate_codex(_name: str, table: Table, _notes: list[str]) -> McpServerConfig | None:
    headers = dict(as_object(table.get("http_headers")))
    headers |= {
        key: f"${{{variable}}}"
        for key, variable in as_object(table.get("env_http_headers")).items()
    }
    if token := table.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{token}}}"
    names = table.get("env_vars")
    variables = [
        entry.get("name") if isinstance(entry, dict) else entry
        for entry in (names if isinstance(names, list) else ())
    ]
    return _server(
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
