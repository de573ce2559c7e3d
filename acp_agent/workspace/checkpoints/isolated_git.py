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
from acp_agent.platform.posix import end_group
from acp_agent.platform.programs import absolute_folders
from acp_agent.sandbox.launch import Confine, unconfined
from acp_agent.workspace.checkpoints.base import Deadline
from acp_agent.workspace.environment import INERT, NO_FETCH, with_settings
from acp_agent.workspace.ignore_files import OF_GIT, EndlessFileWatch

# Added to the repository's own settings (`store.py`), against settings that come before them.
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
_PIECE = 1 << 16  # bytes that are read at once


class IsolatedGit:
    """Git over one repository of ours, and over one folder that is not its own.

    Args:
        program: the git that is run.
        git_dir: the repository.
        work_tree: the folder whose files are kept.
        index: the repository's list of files.
        lock: the descriptors of the repository's lock. A git that outlives this process, when that
            is killed, goes on holding the lock until it has ended as well.
        confine: says how a git is started that parses files of the folder. The others take
            contents as they are, and parse what git itself wrote.
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
        """The whole environment of a subcommand's process."""
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
            # Taken literally. For this one command the only way is "./".
            "GIT_LITERAL_PATHSPECS": "0" if command == "check-ignore" else "1",
        }

    def run(
        self,
        *arguments: str | bytes,
        deadline: Deadline,
        given: bytes = b"",
        work_tree: bytes | None = None,
        index: Path | None = None,
        codes: Sequence[int] = (0,),
        warnings: list[bytes] | None = None,
        parses: bool = False,
    ) -> bytes:
        """Run it to its end; what it printed.

        Args:
            arguments: the subcommand and what follows it.
            deadline: when it is ended.
            given: what it reads.
            work_tree: another folder than its own.
            index: another list of files.
            codes: the exit statuses that are no failure.
            warnings: is given the lines in which it complained and went on all the same.
            parses: whether it parses files of the folder, although such a subcommand does not.

        Raises:
            CheckpointTooSlowError: it took too long, and was ended.
            WorkspaceError: it failed.
        """
        process = self._fed(arguments, given, work_tree, index, parses=parses)
        watch = self._watch(process, arguments, work_tree)
        try:
            with watch or nullcontext():
                out, err = _ended(process, deadline)
        except BaseException:
            end(process)
            raise
        if watch is not None:
            watch.require_none()
        if process.returncode not in codes:
            lines = err.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
            raise WorkspaceError(f"git {_name(arguments)} failed: {lines[0][:300]}")
        if warnings is not None:
            warnings.extend(err.splitlines())
        return out

    def _watch(
        self,
        process: subprocess.Popen[bytes],
        arguments: Sequence[str | bytes],
        work_tree: bytes | None,
    ) -> EndlessFileWatch | None:
        """What ends a git that waits for an ignore file of the folder."""
        if arguments[0] not in _READS_FOLDER:
            return None
        folder = Path(os.fsdecode(work_tree or self._work_tree))
        return EndlessFileWatch(folder, OF_GIT, partial(end_group, process.pid, at_once=True))

    def _fed(
        self,
        arguments: Sequence[str | bytes],
        given: bytes,
        work_tree: bytes | None,
        index: Path | None,
        *,
        parses: bool,
    ) -> subprocess.Popen[bytes]:
        """Start it with something to read.

        That is a file, and no pipe: `communicate` forgets what it has not written yet to a pipe
        when it runs into a timeout, and git would wait for the rest.
        """
        if not given:
            return self.start(
                *arguments,
                work_tree=work_tree,
                index=index,
                stdin=subprocess.DEVNULL,
                parses=parses,
            )
        try:
            with tempfile.TemporaryFile(dir=self._git_dir) as file:
                file.write(given)
                file.seek(0)
                return self.start(
                    *arguments, work_tree=work_tree, index=index, stdin=file, parses=parses
                )
        except OSError as error:
            raise WorkspaceError(f"git can be given nothing: {describe_os_error(error)}") from None

    def start(
        self,
        *arguments: str | bytes,
        work_tree: bytes | None = None,
        index: Path | None = None,
        stdin: int | IO[bytes] = subprocess.PIPE,
        parses: bool = False,
    ) -> subprocess.Popen[bytes]:
        """Start it, in a group of its own, with pipes to all its ends, unless it reads a file.

        Raises:
            WorkspaceError: it cannot be started.
        """
        folder: bytes | Path = work_tree or self._work_tree
        if not os.path.isdir(folder):  # noqa: PTH112 - bytes
            folder = self._git_dir  # it was deleted; what was kept can still be looked at
        parses = parses or arguments[0] in _PARSES_FOLDER
        confine = self._confine if parses else unconfined
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


def _ended(process: subprocess.Popen[bytes], deadline: Deadline) -> tuple[bytes, bytes]:
    while True:
        try:
            return process.communicate(timeout=deadline.left())
        except subprocess.TimeoutExpired:
            continue  # `communicate` has what it has read


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process with its group, and reap it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_SECONDS)


class Answers:
    """What a process prints, read as it comes and for no longer than there is time.

    Args:
        pipe: its output, of which nothing has been read.
        deadline: when all of it has to be there.
    """

    def __init__(self, pipe: IO[bytes], deadline: Deadline) -> None:
        self._pipe = pipe.fileno()
        self._deadline = deadline
        self._read = bytearray()
        self._poll = select.poll()
        self._poll.register(self._pipe, select.POLLIN)

    def line(self) -> bytes:
        """The next line, with its end.

        Raises:
            CheckpointTooSlowError: it did not come in time.
            WorkspaceError: the process ended before it.
        """
        while (end_of_line := self._read.find(b"\n")) < 0:
            self._more()
        return self.take(end_of_line + 1)

    def take(self, size: int) -> bytes:
        """So many bytes; raises as `line` does."""
        while len(self._read) < size:
            self._more()
        taken = bytes(self._read[:size])
        del self._read[:size]
        return taken

    def _more(self) -> None:
        while not self._poll.poll(self._deadline.left() * 1000):
            pass
        data = os.read(self._pipe, _PIECE)
        if not data:
            raise WorkspaceError("git ended in the middle of its answer")
        self._read += data


def _name(arguments: Sequence[str | bytes]) -> str:
    first = arguments[0]
    return first if isinstance(first, str) else os.fsdecode(first)


def split(out: bytes) -> list[bytes]:
    """The fields that git ends with a zero byte each."""
    return [path for path in out.split(b"\0") if path]
