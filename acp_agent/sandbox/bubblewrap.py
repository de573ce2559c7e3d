"""Confines programs with bubblewrap: namespaces and mounts of their own (bwrap(1))."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from acp_agent.config.sandbox_types import SandboxLimitsConfig
from acp_agent.sandbox.launch import PROXY_SOCKET
from acp_agent.sandbox.policy import TEMPORARY, MountKind, kind_of, visible_in_run

# A process of its own for the kernel's limits: they are to count from inside the namespaces.
_LIMITS = (
    "ulimit -u {processes} 2>/dev/null || ulimit -p {processes} 2>/dev/null; "
    "ulimit -d {memory} 2>/dev/null; ulimit -f {blocks}; ulimit -c 0; "
    'exec "$@"'
)
_BLOCK = 512  # bytes (POSIX.1-2017, ulimit)
# As root among files of others: what its user could do with them outside as well.
_OTHERS_FILES = ("CAP_DAC_OVERRIDE", "CAP_CHOWN", "CAP_FOWNER")


def bubblewrap_options(
    mounts: Sequence[tuple[str, MountKind]],
    *,
    temporary: str,
    cwd: str,
    new_user: bool = False,
    proxy: str | None = None,
    shared_bytes: int | None = None,
) -> list[str]:
    """Return the options of bwrap for a program.

    Args:
        mounts: what the policy says of files, a folder before what is below it.
        temporary: the folder that the program has as /tmp.
        cwd: the folder that it starts in.
        new_user: whether it gets a user namespace where bwrap would not need one.
        proxy: the socket of the proxy through which it reaches the network; None: it does not.
        shared_bytes: how much memory may be shared as files; None: this bwrap cannot limit it.
    """
    options = ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    options += ["--unshare-net"]
    options += ["--unshare-user"] if new_user else []
    options += ["--die-with-parent", "--cap-drop", "ALL"]
    if os.geteuid() == 0 and not new_user and any(_is_others(*mount) for mount in mounts):
        for capability in _OTHERS_FILES:
            options += ["--cap-add", capability]
    options += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run"]
    if shared_bytes is not None:
        options += ["--size", str(shared_bytes), "--perms", "1777", "--tmpfs", "/dev/shm"]  # noqa: S108 - own
    if os.geteuid() == 0:
        # Settings of the whole machine, which root's user id may change without any capability.
        options += ["--ro-bind", "/proc/sys", "/proc/sys"]
    for folder in visible_in_run():
        options += ["--ro-bind", folder, folder]
    options += ["--ro-bind", proxy, PROXY_SOCKET] if proxy is not None else []
    for folder in (TEMPORARY, "/var/tmp"):  # noqa: S108 - it is the session's own
        options += ["--bind", temporary, folder]
    for path, kind in mounts:
        if kind == "hide":
            options += _hide(path)
        else:
            options += ["--bind-try" if kind == "write" else "--ro-bind-try", path, path]
    for path in _sockets(mounts):
        options += _hide(path)
    return [*options, "--chdir", cwd]


def limited(argv: Sequence[str], limits: SandboxLimitsConfig) -> list[str]:
    """Return a command that runs another with limits."""
    memory = memory_limit(limits)
    script = _LIMITS.format(
        processes=limits.processes, memory=memory // 1024, blocks=limits.file_bytes // _BLOCK
    )
    return ["/bin/sh", "-c", script, "sh", *argv]


def memory_limit(limits: SandboxLimitsConfig) -> int:
    """Return the bytes of memory that a process may take."""
    if limits.memory_bytes is not None:
        return limits.memory_bytes
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4


def _is_others(path: str, kind: MountKind) -> bool:
    with suppress(OSError):
        return kind == "write" and os.stat(path).st_uid != 0  # noqa: PTH116 - as below
    return False


def _hide(path: str) -> list[str]:
    if os.path.isdir(path):  # noqa: PTH112 - pathlib is slow, and there are many
        return ["--perms", "0555", "--tmpfs", path]
    return ["--ro-bind", "/dev/null", path]


def _sockets(mounts: Sequence[tuple[str, MountKind]]) -> Iterator[str]:
    """Yield the sockets of programs outside, which can be connected to though nothing is written.

    Those in folders that may be changed are left: they are the project's.
    """
    with suppress(OSError):
        lines = Path("/proc/net/unix").read_text("utf-8", "surrogateescape").splitlines()[1:]
        kinds = dict(mounts)
        for path in {line.split(maxsplit=7)[7] for line in lines if line.count(" /")}:
            if path.startswith("/") and os.path.exists(path):  # noqa: PTH110 - as above
                found = os.path.realpath(path)
                if kind_of(found, kinds) == "read":
                    yield found
