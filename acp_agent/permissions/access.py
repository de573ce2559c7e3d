"""What a tool call is about to touch: the question that every call puts to the gate."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class ReadAccess(Struct, frozen=True):
    """Reads files; absolute, resolved paths inside the session's folders."""

    paths: tuple[str, ...]


class WriteAccess(Struct, frozen=True):
    """Creates or changes files; absolute, resolved paths inside the session's folders.

    `asked` are the names that they were asked for by, which may be links to them.
    """

    paths: tuple[str, ...]
    asked: tuple[str, ...] = ()


class CommandAccess(Struct, frozen=True):
    """Runs a shell command line in a folder; `roots` are the session's folders, all resolved.

    Without `roots` only the working folder counts as the project's. `only_reads` is set once the
    gate has let it run for that.
    """

    command: str
    cwd: str
    roots: tuple[str, ...] = ()
    only_reads: bool = False


class FetchAccess(Struct, frozen=True):
    """Sends a request to an address of the network."""

    url: str


class McpAccess(Struct, frozen=True, kw_only=True):
    """Calls a tool of an MCP server.

    `server` and `tool` are what the user sees. `identity` says which server it is, whatever it is
    called, and `definition` what the tool was said to do when the call was made; both are digests.
    `read_only` is the server's own word for that the tool changes nothing.
    """

    server: str
    tool: str
    identity: str
    definition: str
    read_only: bool = False


class NoAccess(Struct, frozen=True):
    """Touches nothing outside the session."""


Access = ReadAccess | WriteAccess | CommandAccess | FetchAccess | McpAccess | NoAccess

Mode = Literal["ask", "accept-edits", "plan", "full"]
