"""`acp-agent mcp import`: import the MCP servers of other coding agents, without secrets."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import tomlkit
from msgspec import Struct

from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.mcp.editing import save, toml_table
from acp_agent.cli.output import FAILED, complain, confirm, say
from acp_agent.cli.user_config import load_user_config
from acp_agent.config.load import read_text
from acp_agent.config.mcp_types import McpServerConfig
from acp_agent.config.secrets import is_secret_name
from acp_agent.content import as_object
from acp_agent.errors import ConfigError, InvalidInputError
from acp_agent.extensions.definitions.locations import AGENT_TABLES, PROJECT_TABLES
from acp_agent.extensions.mcp.checks import make_http_server
from acp_agent.extensions.mcp.configured import KEY
from acp_agent.extensions.mcp.foreign import read_document, server_format

_PUBLIC_HEADERS = frozenset({"accept", "content-type", "user-agent"})
_NOT_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]+")


class ForeignServers(Struct, frozen=True, kw_only=True):
    """The content of a file: servers by name, and notes on what was not imported."""

    file: Path
    servers: dict[str, McpServerConfig]
    notes: list[str]


def find_files(folder: Path, home: Path, environ: Mapping[str, str]) -> list[Path]:
    """Return the existing configuration files of other agents, of the user and of a folder."""
    claude = environ.get("CLAUDE_CONFIG_DIR")
    codex = Path(environ.get("CODEX_HOME") or home / ".codex")
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [
        Path(claude) / ".claude.json" if claude else home / ".claude.json",
        home / ".claude" / "settings.json",
        home / ".gemini" / "settings.json",
        home / ".cursor" / "mcp.json",
        home / ".copilot" / "mcp-config.json",
        *(home / ".codeium" / name / "mcp_config.json" for name in ("windsurf", "windsurf-next")),
        *_editor_files(home, config),
        *(config / "opencode" / name for name in AGENT_TABLES),
        codex / "config.toml",
        folder / ".mcp.json",
        folder / ".claude" / "settings.json",
        folder / ".gemini" / "settings.json",
        folder / ".cursor" / "mcp.json",
        folder / ".vscode" / "mcp.json",
        folder / ".roo" / "mcp.json",
        folder / ".zed" / "settings.json",
        *(folder / name for name in PROJECT_TABLES),
        folder / ".codex" / "config.toml",
    ]
    return [file for file in dict.fromkeys(files) if file.is_file()]


def _editor_files(home: Path, config: Path) -> Iterator[Path]:
    """Yield the files of programs that have their folder where the system has settings."""
    for base in (config, home / "Library" / "Application Support"):
        yield base / "Claude" / "claude_desktop_config.json"
        for product in ("Code", "Code - Insiders", "VSCodium"):
            yield base / product / "User" / "mcp.json"
        for product in ("zed", "Zed"):
            yield base / product / "settings.json"


def read_foreign(file: Path, folder: Path) -> ForeignServers:
    """Read the servers of a file; its path determines the format.

    Args:
        folder: the project; a user's file may have servers for it.

    Raises:
        ConfigError: there is no such file, or it cannot be read.
    """
    if not file.exists():
        raise ConfigError(f"file not found: {file}")
    document = read_document(file, read_text(file))
    form = server_format(file)
    if isinstance(document.get("mcp"), dict) and form.key not in document:
        form = server_format(file.with_name(AGENT_TABLES[0]))
    projects = as_object(document.get("projects"))
    folders = (as_object(projects.get(str(parent))) for parent in (folder, *folder.parents))
    project = next((settings for settings in folders if settings.get(form.key)), {})
    disabled = project.get("disabledMcpServers")
    foreign = ForeignServers(file=file, servers={}, notes=[])
    if document.get(form.key) is not None and not isinstance(document[form.key], dict):
        foreign.notes.append(f"{form.key}: expected a table")
    servers = {**as_object(document.get(form.key)), **as_object(project.get(form.key))}
    for name, entry in servers.items():
        if not isinstance(entry, dict):
            foreign.notes.append(f"{name}: expected a table")
            continue
        try:
            server = form.translate(name, entry, foreign.notes)
            if server is not None and server.url and "${" not in server.url:
                make_http_server("mcp_servers", name, server.url, [])
        except (ConfigError, InvalidInputError, msgspec.ValidationError) as error:
            foreign.notes.append(f"{name}: {error}")
            continue
        if server is not None and isinstance(disabled, list) and name in disabled:
            server = msgspec.structs.replace(server, enabled=False)
        if server is not None:
            foreign.servers[name] = _without_secrets(name, server, foreign.notes)
    return foreign


def _without_secrets(name: str, server: McpServerConfig, notes: list[str]) -> McpServerConfig:
    """Return the server with secrets replaced by variables; none is copied to our file."""
    env, headers, variables = {}, {}, list(server.env_vars)
    for key, value in server.env.items():
        if is_secret_name(key) and value and "${" not in value:
            variables.append(key)
            notes.append(f"{name}: the value of {key} is not copied; set it in your environment")
        else:
            env[key] = value
    for key, value in server.headers.items():
        if key.lower() in _PUBLIC_HEADERS or "${" in value:
            headers[key] = value
            continue
        variable = _NOT_ALPHANUMERIC.sub("_", f"{name}_{key}").upper()
        headers[key] = f"${{{variable}}}"
        notes.append(f"{name}: the header {key} is not copied; set {variable} to its value")
    return msgspec.structs.replace(
        server, env=env, headers=headers, env_vars=list(dict.fromkeys(variables))
    )


def import_servers(options: argparse.Namespace) -> int:
    """Show the servers of other agents, and save them after confirmation; return the exit status.

    Raises:
        ConfigError, InvalidInputError: the configuration cannot be read or written.
    """
    setup = load_user_config()
    failed = False
    new: dict[str, McpServerConfig] = {}
    files = options.path or find_files(options.cwd, Path.home(), setup.environ)
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
    if confirm(translate("Save these servers? [y/N] "), "--save", given=options.save):
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
