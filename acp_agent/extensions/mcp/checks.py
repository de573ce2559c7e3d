"""Validate MCP servers from a client or a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from acp_agent.errors import InvalidInputError
from acp_agent.extensions.mcp.config import HttpServer, ProgramServer


def make_program_server(
    field: str, name: str, command: str, args: Sequence[str], env: Sequence[tuple[str, str]]
) -> ProgramServer:
    """Return the configuration of a stdio server; errors name `field`.

    Raises:
        InvalidInputError: the command, an argument or a variable is invalid.
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


def make_http_server(
    field: str, name: str, url: str, headers: Sequence[tuple[str, str]], *, sse: bool = False
) -> HttpServer:
    """Return the configuration of an HTTP server; errors name `field`. Raises InvalidInputError."""
    try:
        url_parts = urlsplit(url)
        usable = (
            url_parts.scheme in {"http", "https"}
            and bool(url_parts.hostname)
            and url_parts.port != 0
        )
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
        # The value may be a secret, so no message contains any part of it.
        if not (value.isascii() and value.isprintable()):
            raise InvalidInputError(
                f"{field}.headers: the value of {key} has characters that no header can have",
                field=f"{field}.headers",
            )
    return HttpServer(name=name, url=url, headers=tuple(headers), sse=sse)
