"""POSIX functions: signals, process groups, file locks, private files."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from acp_agent.platform.programs import find_program

_PROC = Path("/proc")  # Linux
_PR_SET_DUMPABLE = 4  # linux/prctl.h
_LOCK_STEP = 0.01  # seconds between two attempts


def forbid_inspection() -> None:
    """Keep other processes of this user from reading our memory and environment, on Linux.

    A command that the model writes runs as the user, and could read the keys in `/proc/PID/environ`
    else. The programs that this process starts do not inherit it.
    """
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415 - takes 3 ms, which the answer to `initialize` does not wait for

    with contextlib.suppress(OSError, AttributeError):  # a C library without it
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def shutdown_signals() -> Sequence[signal.Signals]:
    """The signals that ask this process to end, without Ctrl-C.

    A SIGHUP that is ignored from the start, as `nohup` does it, stays ignored.
    """
    hung_up = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
    return (signal.SIGTERM, signal.SIGHUP) if hung_up else (signal.SIGTERM,)


def try_lock(descriptor: int) -> bool:
    """Take an exclusive lock on an open file; false when another process has it.

    The lock goes with the process, however that ends.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(descriptor: int, seconds: float) -> None:
    """Take an exclusive lock on an open file. Blocks.

    Raises:
        TimeoutError: another process has it for longer.
    """
    deadline = time.monotonic() + seconds
    while not try_lock(descriptor):
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(_LOCK_STEP)


@contextlib.contextmanager
def locked(file: Path, seconds: float) -> Iterator[None]:
    """Have the lock of a private file, whose folder is made where there is none. Blocks.

    It is on a file beside it, since whoever changes the file replaces it.

    Raises:
        TimeoutError: another process has it for longer than `seconds`.
        OSError: the folder cannot be written.
    """
    make_private_folder(file.parent)
    lock = file.with_name(f"{file.name}.lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        wait_for_lock(descriptor, seconds)
        yield
    finally:
        os.close(descriptor)


def make_private(path: Path) -> None:
    """Let nobody but the owner read, write or (a folder) enter `path`."""
    path.chmod(0o700 if path.is_dir() else 0o600)


def is_private(path: Path) -> bool:
    """Whether nobody but the owner may read or write `path`. Raises OSError where it is not."""
    return path.stat().st_mode & 0o077 == 0


def end_group(leader: int, *, at_once: bool) -> None:
    """Ask every process of a group to end, or end it `at_once`. Silent when it is gone."""
    try:
        os.killpg(leader, signal.SIGKILL if at_once else signal.SIGTERM)
    except (ProcessLookupError, PermissionError):
        return


def ask_members_to_end(leader: int) -> None:
    """Ask the processes of a group to end, but not its leader. Only Linux names them.

    Reads many small files: call it in a thread.
    """
    for process, _, group in _process_states():
        if group == leader and process != leader:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGTERM)


def group_alive(leader: int) -> bool:
    """Whether a process of the group is left (zombies not yet reaped count)."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def find_shell(search_path: str | None) -> str:
    """The shell that runs commands: bash where there is one, else the system's `sh`.

    Args:
        search_path: the PATH variable to look in; None takes the process's own.
    """
    return find_program("bash", search_path) or "/bin/sh"


def signal_name(number: int) -> str:
    """A signal's name, such as SIGKILL; a number without a name gives `signal N`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def group_runs(leader: int) -> bool:
    """Whether a process of the group still runs. Linux tells zombies apart; elsewhere they count.

    A zombie is ended already and waits for its parent, which for an orphan is the system's init.
    May read many small files: call it in a thread.
    """
    if not group_alive(leader):
        return False
    states = [
        state for _, state, group in _process_states() if group == leader and state not in "ZX"
    ]
    return bool(states) or not _PROC.is_dir()


def marked_processes(mark: str) -> list[int]:
    """Ids of this user's processes with a variable in their environment that begins with `mark`.

    `mark` is written `NAME=beginning of the value`. This finds processes that left their group and
    session on purpose. Only Linux shows the environment of processes; elsewhere the list is empty.
    Reads many small files: call it in a thread.
    """
    wanted = mark.encode()
    found: list[int] = []
    for process in _process_ids():
        try:
            environment = (_PROC / str(process) / "environ").read_bytes()
        except OSError:  # ended meanwhile, or another user's
            continue
        if process != os.getpid() and (b"\0" + wanted) in (b"\0" + environment):
            found.append(process)
    return found


def _process_ids() -> list[int]:
    try:
        return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    except OSError:
        return []


def _process_states() -> list[tuple[int, str, int]]:
    """Id, state letter and group of every process: proc(5), /proc/[pid]/stat."""
    states: list[tuple[int, str, int]] = []
    for process in _process_ids():
        try:
            line = (_PROC / str(process) / "stat").read_text("utf-8", "replace")
        except OSError:
            continue
        # The second field is the program's name in parentheses, and may hold anything.
        state, _parent, group = line.rpartition(")")[2].split()[:3]
        states.append((process, state, int(group)))
    return states


def group_memory(leader: int) -> int:
    """Return the resident memory in bytes of all processes of a group; 0 where it is not known.

    Only Linux shows it. Reads many small files: call it in a thread.
    """
    pages = 0
    for process, _, group in _process_states():
        if group == leader:
            try:
                pages += int((_PROC / str(process) / "statm").read_text("ascii").split()[1])
            except (OSError, ValueError, IndexError):
                continue
    return pages * os.sysconf("SC_PAGE_SIZE")


def end_process(process: int) -> None:
    """End one process at once. Silent when it is gone."""
    try:
        os.kill(process, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def release_memory() -> None:
    """Give memory that was freed back to the system, where the C library keeps it (glibc)."""
    import ctypes  # noqa: PLC0415 - rarely needed

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def make_private_folder(folder: Path) -> None:
    """Make `folder` and its parents; those that are new are their owner's alone.

    Raises:
        OSError: it cannot be made.
    """
    if folder.is_dir():
        return
    make_private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def write_private(path: Path, content: bytes) -> None:
    """Put `content` into `path` in one step: a reader finds the old content or the new, whole.

    The file is readable by its owner alone from its first byte on. A symlink stays one: the file
    that it points to is replaced.

    Raises:
        OSError: it cannot be written; the old content is as it was.
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
