"""The known servers, which `acp-agent mcp add NAME` adds by name alone."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from shutil import which
from typing import TypedDict

from acp_agent.config.mcp_types import McpServerConfig
from acp_agent.errors import InvalidInputError


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
    text = (files(__package__) / "known_servers.toml").read_text("utf-8")
    servers: dict[str, KnownServer] = tomllib.loads(text)["servers"]
    return servers


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
