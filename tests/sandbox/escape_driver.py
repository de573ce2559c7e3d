"""Runs the programs of `escapes.toml` one after the other; stands within the sandbox.

    python -I escape_driver.py CASES RESULTS

CASES is a JSON list of cases. RESULTS gets one JSON array for each: its name, its exit status and
what it wrote. A program in Python has the names of this module; it succeeds if it raises nothing.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import glob
import json
import mmap
import os
import platform
import select
import signal
import socket
import struct
import sys
import time
from typing import TypedDict

# What programs use without importing it.
NAMES = (errno, fcntl, glob, mmap, socket, struct)
SECONDS = 4.0  # for one case
LINGER = 0.3  # seconds for what a case left to close its output
OUTPUT = 200_000  # bytes
REFUSALS = {errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EAFNOSUPPORT}

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
ARM = platform.machine() == "aarch64"
NUMBERS = {  # x86_64, aarch64
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "unshare": (272, 97),
    "setns": (308, 268),
    "clone": (56, 220),
    "clone3": (435, 435),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "mount_setattr": (442, 442),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "restart": (169, 142),
    "syslog": (103, 116),
    "fanotify_init": (300, 262),
    "settimeofday": (164, 170),
    "swapon": (167, 224),
    "acct": (163, 89),
    "renameat2": (316, 276),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138),
    "prlimit64": (302, 261),
    "kcmp": (312, 272),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "chroot": (161, 51),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "fchmodat2": (452, 452),
    "openat2": (437, 437),
    "open_tree_attr": (467, 467),
}


def syscall(name: str, *arguments: object) -> int:
    """Make a system call; raises OSError where it fails."""
    converted = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    result = int(libc.syscall(ctypes.c_long(NUMBERS[name][ARM]), *converted))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def permitted(name: str, *arguments: object) -> None:
    """Make a call with arguments that do no harm; raises OSError only where it is not permitted."""
    try:
        syscall(name, *arguments)
    except OSError as error:
        if error.errno in REFUSALS:
            raise


def seen() -> list[int]:
    """The process outside that belongs to this case, if /proc shows it."""
    wanted = f"escape-victim-{os.environ['CASE']}\0".encode()
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                if file.read() == wanted:
                    found.append(int(path.split("/")[2]))
        except OSError:
            continue
    return found


def victims() -> list[int]:
    """The same, or its number if that is not another process's; fails where neither is known."""
    number = int(os.environ["VICTIM"])
    found = seen() or [number] * (not os.path.exists(f"/proc/{number}"))
    if not found:
        raise ProcessLookupError("no such process is seen")
    return found


def talk(family: int, kind: int, address: object) -> None:
    """Connect to a server outside and say which case it is."""
    with socket.socket(family, kind) as connection:
        connection.settimeout(1)
        connection.connect(address)  # type: ignore[arg-type]
        connection.send(os.environ["CASE"].encode())
        if kind == socket.SOCK_STREAM:
            connection.recv(1)  # a byte, if there is a server


def read(path: str) -> None:
    """Print a file."""
    with open(path, "rb") as file:
        os.write(1, file.read(1_000_000))


def append(path: str, *, make: bool = False) -> None:
    """Add a line with the case's name to a file; `make` makes its folder first."""
    if make:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "ab") as file:
        file.write(b"escaped: " + os.environb[b"CASE"] + b"\n")


class Case(TypedDict, total=False):
    """What it gets of a case."""

    name: str
    cwd: str
    environ: dict[str, str]
    sh: str
    py: str


def run(case: Case) -> tuple[int | None, bytes]:
    """Run a case; returns its exit status, None if it was ended, and what it wrote."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        start(case, writing)
    os.close(writing)
    output, status, deadline = b"", None, time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if status is None and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            deadline = min(deadline, time.monotonic() + LINGER)
        if select.select([reading], [], [], 0.01)[0]:
            piece = os.read(reading, 65_536)
            output = (output + piece)[:OUTPUT]
            if not piece and status is not None:
                break
            if not piece:
                time.sleep(0.002)
    if status is None:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    os.close(reading)
    return status, output


def start(case: Case, writing: int) -> None:
    """Become a case's program."""
    os.setpgid(0, 0)
    os.dup2(writing, 1)
    os.dup2(writing, 2)
    os.environ |= case["environ"]
    os.chdir(case["cwd"])
    status = 1
    try:
        if "sh" in case:
            os.execv("/bin/sh", ["sh", "-c", case["sh"]])
        exec(compile(case["py"], case["name"], "exec"), globals())
        status = 0
    except BaseException as error:  # noqa: BLE001 - whatever the program raises is its failure
        print(f"{type(error).__name__}: {error}", flush=True)
    finally:
        os._exit(status)


def main(cases: str, results: str) -> None:
    """Run all cases."""
    with open(cases) as file:
        todo = json.load(file)
    with open(results, "a") as file:
        for case in todo:
            status, output = run(case)
            file.write(json.dumps([case["name"], status, output.decode("utf-8", "replace")]) + "\n")
            file.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
