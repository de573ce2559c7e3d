"""Find the MCP servers of the user's configuration, of a project's files, and of plugins.

The format of `.mcp.json`, with `${VAR}` and `${VAR:-default}`, is that of Anthropic's command line
program; `foreign` reads the other files. A project's server is not used until the user trusts its
file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from acp_agent.config.json_files import member_line
from acp_agent.config.load import SIZE_LIMIT, decode, list_problems, read_text
from acp_agent.config.toml_errors import find_lines
from acp_agent.config.types import Config
from acp_agent.content import printable_line
from acp_agent.errors import ConfigError, InvalidInputError
from acp_agent.extensions.definitions.locations import (
    DefinitionFolders,
    any_plugin_folder,
    mcp_files,
    project_top,
)
from acp_agent.extensions.mcp.config import HttpServer, ProgramServer, ServerConfig
from acp_agent.extensions.mcp.foreign import ServerFormat, read_document, server_format
from acp_agent.extensions.mcp.tables import (
    PROJECT_KEY,
    VARIABLE,
    UnsetVariableError,
    build_server,
)
from acp_agent.extensions.project_settings import find_settings
from acp_agent.platform.descriptor_limit import describe_os_error
from acp_agent.platform.trusted_files import RefusedFileError, read_trusted, trusted_owners
from acp_agent.trust.store import Item, Trusts, folder_name, text_item

KEY = "mcp_servers"
_SHARED_FILE = ".mcp.json"  # the file that several programs share, with only servers
_MAX_SERVERS = 50  # servers of one file
_MAX_COMMAND_LINE = 120  # characters of a command line in the question about trust


class FoundServers(Struct, frozen=True, kw_only=True):
    """The servers that were found.

    Attributes:
        servers: those of plugins, the project and the user, including disabled ones.
        problems: errors with file, line and remedy, in one line of English each.
        notes: the same for what is no error: variables that are not set, and what only the file's
            own program supports.
        untrusted: files of the project whose current content the user does not trust.
    """

    servers: tuple[ProgramServer | HttpServer, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    untrusted: tuple[Item, ...] = ()


def find_servers(
    config: Config,
    config_file: Path,
    cwd: Path,
    environ: Mapping[str, str],
    *,
    folders: DefinitionFolders,
    trusts: Trusts,
) -> FoundServers:
    """Find the servers of a session in a folder, besides those of the client. Reads files.

    Args:
        trusts: returns whether the user trusts a file of the project.
    """
    problems: list[str] = []
    notes: list[str] = []
    user_servers: dict[str, ProgramServer | HttpServer] = {}
    if config.mcp_servers:
        user_servers |= _read_user_servers(config, config_file, environ, problems, notes)
    untrusted: list[Item] = []
    project_servers: dict[str, ProgramServer | HttpServer] = {}
    # The messages of the last file that names a server.
    failures: dict[str, str] = {}
    notes_by_name: dict[str, list[str]] = {}
    settings = find_settings(cwd, trusts)
    variables = {**environ, **settings.variables}
    for file, item, text, servers in _read_project(cwd, problems):
        if not trusts(item):
            untrusted.append(item)
            continue
        file_format = server_format(file)
        for name, entry in servers.items():
            unused: list[str] = []
            unset: list[str] = []
            try:
                server = _project_server(
                    file_format, name, entry, variables, unused=unused, unset=unset
                )
            except UnsetVariableError as error:
                if name not in project_servers:
                    notes_by_name[name] = [_located(file, text, name, str(error))]
            except (ConfigError, InvalidInputError) as error:
                if name not in project_servers:
                    failures[name] = _located(file, text, name, str(error))
            else:
                if server is not None:
                    is_off = file.name == _SHARED_FILE and name in settings.disabled_servers
                    project_servers[name] = _turned_off(server) if is_off else server
                if server is not None or unused:
                    failures.pop(name, None)
                    # A shared file has fields for several programs; unused ones are not reported.
                    reported = [] if file.name == _SHARED_FILE else unused
                    notes_by_name[name] = [
                        *(f"{file}: {file_format.key}.{printable_line(note)}" for note in reported),
                        *(_located(file, text, name, note) for note in unset),
                    ]
    problems += failures.values()
    notes += [note for server_notes in notes_by_name.values() for note in server_notes]
    plugins: dict[str, ProgramServer | HttpServer] = {}
    if any_plugin_folder(folders):
        from acp_agent.extensions.plugins.servers import plugin_servers  # noqa: PLC0415 - where there may be any

        plugins = {
            installed.name: installed
            for installed in plugin_servers(folders, environ, trusts, problems, notes)
        }
    return FoundServers(
        servers=tuple((plugins | project_servers | user_servers).values()),
        problems=tuple(problems),
        notes=tuple(notes),
        untrusted=tuple(untrusted),
    )


def _turned_off(server: ProgramServer | HttpServer) -> ProgramServer | HttpServer:
    """Return a server that the user can enable in a session."""
    return replace(server, options=replace(server.options, enabled=False))


def _project_server(
    file_format: ServerFormat,
    name: str,
    entry: object,
    environ: Mapping[str, str],
    *,
    unused: list[str],
    unset: list[str],
) -> ProgramServer | HttpServer | None:
    """Return a server of a project's file; None for one that only its own program can provide.

    Messages about unused parts are added to `unused`, those about variables to `unset`.

    Raises:
        ConfigError, InvalidInputError: the server is invalid.
    """
    if not isinstance(entry, dict):
        raise ConfigError(f"{file_format.key}.{name}: expected an object with a command or a url")
    try:
        table = file_format.translate(name, entry, unused)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{file_format.key}.{name}: {error}; fix the value") from None
    if table is None:
        return None
    return build_server(name, table, environ, field=file_format.key, source="project", notes=unset)


def _located(file: Path, text: str, name: str, why: str) -> str:
    """Return a message about a server of a project's file, with file and line."""
    key = server_format(file).key
    key_path = (key, name, *_error_key(why, key, name))
    if file.suffix == ".toml":
        line = find_lines(text, [key_path])[0] or 1
    else:
        line = member_line(text, key_path)
    return f"{file}:{line}: {printable_line(why)}"


