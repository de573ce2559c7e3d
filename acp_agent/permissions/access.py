"""What a tool call is about to touch: the question that every call puts to the gate."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class ReadAccess(Struct, frozen=True):
    """Reads files; absolute, resolved paths inside the session's folders."""

    paths: tuple[str, ...]


class WriteAccess(Struct, frozen=True):
    """Creates or changes files; absolute, resolved paths inside the session's folders."""

    paths: tuple[str, ...]


class CommandAccess(Struct, frozen=True):
    """Runs a shell command line in a folder; `roots` are the session's folders, all resolved.

    Without `roots` only the working folder counts as the project's.
    """

    command: str
    cwd: str
    roots: tuple[str, ...] = ()


class FetchAccess(Struct, frozen=True):
    """Sends a request to an address of the network."""

    url: str


class NoAccess(Struct, frozen=True):
    """Touches nothing outside the session."""


Access = ReadAccess | WriteAccess | CommandAccess | FetchAccess | NoAccess

Mode = Literal["ask", "accept-edits", "plan", "full"]
