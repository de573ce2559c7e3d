"""Every side effect goes through a workspace; tools open no file, process or socket themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from msgspec import Struct, field

from acp_agent.workspace.background_commands import BackgroundCommands


class EditorBuffers(Protocol):
    """The editor's view of files, unsaved changes included. Implemented by the server's surface.

    Both raise `NoEditorMethodError` where the editor lacks the method, reading also
    `NoEditorFileError` where it has no such file, and `WorkspaceError` for every other error.
    """

    @property
    def can_read(self) -> bool:
        """Whether the editor offers to read."""
        ...

    @property
    def can_write(self) -> bool:
        """Whether the editor offers to write."""
        ...

    async def read_text(self, path: Path, *, lines: int | None = None) -> str:
        """Return a file's text as the editor sees it, or only its first `lines`."""
        ...

    async def write_text(self, path: Path, text: str) -> None:
        """Let the editor change and save a file."""
        ...


class EditorTerminals(Protocol):
    """The editor's terminals, used only where the user opted in and the editor offers them."""

    async def run(
        self,
        command: str,
        cwd: Path,
        *,
        limit_bytes: int,
        timeout: float,
        only_reads: bool,
        on_start: Callable[[str], Awaitable[None]],
    ) -> CommandResult:
        """Run a command line; `on_start` gets the terminal's id to show it in the call.

        `only_reads` is as in `Processes.run`.
        """
        ...


class CommandResult(Struct, frozen=True, kw_only=True):
    """How a command ended. `output` holds stdout and stderr as they came, bounded.

    Where more came than is in `output`, `full_output` names the file that has the rest. `stopped`
    where the user ended it.
    """

    output: str
    exit_code: int | None
    signal: str | None = None
    timed_out: bool = False
    stopped: bool = False
    total_bytes: int = 0
    full_output: str | None = None


class TextFile(Struct, frozen=True, kw_only=True):
    """A text file as it was read: `text` with its own line endings, without byte order mark.

    `digest` is the SHA-256 of the text with LF line endings, so that an editor which hides CRLF
    and the disk agree. `newline` is CRLF where every line ends so, else LF; `encoding` is `utf-8`,
    or `utf-8-sig` where the file has a byte order mark. Both are what `write_text` wants back.
    """

    path: str
    text: str
    digest: str
    newline: str = "\n"
    encoding: str = "utf-8"


class Page(Struct, frozen=True, kw_only=True):
    """A fetched page: its final address, media type, status, and body as text, bounded."""

    url: str
    status: int
    media_type: str
    text: str
    truncated: bool = False


class Files(Protocol):
    """Files of the session's folders. Every path is resolved, symlinks included, and checked."""

    @property
    def roots(self) -> tuple[Path, ...]:
        """The working folder, then the additional ones; resolved."""
        ...

    def resolve(self, path: str, *, to_read: bool = False) -> Path:
        """An absolute path inside the roots, relative ones taken from the working folder.

        What is resolved `to_read` may lie in the folder of long outputs as well.

        Raises:
            OutsideWorkspaceError: the path, or what a symlink on it points to, lies outside.
        """
        ...

    def as_opened(self, path: Path) -> Path:
        """A resolved path as the editor knows it: below a root as it was given, not resolved."""
        ...

    async def read_text(self, path: Path) -> TextFile:
        """A whole text file, through the editor where it offers that.

        Raises:
            MissingFileError: there is no such file, neither on disk nor in the editor.
            WorkspaceError: a folder, unreadable, binary, not UTF-8, over the limit, or refused by
                the editor.
        """
        ...

    async def refused_reads(self, paths: Sequence[Path]) -> dict[Path, str]:
        """Return which of these files the editor does not let the agent read, with the reasons."""
        ...

    async def read_bytes(self, path: Path, *, limit: int) -> bytes:
        """A file's bytes from disk. Raises WorkspaceError over `limit` bytes."""
        ...

    async def write_text(
        self, path: Path, text: str, *, newline: str = "\n", encoding: str = "utf-8"
    ) -> None:
        """Create or replace a text file, through the editor or else on disk, never both.

        On disk it is replaced atomically and keeps its mode. A `newline` of CRLF turns every bare
        LF of `text` into it; `encoding` is `utf-8`, or `utf-8-sig` with a byte order mark.
        """
        ...

    def seen(self, file: TextFile) -> None:
        """Remember that the model has seen the file as it is."""
        ...

    async def check_unchanged(self, path: Path) -> TextFile:
        """The file, if it is as the model last saw it.

        Raises:
            WorkspaceError: the model never read it, or it changed since; says to read it again.
        """
        ...

    def changing(self, path: Path) -> AbstractAsyncContextManager[object]:
        """Nobody else who has these files looks whether to change this one for as long as it lasts.

        Two who work side by side would both find it as they know it, and the later one take what
        the other wrote.
        """
        ...

    def unseen(self) -> Files:
        """The same files for another model, which has seen none of them."""
        ...

    def commands_ran(self) -> None:
        """A command of ours may have changed files on disk behind the editor's back."""
        ...


class CommandWatcher(Protocol):
    """Follows a command while it runs."""

    def started(self) -> None:
        """It runs."""
        ...

    def wrote(self, text: str, file: Path | None) -> None:
        """It wrote something; `file` is where the whole of its output is, once that is long."""
        ...


class Processes(Protocol):
    """Commands, each in a process group of its own that is reaped with it."""

    async def run(
        self,
        command: str,
        cwd: Path,
        *,
        timeout: float | None,
        on_output: Callable[[str], Awaitable[None]],
        stop: asyncio.Event | None = None,
        watcher: CommandWatcher | None = None,
        only_reads: bool = False,
    ) -> CommandResult:
        """Run a shell command line. Cancelling the call, or `stop`, ends the whole group.

        After `stop` the result is there as after an end of its own. `on_output` gets what the user
        is to see, `watcher` all that comes. `only_reads` is true for what nobody was asked about:
        its git runs no hooks.
        """
        ...

    async def aclose(self) -> None:
        """End everything that still runs."""
        ...


class Network(Protocol):
    """The public network, guarded against requests to private addresses."""

    async def check(self, url: str) -> None:
        """Refuse an address that `fetch` would refuse without looking its name up.

        Raises:
            WorkspaceError: not http(s), or a private or reserved address.
        """
        ...

    async def fetch(self, url: str, *, limit: int, timeout: float) -> Page:
        """Get a page.

        Raises:
            WorkspaceError: not http(s), a private or reserved address at any step, or a failure.
        """
        ...


class Workspace(Struct, frozen=True, kw_only=True):
    """All that a session may touch.

    `outputs` is the folder for outputs too long for the model; `background` has the commands that
    go on behind their calls.
    """

    cwd: Path
    files: Files
    processes: Processes
    network: Network
    outputs: Path
    terminals: EditorTerminals | None = None
    background: BackgroundCommands = field(default_factory=BackgroundCommands)
