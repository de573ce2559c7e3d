"""The language servers as one session uses them: what tools and the turn ask for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from acp_agent.content import JsonObject
from acp_agent.language_servers.problems import Problem

R = TypeVar("R")


class ServerStatus(Struct, frozen=True, kw_only=True):
    """A language server as it is now.

    `state` is starting, ready, stopped or failed; `memory` is in bytes; `last_error` says why it
    failed the last time.
    """

    name: str
    languages: tuple[str, ...]
    root: str
    state: str
    version: str = ""
    memory: int = 0
    restarts: int = 0
    last_error: str = ""


class DetectedServer(Struct, frozen=True, kw_only=True):
    """A language server that is installed: its name, its languages and the program's path.

    `in_project` where the program is in the session's folders, and so is not started by itself.
    """

    name: str
    languages: tuple[str, ...]
    program: str
    in_project: bool = False


class LanguageServers:
    """The language servers of a session."""

    def covers(self, path: Path) -> bool:
        """Return whether a server that is running handles the file. Never waits."""
        del path
        return False

    def status(self) -> Sequence[ServerStatus]:
        """Return the servers that were started for this session's folders."""
        return ()

    def detect(self) -> Sequence[DetectedServer]:
        """Return the servers that are installed. Blocks: call it in a thread."""
        return ()

    async def request(
        self, path: Path, method: str, params: JsonObject, result: type[R], *, timeout: float
    ) -> R | None:
        """Ask the first running server of a file that offers the method; None: it knows nothing.

        The document is opened, or brought up to date, before. `textDocument` is added to `params`.

        Raises:
            ToolError: no running server offers the method, it failed or did not answer in time.
        """
        del path, method, params, result, timeout
        return None

    def touch(self, path: Path) -> None:
        """Start the servers of a file in the background. Never waits, never raises."""

    async def before_change(self, path: Path) -> None:
        """Remember the problems of a file that is about to be changed."""

    def changed(self, path: Path) -> None:
        """A file was changed by a tool."""

    async def new_problems(self) -> Sequence[Problem]:
        """Return the problems that the changes since the last call caused; waits within a bound."""
        return ()