def project_items(cwd: Path) -> list[Item]:
    """Return the trust items of a project's files that name servers."""
    return [item for _, item, _, _ in _read_project(cwd, [])]


def _read_user_servers(
    config: Config,
    file: Path,
    environ: Mapping[str, str],
    problems: list[str],
    notes: list[str],
) -> dict[str, ProgramServer | HttpServer]:
    servers: dict[str, ProgramServer | HttpServer] = {}
    messages: list[tuple[str, str, list[str]]] = []  # name, message, and the list it is added to
    for name, table in config.mcp_servers.items():
        unset: list[str] = []
        try:
            servers[name] = build_server(
                name, table, environ, field=KEY, source="user", notes=unset
            )
        except UnsetVariableError as error:
            unset.append(str(error))
        except (ConfigError, InvalidInputError) as error:
            messages.append((name, str(error), problems))
        messages += [(name, note, notes) for note in unset]
    if not messages:
        return servers
    try:
        text = read_text(file)
        wrong = list_problems(file, environ)
    except ConfigError:
        text, wrong = "", []
    lines = find_lines(
        text, [(KEY, name, *_error_key(why, KEY, name)) for name, why, _ in messages]
    )
    for (name, why, target), line in zip(messages, lines, strict=True):
        # A server table with a type error was read as an empty one, so the original error is shown.
        prefix = f" {KEY}.{name}"
        server_messages = [
            message for message in wrong if f"{prefix}:" in message or f"{prefix}." in message
        ]
        location = str(file) if line is None else f"{file}:{line}"
        target.extend(server_messages or [f"{location}: {printable_line(why)}"])
    return servers


