"""The MCP servers of the user's configuration, of a project's `.mcp.json`, and of plugins.

The format of `.mcp.json`, with `${VAR}` and `${VAR:-default}`, is that of Anthropic's command line
program. The project's file is inert until the user trusts it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from acp_agent.config.json_lines import member_line
from acp_agent.config.load import SIZE_LIMIT, decode, list_problems, read_text
from acp_agent.config.toml_errors import find_lines
from acp_agent.config.types import Config
from acp_agent.content import printable_line
from acp_agent.errors import ConfigError, InvalidInputError
from acp_agent.extensions.definitions.locations import (
    DefinitionFolders,
    any_plugin_folder,
    find_repository,
    mcp_files,
)
from acp_agent.extensions.mcp.config import HttpServer, ProgramServer, ServerConfig
from acp_agent.extensions.mcp.tables import PROJECT_KEY, VARIABLE, build_server, project_table
from acp_agent.platform.descriptor_limit import describe_os_error
from acp_agent.platform.trusted_files import RefusedFileError, read_trusted, trusted_owners
from acp_agent.trust.items import Item, Trusts, folder_name, text_item

KEY = "mcp_servers"
_MOST = 50  # servers of one file
_SHOWN = 120  # characters of a command line in the question whether to trust it


class FoundServers(Struct, frozen=True, kw_only=True):
    """What there is; the first of a name is the one that counts.

    Attributes:
        servers: those of plugins, the project's and the user's; those that are not enabled too.
        problems: what is wrong, with file and line and what to do, in one line of English each.
        untrusted: files of the project that the user does not trust as they are.
    """

    servers: tuple[ProgramServer | HttpServer, ...] = ()
    problems: tuple[str, ...] = ()
    untrusted: tuple[Item, ...] = ()


def find_servers(
    config: Config,
    config_file: Path,
    cwd: Path,
    environ: Mapping[str, str],
    *,
    places: DefinitionFolders,
    trusts: Trusts,
) -> FoundServers:
    """Find the servers that a session in a folder has besides the client's. Reads files.

    Args:
        config: the user's configuration.
        config_file: where it was read.
        cwd: the session's folder.
        environ: the user's environment.
        places: where plugins are.
        trusts: whether the user trusts a file of the project.
    """
    problems: list[str] = []
    found: dict[str, ProgramServer | HttpServer] = {}
    if config.mcp_servers:
        found |= _users(config, config_file, environ, problems)
    untrusted: list[Item] = []
    project: dict[str, ProgramServer | HttpServer] = {}
    for file, item, text, servers in _read_project(cwd, problems):
        if not trusts(item):
            untrusted.append(item)
            continue
        for name, given in servers.items():
            try:
                if (table := project_table(name, given)) is not None:
                    project[name] = build_server(
                        name, table, environ, field=PROJECT_KEY, source="project"
                    )
            except (ConfigError, InvalidInputError) as error:
                line = member_line(text, (PROJECT_KEY, name, *_key_of(error, PROJECT_KEY, name)))
                problems.append(f"{file}:{line}: {printable_line(str(error))}")
    plugins: dict[str, ProgramServer | HttpServer] = {}
    if any_plugin_folder(places):
        from acp_agent.extensions.plugins.servers import plugin_servers  # noqa: PLC0415 - where there may be any

        plugins = {one.name: one for one in plugin_servers(places, environ, trusts, problems)}
    return FoundServers(
        servers=tuple((plugins | project | found).values()),
        problems=tuple(problems),
        untrusted=tuple(untrusted),
    )


def project_items(cwd: Path) -> list[Item]:
    """Return the files of a project that name servers, as the user trusts them."""
    return [item for _, item, _, _ in _read_project(cwd, [])]


def _users(
    config: Config, file: Path, environ: Mapping[str, str], problems: list[str]
) -> dict[str, ProgramServer | HttpServer]:
    found: dict[str, ProgramServer | HttpServer] = {}
    broken: list[tuple[str, ConfigError | InvalidInputError]] = []
    for name, table in config.mcp_servers.items():
        try:
            found[name] = build_server(name, table, environ, field=KEY, source="user")
        except (ConfigError, InvalidInputError) as error:
            broken.append((name, error))
    if not broken:
        return found
    try:
        text = read_text(file)
        wrong = list_problems(file, environ)
    except ConfigError:
        text, wrong = "", []
    lines = find_lines(text, [(KEY, name, *_key_of(why, KEY, name)) for name, why in broken])
    for (name, why), line in zip(broken, lines, strict=True):
        # A table that the types refuse was read as an empty one; what is wrong with it counts.
        begins = f" {KEY}.{name}"
        described = [one for one in wrong if f"{begins}:" in one or f"{begins}." in one]
        where = str(file) if line is None else f"{file}:{line}"
        problems += described or [f"{where}: {printable_line(str(why))}"]
    return found


def _read_project(
    cwd: Path, problems: list[str]
) -> Iterator[tuple[Path, Item, str, Mapping[str, Any]]]:
    """Give each file of a project with its item, its text and its servers."""
    top = Path(os.path.realpath(find_repository(cwd) or cwd))
    for file in mcp_files(cwd):
        try:
            raw = read_trusted(file, top, trusted_owners(top, cwd), limit=SIZE_LIMIT + 1)
            text = decode(file, raw)
            servers = _servers_in(file, text)
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
            item = text_item("mcp", folder_name(top), file, raw, _described(servers))
            yield file, item, text, servers


def _servers_in(file: Path, text: str) -> Mapping[str, Any]:
    """Return the servers that a `.mcp.json` names.

    Raises:
        ConfigError: it is none.
    """
    try:
        document = json.loads(text) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise ConfigError(f"{file}:{error.lineno}: not JSON: {error.msg}; fix the line") from None
    except RecursionError:
        raise ConfigError(f"{file}: nested too deeply; shorten it") from None
    servers = document.get(PROJECT_KEY, {}) if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise ConfigError(
            f"{file}:1: expected an object with mcpServers; see the page on MCP servers"
        )
    if len(servers) > _MOST:
        raise ConfigError(f"{file}: more than {_MOST} servers; take some out")
    return servers


def _described(servers: Mapping[str, Any]) -> str:
    """What the servers of a file run or reach, and which variables they get, for the user."""
    variables = sorted(set(VARIABLE.findall(json.dumps(servers))))
    shown = []
    for name, given in servers.items():
        one = given if isinstance(given, dict) else {}
        arguments = one.get("args")
        words = [one.get("command"), *(arguments if isinstance(arguments, list) else ())]
        line = " ".join(str(word) for word in words if word) or str(one.get("url", ""))
        shown.append(f"{printable_line(name)[:40]}: {printable_line(line)[:_SHOWN]}")
    names = [f"variables: {', '.join(variables)}"] if variables else []
    return "; ".join([*names, *shown])


def _key_of(error: ConfigError | InvalidInputError, field: str, name: str) -> tuple[str, ...]:
    """The key below a server's that an error is about."""
    said, begins = str(error), f"{field}.{name}."
    key = said[len(begins) :].partition(":")[0] if said.startswith(begins) else ""
    return (key,) if key else ()


def first_of_each_name(servers: tuple[ServerConfig, ...]) -> tuple[ServerConfig, ...]:
    """Return the servers, of each name only the first."""
    by_name: dict[str, ServerConfig] = {}
    for server in servers:
        by_name.setdefault(server.name, server)
    return tuple(by_name.values())
