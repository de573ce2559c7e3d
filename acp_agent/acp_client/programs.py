"""Finds the programs of other agents, and says which MCP servers they get."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from acp_agent.extensions.mcp.config import HttpServer, ProgramServer
from acp_agent.platform.posix import find_program, outside_folders
from protocol.v1 import types as acp


def find_command(
    command: str, environ: Mapping[str, str], roots: Iterable[str | os.PathLike[str]]
) -> str | None:
    """Return the path of an agent's program; None: there is none.

    What is in a project is never meant: a name is looked up in PATH alone, outside the project.

    Args:
        command: a name, or an absolute path.
    """
    path = Path(command).expanduser()
    if path.is_absolute():
        return str(path)
    if len(path.parts) != 1:
        return None
    return find_program(command, outside_folders(environ.get("PATH", os.defpath), roots))


def convert_server(
    server: ProgramServer | HttpServer, capabilities: acp.McpCapabilities
) -> Iterator[acp.McpServer]:
    """Return a server as the protocol has it, if the agent can use its transport."""
    if isinstance(server, ProgramServer):
        env = [acp.EnvVariable(name=name, value=value) for name, value in server.env]
        yield acp.McpServerStdio(
            name=server.name, command=server.command, args=server.args, env=env
        )
        return
    headers = [acp.HttpHeader(name=name, value=value) for name, value in server.headers]
    if server.sse and capabilities.sse:
        yield acp.McpServerSse(name=server.name, url=server.url, headers=headers)
    elif not server.sse and capabilities.http:
        yield acp.McpServerHttp(name=server.name, url=server.url, headers=headers)