def _read_project(
    cwd: Path, problems: list[str]
) -> Iterator[tuple[Path, Item, str, Mapping[str, Any]]]:
    """Yield each file of a project with its item, its text and its servers."""
    top = Path(os.path.realpath(project_top(cwd)))
    for file in mcp_files(cwd):
        try:
            raw = read_trusted(file, top, trusted_owners(top, cwd), limit=SIZE_LIMIT + 1)
            text = decode(file, raw)
            servers = _servers_in(file, text)
            if not servers and file.name != _SHARED_FILE:
                continue
        except (FileNotFoundError, NotADirectoryError):
            continue
        except RefusedFileError as error:
            problems.append(f"{file}: {error.why}")
        except OSError as error:
            why = describe_os_error(error)
            problems.append(f"cannot read {file} ({why}); check who may read it")
        except ConfigError as error:
            problems.append(str(error))
        else:
            if file.name != _SHARED_FILE:  # its other settings may change
                raw = json.dumps(servers, ensure_ascii=False, default=str).encode()
            item = text_item(
                "mcp", folder_name(top), file, raw, _describe_servers(server_format(file), servers)
            )
            yield file, item, text, servers


def _servers_in(file: Path, text: str) -> Mapping[str, Any]:
    """Return the servers that a file names. Raises ConfigError if the file cannot be read."""
    key = server_format(file).key
    if file.name != _SHARED_FILE:
        servers = read_document(file, text).get(key)
        servers = servers if isinstance(servers, dict) else {}
    else:
        servers = _shared_servers(file, text)
    if len(servers) > _MAX_SERVERS:
        raise ConfigError(f"{file}: more than {_MAX_SERVERS} servers; take some out")
    return servers


def _shared_servers(file: Path, text: str) -> Mapping[str, Any]:
    """Return the servers of a `.mcp.json`. Raises ConfigError if the file is invalid."""
    try:
        document = json.loads(text) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise ConfigError(f"{file}:{error.lineno}: not JSON: {error.msg}; fix the line") from None
    except RecursionError:
        raise ConfigError(f"{file}: nested too deeply; shorten it") from None
    except ValueError:  # raised by `int`
        raise ConfigError(f"{file}: a number has more digits than can be read") from None
    servers = document.get(PROJECT_KEY, {}) if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise ConfigError(
            f"{file}:1: expected an object with mcpServers; see the page on MCP servers"
        )
    return servers


def _describe_servers(file_format: ServerFormat, servers: Mapping[str, Any]) -> str:
    """Return the commands, addresses and variables of a file's servers, as text for the user."""
    variables: set[str] = set()
    lines = []
    for name, entry in servers.items():
        try:
            table = file_format.translate(name, entry, []) if isinstance(entry, dict) else None
        except (msgspec.ValidationError, ConfigError):
            table = None
        if table is None:
            variables.update(VARIABLE.findall(json.dumps(entry, default=str)))
            lines.append(printable_line(name)[:40])
            continue
        variables.update(table.env_vars, VARIABLE.findall(msgspec.json.encode(table).decode()))
        command_line = " ".join(filter(None, [table.command, *table.args])) or table.url
        lines.append(
            f"{printable_line(name)[:40]}: {printable_line(command_line)[:_MAX_COMMAND_LINE]}"
        )
    names = [f"variables: {', '.join(sorted(variables))}"] if variables else []
    return "; ".join([*names, *lines])


def _error_key(message: str, field: str, name: str) -> tuple[str, ...]:
    """Return the key below a server's table that a message is about."""
    prefix = f"{field}.{name}."
    key = message[len(prefix) :].partition(":")[0] if message.startswith(prefix) else ""
    return (key,) if key else ()


def first_of_each_name(servers: tuple[ServerConfig, ...]) -> tuple[ServerConfig, ...]:
    """Return the servers, only the first of each name."""
    by_name: dict[str, ServerConfig] = {}
    for server in servers:
        by_name.setdefault(server.name, server)
    return tuple(by_name.values())
