"""Run git without the user's settings, hooks, filters or attributes."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import IO

from acp_agent.errors import WorkspaceError
from acp_agent.platform.descriptor_limit import describe_os_error
from acp_agent.platform.posix import absolute_folders, end_group
from acp_agent.sandbox.launch import Confine, unconfined
from acp_agent.workspace.checkpoints.base import Deadline
from acp_agent.workspace.environment import INERT, NO_FETCH, with_settings
from acp_agent.workspace.ignore_files import GIT_IGNORE_FILES, EndlessFileWatch

# These override settings that the repository's own (`store.py`) do not cover.
_SETTINGS = {
    **INERT,
    "core.autocrlf": "false",
    "core.excludesFile": os.devnull,
    "core.attributesFile": os.devnull,
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_READS_FOLDER = frozenset({"ls-files", "check-ignore", "update-index"})
_PARSES_FOLDER = frozenset({"ls-files", "check-ignore"})  # its ignore files
_END_SECONDS = 5.0
_PIECE = 1 << 16  # bytes per read


class IsolatedGit:
    """Runs git on a checkpoint repository, with the user's folder as its work tree.

    Args:
        lock: returns the descriptors of the store's lock. Git inherits them, so that it holds the
            lock until it ends, even if this process is killed first.
        confine: wraps the command line of git processes that parse files of the folder. Other
            subcommands only hash contents or parse files that git wrote.
    """

    def __init__(
        self,
        program: str,
        git_dir: Path,
        work_tree: bytes,
        index: Path,
        *,
        lock: Callable[[], Sequence[int]] = tuple,
        confine: Confine = unconfined,
    ) -> None:
        self._program = program
        self._git_dir = git_dir
        self._work_tree = work_tree
        self._index = index
        self._lock = lock
        self._confine = confine

    def environ(
        self, command: str | bytes, work_tree: bytes | None = None, index: Path | None = None
    ) -> dict[str, str]:
        """Return the complete environment for a subcommand."""
        return {
            "PATH": absolute_folders(os.environ.get("PATH", os.defpath)),
            "HOME": str(self._git_dir),
            "XDG_CONFIG_HOME": str(self._git_dir),
            "LC_ALL": "C",
            "GIT_DIR": str(self._git_dir),
            "GIT_WORK_TREE": os.fsdecode(work_tree or self._work_tree),
            "GIT_INDEX_FILE": str(index or self._index),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_TERMINAL_PROMPT": "0",
            **NO_FETCH,
            **with_settings(_SETTINGS, {}),
            # Paths are literal. check-ignore does not support that; its paths start with "./".
            "GIT_LITERAL_PATHSPECS": "0" if command == "check-ignore" else "1",
        }

    def run(
        self,
        *arguments: str | bytes,
        deadline: Deadline,
        stdin_data: bytes = b"",
        work_tree: bytes | None = None,
        index: Path | None = None,
        codes: Sequence[int] = (0,),
        warnings: list[bytes] | None = None,
        parses_folder: bool = False,
    ) -> bytes:
        """Run git and return its output.

        Args:
            deadline: when git is killed.
            work_tree: a work tree to use instead of the default.
            index: an index file to use instead of the default.
            codes: the exit statuses that mean success.
            warnings: receives the lines of standard error.
            parses_folder: whether git parses files of the folder, unusually for this subcommand.

        Raises:
            CheckpointTooSlowError: git took too long and was killed.
            WorkspaceError: git failed.
        """
        process = self._start_with_input(
            arguments, stdin_data, work_tree, index, parses_folder=parses_folder
        )
        watch = self._watch(process, arguments, work_tree)
        try:
            with watch or nullcontext():
                output, error_output = _communicate(process, deadline)
        except BaseException:
            kill_process(process)
            raise
        if watch is not None:
            watch.require_none()
        if process.returncode not in codes:
            text = error_output.decode("utf-8", "replace").strip() or "it said nothing"
            name, line = os.fsdecode(arguments[0]), text.splitlines()[0]
            raise WorkspaceError(f"git {name} failed: {line[:300]}")
        if warnings is not None:
            warnings.extend(error_output.splitlines())
        return output

    def _watch(
        self,
        process: subprocess.Popen[bytes],
        arguments: Sequence[str | bytes],
        work_tree: bytes | None,
    ) -> EndlessFileWatch | None:
        """Return a watch that kills git if it hangs at an ignore file of the folder."""
        if arguments[0] not in _READS_FOLDER:
            return None
        folder = Path(os.fsdecode(work_tree or self._work_tree))
        return EndlessFileWatch(
            folder, GIT_IGNORE_FILES, partial(end_group, process.pid, at_once=True)
        )

    def _start_with_input(
        self,
        arguments: Sequence[str | bytes],
        stdin_data: bytes,
        work_tree: bytes | None,
        index: Path | None,
        *,
        parses_folder: bool,
    ) -> subprocess.Popen[bytes]:
        """Start git with data on standard input.

        The data is passed in a file instead of a pipe: after a timeout `communicate` loses input
        that it has not written to the pipe yet, and git would wait for it.
        """
        start = partial(
            self.start, *arguments, work_tree=work_tree, index=index, parses_folder=parses_folder
        )
        if not stdin_data:
            return start(stdin=subprocess.DEVNULL)
        try:
            with tempfile.TemporaryFile(dir=self._git_dir) as file:
                file.write(stdin_data)
                file.seek(0)
                return start(stdin=file)
        except OSError as error:
            raise WorkspaceError(f"git can be given nothing: {describe_os_error(error)}") from None

    def start(
        self,
        *arguments: str | bytes,
        work_tree: bytes | None = None,
        index: Path | None = None,
        stdin: int | IO[bytes] = subprocess.PIPE,
        parses_folder: bool = False,
    ) -> subprocess.Popen[bytes]:
        """Start git in a new process group, with pipes for its standard streams.

        Raises:
            WorkspaceError: git cannot be started.
        """
        folder: bytes | Path = work_tree or self._work_tree
        if not os.path.isdir(folder):
            folder = self._git_dir  # the folder was deleted; its checkpoints can still be read
        parses_folder = parses_folder or arguments[0] in _PARSES_FOLDER
        confine = self._confine if parses_folder else unconfined
        try:
            return confine(
                [self._program, *map(os.fsdecode, arguments)],
                self.environ(arguments[0], work_tree, index),
                os.fsdecode(folder),
            ).start(
                os.fsdecode(folder),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=self._lock(),
            )
        except OSError as error:
            raise WorkspaceError(f"git cannot be started: {describe_os_error(error)}") from None


def _communicate(process: subprocess.Popen[bytes], deadline: Deadline) -> tuple[bytes, bytes]:
    while True:
        try:
            return process.communicate(timeout=deadline.poll_seconds())
        except subprocess.TimeoutExpired:
            continue  # `communicate` keeps the output read so far


def kill_process(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with its group, and reap it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_SECONDS)


class OutputReader:
    """Reads the output of a process with a time limit.

    Args:
        pipe: its output, of which nothing has been read.
    """

    def __init__(self, pipe: IO[bytes], deadline: Deadline) -> None:
        self._pipe = pipe.fileno()
        self._deadline = deadline
        self._buffer = bytearray()
        self._poll = select.poll()
        self._poll.register(self._pipe, select.POLLIN)

    def read_line(self) -> bytes:
        """Return the next line, including its line feed.

        Raises:
            CheckpointTooSlowError: the time is up.
            WorkspaceError: the output ended first.
        """
        while (line_end := self._buffer.find(b"\n")) < 0:
            self._read_more()
        return self.read(line_end + 1)

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes; raise the same errors as `read_line`."""
        while len(self._buffer) < size:
            self._read_more()
        output = bytes(self._buffer[:size])
        del self._buffer[:size]
        return output

    def _read_more(self) -> None:
        while not self._poll.poll(self._deadline.poll_seconds() * 1000):
            pass
        data = os.read(self._pipe, _PIECE)
        if not data:
            raise WorkspaceError("git ended in the middle of its answer")
        self._buffer += data


def split_records(output: bytes) -> list[bytes]:
    """Split git output at zero bytes."""
    return [path for path in output.split(b"\0") if path]
