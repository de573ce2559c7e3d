"""POSIX functions: programs, signals, process groups, file locks, private files.

Programs are found in such a way that a project cannot substitute its own. This module is loaded
before the response to `initialize`, so it imports nothing heavy.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_PR_SET_DUMPABLE = 4  # linux/prctl.h
_LOCK_RETRY_SECONDS = 0.01  # seconds between two attempts


def _proc() -> Path:
    """Return the folder with the processes of Linux."""
    from pathlib import Path  # noqa: PLC0415 - takes 5 ms, which must not delay `initialize`

    return Path("/proc")


def forbid_inspection() -> None:
    """Prevent other processes of this user from reading our memory and environment, on Linux.

    Otherwise a command of the model, which runs as the user, could read the keys in
    `/proc/PID/environ`. Child processes do not inherit the protection.
    """
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415 - takes 3 ms, which must not delay `initialize`

    with contextlib.suppress(OSError, AttributeError):  # a C library without it
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def shutdown_signals() -> Sequence[signal.Signals]:
    """Return the signals, other than Ctrl-C's, that ask this process to end.

    SIGHUP is not among them if it was ignored from the start, as with `nohup`.
    """
    handles_hangup = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
    return (signal.SIGTERM, signal.SIGHUP) if handles_hangup else (signal.SIGTERM,)


def try_lock(descriptor: int) -> bool:
    """Take an exclusive lock on an open file; return False if another process has it.

    The system releases the lock when the process ends.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def locked(file: Path, seconds: float) -> Iterator[None]:
    """Hold the lock of a private file; create its folder if it is missing. Blocks.

    The lock is on a second file next to it, since writers replace the file itself.

    Raises:
        TimeoutError: another process holds it for longer than `seconds`.
        OSError: the folder cannot be written.
    """
    make_private_folder(file.parent)
    lock = file.with_name(f"{file.name}.lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + seconds
        while not try_lock(descriptor):
            if time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(_LOCK_RETRY_SECONDS)
        yield
    finally:
        os.close(descriptor)


def make_private(path: Path) -> None:
    """Restrict access to a file or folder to its owner."""
    path.chmod(0o700 if path.is_dir() else 0o600)


def is_private(path: Path) -> bool:
    """Return whether only the owner may access `path`. Raises OSError if it does not exist."""
    return path.stat().st_mode & 0o077 == 0


def end_group(leader: int, *, at_once: bool) -> None:
    """Send SIGTERM to a process group, or SIGKILL if `at_once`. Ignores a missing group."""
    try:
        os.killpg(leader, signal.SIGKILL if at_once else signal.SIGTERM)
    except (ProcessLookupError, PermissionError):
        return


def terminate_members(leader: int) -> None:
    """Send SIGTERM to the processes of a group except its leader. Works only on Linux.

    Reads many small files: call it in a thread.
    """
    for process, _, group in _process_states():
        if group == leader and process != leader:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGTERM)


def group_alive(leader: int) -> bool:
    """Return whether a process of the group exists, including zombies."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def find_shell(search_path: str | None) -> str:
    """Return the shell that runs commands: bash if it is installed, else /bin/sh.

    Args:
        search_path: the PATH variable to search; None for that of this process.
    """
    return find_program("bash", search_path) or "/bin/sh"


def signal_name(number: int) -> str:
    """Return a signal's name, such as SIGKILL, or `signal N` if it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def group_runs(leader: int) -> bool:
    """Return whether a process of the group still runs.

    Zombies do not count on Linux; other systems cannot tell them apart. An orphaned zombie may
    exist until the system's init reaps it. May read many small files: call it in a thread.
    """
    if not group_alive(leader):
        return False
    states = [
        state for _, state, group in _process_states() if group == leader and state not in "ZX"
    ]
    return bool(states) or not _proc().is_dir()


def marked_processes(mark: str) -> list[int]:
    """Return the ids of this user's processes that have `mark` in their environment.

    `mark` is `NAME=` and the beginning of the value. This finds processes that left their group
    and session. Only Linux shows the environment of processes; elsewhere the list is empty. Reads
    many small files: call it in a thread.
    """
    encoded_mark = mark.encode()
    processes: list[int] = []
    for process in _process_ids():
        try:
            environment = (_proc() / str(process) / "environ").read_bytes()
        except OSError:  # it has exited, or belongs to another user
            continue
        if process != os.getpid() and (b"\0" + encoded_mark) in (b"\0" + environment):
            processes.append(process)
    return processes


