"""Give a command a process namespace, in which it does not see other processes.

Landlock does not hide the names and arguments of processes. See pid_namespaces(7).

A module of the launcher: it imports nothing of this package.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # `signal` without its enumerations; has no stub
import os
import sys

from kernel import call  # type: ignore[import-not-found] # a file in this folder

# linux/sched.h, sys/mount.h, linux/prctl.h, linux/landlock.h
_NEW_MOUNTS, _NEW_USER, _NEW_PROCESSES = 0x20000, 0x10000000, 0x20000000
_READ_ONLY_FLAGS = 0b1110  # MS_NOSUID, MS_NODEV and MS_NOEXEC
_RECURSIVE, _PRIVATE = 1 << 14, 1 << 18
_DEATH_SIGNAL = 1
_PATH_BENEATH = 1
_READ = 0b1101  # execute files, read files, list folders


def enter(ruleset: int) -> None:
    """Continue in a new process namespace; returns in a new process only.

    This process and the first one of the namespace wait, and exit with the status of the new one.
    When one of them ends, all processes of the namespace do.

    Args:
        ruleset: the descriptor of the Landlock ruleset, which gets a grant for the new /proc.

    Raises:
        OSError: the namespace cannot be created.
    """
    user, group = os.geteuid(), os.getegid()
    call("unshare", _NEW_PROCESSES | _NEW_MOUNTS | (_NEW_USER if user else 0))
    if user:
        for name, line in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(line)
    _fork_and_wait()
    call("mount", None, b"/", None, _RECURSIVE | _PRIVATE, None)  # nothing is mounted outside
    call("mount", b"proc", b"/proc", b"proc", _READ_ONLY_FLAGS, None)
    folder = os.open("/proc", os.O_PATH)
    rule = _READ.to_bytes(8, sys.byteorder) + folder.to_bytes(4, sys.byteorder)
    call("landlock_add_rule", ruleset, _PATH_BENEATH, rule, 0)
    os.close(folder)
    _fork_and_wait()


def _fork_and_wait() -> None:
    """Fork; return in the child. The parent reaps until it ends, and exits with its status."""
    child = os.fork()
    if child == 0:
        call("prctl", _DEATH_SIGNAL, _signal.SIGKILL, 0, 0, 0)
        return
    os.setpgid(0, 0)  # what ends the command's group must leave this process to the end
    os.closerange(0, os.sysconf("SC_OPEN_MAX"))
    reaped, status = os.wait()
    while reaped != child:
        reaped, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)
