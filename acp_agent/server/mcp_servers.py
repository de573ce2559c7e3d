"""The parts of an MCP server's description that both versions of the protocol check alike."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from acp_agent.errors import InvalidInputError
from acp_agent.extensions.mcp.config import HttpServer, ProgramServer

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
    place: str, name: str, command: str, args: Sequence[str], env: Sequence[tuple[str, str]]
) -> ProgramServer:
    """A program on stdio; `place` is the field that an error names.

    Raises:
        InvalidInputError: it cannot be a program.
    """
    for text in (command, *args, *(part for pair in env for part in pair)):
        if "\0" in text:
            raise InvalidInputError(f"{place}: it has a NUL character in it", field=place)
    if not command.strip():
        raise InvalidInputError(
            f"{place}.command: it is empty; name a program", field=f"{place}.command"
        )
    for key, _ in env:
        if not key or "=" in key:
            raise InvalidInputError(
                f"{place}.env: {key!r} is no name of a variable", field=f"{place}.env"
            )
    return ProgramServer(name=name, command=command, args=tuple(args), env=tuple(env))


def web(
    place: str, name: str, url: str, headers: Sequence[tuple[str, str]], *, sse: bool = False
) -> HttpServer:
    """A server behind HTTP; `place` is the field that an error names.

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
            f"{place}.url: it is no http or https address", field=f"{place}.url"
        )
    for key, value in headers:
        if not (key.isascii() and key.isprintable() and key and not set(key) & set(" :()<>@,;")):
            raise InvalidInputError(
                f"{place}.headers: a header has no usable name", field=f"{place}.headers"
            )
        # The value may be a secret: no message has any of it.
        if not (value.isascii() and value.isprintable()):
            raise InvalidInputError(
                f"{place}.headers: the value of {key} has characters that no header can have",
                field=f"{place}.headers",
            )
    return HttpServer(name=name, url=url, headers=tuple(headers), sse=sse)