def _process_ids() -> list[int]:
    try:
        return [int(entry.name) for entry in _proc().iterdir() if entry.name.isdigit()]
    except OSError:
        return []


def _process_states() -> list[tuple[int, str, int]]:
    """Return the id, state letter and group of every process: proc(5), /proc/[pid]/stat."""
    states: list[tuple[int, str, int]] = []
    for process in _process_ids():
        try:
            line = (_proc() / str(process) / "stat").read_text("utf-8", "replace")
        except OSError:
            continue
        # The second field, the program's name in parentheses, may contain any characters.
        state, _parent, group = line.rpartition(")")[2].split()[:3]
        states.append((process, state, int(group)))
    return states


def group_memory(leader: int) -> int:
    """Return the resident memory in bytes of all processes of a group; 0 if it is unknown.

    Works only on Linux. Reads many small files: call it in a thread.
    """
    pages = 0
    for process, _, group in _process_states():
        if group == leader:
            try:
                pages += int((_proc() / str(process) / "statm").read_text("ascii").split()[1])
            except (OSError, ValueError, IndexError):
                continue
    return pages * os.sysconf("SC_PAGE_SIZE")


def end_process(process: int) -> None:
    """Kill a process. Ignores a missing process."""
    try:
        os.kill(process, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def release_memory() -> None:
    """Return freed memory to the system, which glibc does not do by itself."""
    import ctypes  # noqa: PLC0415 - rarely needed

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def make_private_folder(folder: Path) -> None:
    """Create `folder` and its missing parents, accessible only by their owner. Raises OSError."""
    if folder.is_dir():
        return
    make_private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def write_private(path: Path, content: bytes) -> None:
    """Write a file atomically.

    Only its owner can read the file, from the first byte on. If `path` is a symlink, its target is
    replaced.

    Raises:
        OSError: the file cannot be written; the old content is unchanged.
    """
    target = path.resolve()
    make_private_folder(target.parent)
    scratch = target.with_name(f".{target.name}.{os.urandom(8).hex()}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(target)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def self_command(*arguments: str) -> list[str]:
    """Return the command that starts this program, safely in any working folder.

    By default Python searches modules in its working folder (-P prevents that), and in the folders
    of PYTHONPATH, in which an empty entry means the working folder (-E prevents that).
    """
    options = ["-P"] if _is_in_python_path() else ["-E", "-P"]
    return [sys.executable, *options, "-m", "acp_agent", *arguments]


def _is_in_python_path() -> bool:
    """Return whether Python finds this package through PYTHONPATH, so that -E must not be used."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120 - pathlib is heavy
    return root in os.environ.get("PYTHONPATH", "").split(os.pathsep)


def find_program(name: str, search_path: str | None = None) -> str | None:
    """Return the path of a program, or None if it is not found.

    Args:
        search_path: the PATH variable to search; None for that of this process.
    """
    import shutil  # noqa: PLC0415 - heavy

    if search_path is None:
        search_path = os.environ.get("PATH", os.defpath)
    return shutil.which(name, path=absolute_folders(search_path))


def absolute_folders(search_path: str) -> str:
    """Return a PATH variable without relative entries.

    An empty entry also means the working folder (POSIX.1-2017, XBD 8.3).
    """
    return os.pathsep.join(filter(os.path.isabs, search_path.split(os.pathsep)))


def is_below(path: str, folder: str) -> bool:
    """Return whether a resolved path is the resolved folder or lies below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def outside_folders(search_path: str, roots: Iterable[str | os.PathLike[str]]) -> str:
    """Return a PATH variable without relative entries and without folders in `roots`.

    Symlinks are resolved. A root `/` is ignored, since it contains every program.
    """
    inside = [os.path.join(os.path.realpath(root), "") for root in roots]  # noqa: PTH118 - pathlib is heavy
    inside = [root for root in inside if root != "/"]
    return os.pathsep.join(
        folder
        for folder in absolute_folders(search_path).split(os.pathsep)
        if not os.path.join(os.path.realpath(folder), "").startswith(tuple(inside))  # noqa: PTH118 - so
    )


def find_git(*roots: str | os.PathLike[str]) -> str | None:
    """Return the path of git, or None; a git in `roots` belongs to the project and is not used."""
    return find_program("git", outside_folders(os.environ.get("PATH", os.defpath), roots))


def has_browser(environ: Mapping[str, str], platform: str) -> bool:
    """Return whether a graphical browser is available; a text browser would use the terminal."""
    if environ.get("BROWSER"):
        return True
    if environ.get("SSH_CONNECTION") and not environ.get("DISPLAY"):
        return False
    return platform == "darwin" or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))
