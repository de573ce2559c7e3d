"""The MCP servers that a client names with a session (Session Setup, MCP Servers)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from acp_agent.errors import InvalidInputError
from acp_agent.extensions.mcp.config import (
    Channel,
    ChannelServer,
    HttpServer,
    ProgramServer,
    ServerConfig,
)

SERVERS = 50  # of one session


def check_count(count: int) -> None:
    """Refuse more servers than any session needs.

    Raises:
        InvalidInputError: there are too many.
    """
    if count > SERVERS:
        raise InvalidInputError(
            f"mcpServers: {count} servers are too many; {SERVERS} are taken", field="mcpServers"
        )


def program(
    field: str, name: str, command: str, args: Sequence[str], env: Sequence[tuple[str, str]]
) -> ProgramServer:
    """Return a program on stdio; errors name `field`.

    Raises:
        InvalidInputError: it cannot be a program.
    """
    for text in (command, *args, *(part for pair in env for part in pair)):
        if "\0" in text:
            raise InvalidInputError(f"{field}: it has a NUL character in it", field=field)
    if not command.strip():
        raise InvalidInputError(
            f"{field}.command: it is empty; name a program", field=f"{field}.command"
        )
    for key, _ in env:
        if not key or "=" in key:
            raise InvalidInputError(
                f"{field}.env: {key!r} is no name of a variable", field=f"{field}.env"
            )
    return ProgramServer(name=name, command=command, args=tuple(args), env=tuple(env))


def web(
    field: str, name: str, url: str, headers: Sequence[tuple[str, str]], *, sse: bool = False
) -> HttpServer:
    """Return a server behind HTTP; errors name `field`.

    Raises:
        InvalidInputError: the address or a header cannot be used.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InvalidInputError(
            f"{field}.url: it is no http or https address", field=f"{field}.url"
        )
    for key, value in headers:
        if not (key.isascii() and key.isprintable() and key and not set(key) & set(" :()<>@,;")):
            raise InvalidInputError(
                f"{field}.headers: a header has no usable name", field=f"{field}.headers"
            )
        # The value may be a secret: no message has any of it.
        if not (value.isascii() and value.isprintable()):
            raise InvalidInputError(
                f"{field}.headers: the value of {key} has characters that no header can have",
                field=f"{field}.headers",
            )
    return HttpServer(name=name, url=url, headers=tuple(headers), sse=sse)


def server_v1(field: str, server: object, channel: Channel) -> ServerConfig:
    """Convert a server of version 1."""
    from protocol.v1 import types as v1  # noqa: PLC0415 - as spoken

    match server:
        case v1.McpServerHttp() | v1.McpServerSse():
            return web(
                field,
                server.name,
                server.url,
                [(header.name, header.value) for header in server.headers],
                sse=isinstance(server, v1.McpServerSse),
            )
        case v1.McpServerStdio():
            env = [(variable.name, variable.value) for variable in server.env]
            return program(field, server.name, server.command, server.args, env)
        case v1.McpServerAcp():
            return ChannelServer(name=server.name, server_id=server.server_id, channel=channel)
        case _:
            raise AssertionError(f"{field}: no such variant")


def server_v2(field: str, server: object, channel: Channel) -> ServerConfig:
    """Convert a server of version 2.

    Raises:
        InvalidInputError: its transport is not supported, or it cannot be used.
    """
    from protocol.v2 import types as v2  # noqa: PLC0415 - as spoken

    match server:
        case v2.McpServerHttp():
            headers = [(header.name, header.value) for header in server.headers]
            return web(field, server.name, server.url, headers)
        case v2.McpServerStdio():
            if not Path(server.command).is_absolute():
                raise InvalidInputError(
                    f"{field}.command: expected an absolute path, got {server.command!r}",
                    field=f"{field}.command",
                )
            env = [(variable.name, variable.value) for variable in server.env]
            return program(field, server.name, server.command, server.args, env)
        case v2.McpServerAcp():
            return ChannelServer(name=server.name, server_id=server.server_id, channel=channel)
        case _:
            raise InvalidInputError(
                f"{field}.type: this transport is not supported; use stdio, http or acp",
                field=f"{field}.type",
            )
