"""Confine programs with bubblewrap, in separate namespaces and mounts (bwrap(1))."""

from __future__ import annotations

import os
import platform
import resource
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from acp_agent.config.sandbox_types import SandboxLimitsConfig
from acp_agent.sandbox.launch import (
    PROXY_SOCKET,
    Launch,
    SandboxedProgram,
    without_loader_variables,
)
from acp_agent.sandbox.policy import (
    TEMPORARY,
    MountKind,
    SandboxPolicy,
    mount_kind,
    needs_file_capabilities,
    visible_run_folders,
)
from acp_agent.sandbox.seccomp import system_call_filter

# A shell sets the limits inside the namespaces, so that processes outside do not count.
_LIMITS = (
    "ulimit -u {processes} 2>/dev/null || ulimit -p {processes} 2>/dev/null; "
    "ulimit -d {memory} 2>/dev/null; ulimit -f {blocks}; ulimit -c 0; "
    'exec "$@"'
)
_RESTRICT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "restrict.pl")  # noqa: PTH118, PTH120 - strings
_SET_LIMIT = {"x86_64": 302, "aarch64": 261}  # the number of prlimit64
_WRITABLE = (TEMPORARY, "/dev", "/proc")  # file systems of the sandbox's own
_BLOCK = 512  # bytes (POSIX.1-2017, ulimit)
# Capabilities that root needs in folders of other users; it has them outside as well.
_FILE_CAPABILITIES = ("CAP_DAC_OVERRIDE", "CAP_CHOWN", "CAP_FOWNER")


class Bubblewrap:
    """A `Backend`: bubblewrap.

    Args:
        new_user: whether to use a user namespace even if bwrap would not need one.
        sizes: whether it can limit the size of file systems in memory (bwrap 0.7).
        perl: the path of perl, which also restricts named pipes; None to restrict none.
    """

    name = "bubblewrap"
    has_network = True
    notice = ""

    def __init__(
        self, program: str, *, new_user: bool, sizes: bool = True, perl: str | None = None
    ) -> None:
        self.program = program
        self.new_user = new_user
        self.perl = perl
        self._sizes = sizes
        self._filters: dict[tuple[bool, int | None], int] = {}
        self._sockets = UnixSockets()

    @property
    def for_helpers(self) -> Bubblewrap:
        """This backend itself; see `Backend`."""
        return self

    def temporary(self, policy: SandboxPolicy) -> str:
        """Return the path of the temporary folder; see `Backend`."""
        del policy
        return TEMPORARY

    def filter_descriptor(self, *, sockets: bool, shared_bytes: int | None = None) -> int:
        """Return a new descriptor of the filter of system calls; see `system_call_filter`."""
        key = sockets, shared_bytes
        if key not in self._filters:
            program = system_call_filter(sockets=sockets, shared_bytes=shared_bytes) or b""
            descriptor = os.memfd_create("seccomp", os.MFD_CLOEXEC)
            os.write(descriptor, program)
            self._filters[key] = descriptor
        return os.open(f"/proc/self/fd/{self._filters[key]}", os.O_RDONLY | os.O_CLOEXEC)

    def _hidden_sockets(self, mounts: Sequence[tuple[str, MountKind]]) -> list[str]:
        """Return the sockets to hide; those in writable folders belong to the project."""
        kinds = dict(mounts)
        return [path for path in self._sockets.find() if mount_kind(path, kinds) == "read"]

    def launch(self, program: SandboxedProgram) -> Launch:
        """Return how to start a program; see `Backend`."""
        argv, mounts, policy, cwd, environ, network = program
        limits = policy.config.limits
        memory = memory_limit(limits)
        options = bubblewrap_options(
            mounts,
            temporary=policy.temporary,
            cwd=cwd,
            new_user=self.new_user,
            proxy=None if network is None else network.path,
            sockets=self._hidden_sockets(mounts),
            shared_bytes=memory if self._sizes else None,
        )
        environ = policy.environ(environ, offline=network is None)
        if network is not None:
            argv, environ = [*network.command, *argv], environ | network.environ
        descriptor = self.filter_descriptor(sockets=True, shared_bytes=memory)
        environ, loader_variables = without_loader_variables(environ)
        if self.perl is not None:
            loader_variables["PERL_BADLANG"] = "0"  # no warning about a missing locale (perlrun(1))
        for name, value in loader_variables.items():
            options += ["--setenv", name, value]
        command = [self.program, *options, "--seccomp", str(descriptor), "--"]
        if self.perl is None:
            command += limit_command(argv, limits)
        else:
            writable = [path for path, kind in mounts if kind == "write"]
            command += restrict_command(self.perl, argv, limits, [*_WRITABLE, *writable])
        return Launch(tuple(command), environ, (descriptor,), network)


def bubblewrap_options(
    mounts: Sequence[tuple[str, MountKind]],
    *,
    temporary: str,
    cwd: str,
    new_user: bool = False,
    proxy: str | None = None,
    sockets: Iterable[str] = (),
    shared_bytes: int | None = None,
) -> list[str]:
    """Return the options of bwrap for a program.

    Args:
        mounts: the mounts of the policy, parents before children.
        temporary: the folder that the program sees as /tmp.
        new_user: whether to use a user namespace even if bwrap would not need one.
        proxy: the proxy's socket; None for no network.
        sockets: sockets of programs outside that it must not see.
        shared_bytes: the size of /dev/shm; None if this bwrap cannot limit it.
    """
    options = ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    options += ["--unshare-net"]
    options += ["--unshare-user"] if new_user else []
    options += ["--die-with-parent", "--cap-drop", "ALL"]
    if not new_user and needs_file_capabilities(mounts):
        for capability in _FILE_CAPABILITIES:
            options += ["--cap-add", capability]
    options += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run"]
    if shared_bytes is not None:
        options += ["--size", str(shared_bytes), "--perms", "1777", "--tmpfs", "/dev/shm"]  # noqa: S108 - own
    if os.geteuid() == 0:
        # Settings of the whole machine, which root can change even without capabilities.
        options += ["--ro-bind", "/proc/sys", "/proc/sys"]
    for folder in visible_run_folders():
        options += ["--ro-bind", folder, folder]
    options += ["--ro-bind", proxy, PROXY_SOCKET] if proxy is not None else []
    for folder in (TEMPORARY, "/var/tmp"):  # noqa: S108 - the session's folder
        options += ["--bind", temporary, folder]
    for path, kind in mounts:
        if kind == "hide":
            options += _hide(path)
        else:
            options += ["--bind-try" if kind == "write" else "--ro-bind-try", path, path]
    for path in sockets:
        options += _hide(path)
    empty = [path for path, kind in mounts if kind == "hide" and os.path.isdir(path)]
    for path in ["/run", "/dev", *empty]:  # tmpfs memory does not count towards process limits
        options += ["--remount-ro", path]
    return [*options, "--chdir", cwd]


def limit_command(argv: Sequence[str], limits: SandboxLimitsConfig) -> list[str]:
    """Return a command that runs another command with limits."""
    memory = memory_limit(limits)
    script = _LIMITS.format(
        processes=limits.processes, memory=memory // 1024, blocks=limits.file_bytes // _BLOCK
    )
    return ["/bin/sh", "-c", script, "sh", *argv]


def restrict_command(
    perl: str, argv: Sequence[str], limits: SandboxLimitsConfig, writable: Sequence[str]
) -> list[str]:
    """Return a command that runs another command with limits, and without named pipes.

    Args:
        writable: files and folders in which it may open named pipes.
    """
    values = {
        resource.RLIMIT_NPROC: limits.processes,
        resource.RLIMIT_DATA: memory_limit(limits),
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_CORE: 0,
    }
    limit_arguments = [f"{kind}={limit}" for kind, limit in values.items()]
    return [
        perl,
        _RESTRICT,
        str(_SET_LIMIT[platform.machine()]),
        *limit_arguments,
        *writable,
        "--",
        *argv,
    ]


def memory_limit(limits: SandboxLimitsConfig) -> int:
    """Return the memory limit of a process in bytes."""
    if limits.memory_bytes is not None:
        return limits.memory_bytes
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4


def _hide(path: str) -> list[str]:
    if os.path.isdir(path):
        return ["--perms", "0555", "--tmpfs", path]
    return ["--ro-bind", "/dev/null", path]


# See unix(7): the seventh column is the socket's number, the eighth its name.
_LIST = Path("/proc/net/unix")


class UnixSockets:
    """The sockets that have a name in a file system."""

    def __init__(self) -> None:
        self._relative: dict[str, str] = {}  # absolute paths of sockets by number; "" if unknown

    def find(self) -> set[str]:
        """Return the resolved paths of all sockets and pipes in folders that have a socket."""
        paths: set[str] = set()
        relative: dict[str, str] = {}
        with suppress(OSError), _LIST.open(encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                fields = line.rstrip("\n").split(maxsplit=7)
                if len(fields) < 8 or fields[0] == "Num" or fields[7].startswith("@"):
                    continue
                if fields[7].startswith("/"):
                    paths.add(fields[7])
                else:
                    relative[fields[6]] = fields[7]
        unknown = relative.keys() - self._relative.keys()
        if unknown:
            self._relative |= dict.fromkeys(unknown, "") | _resolve(unknown, relative)
        paths.update(filter(None, map(self._relative.get, relative)))
        folders = {os.path.realpath(os.path.dirname(path)) for path in paths}  # noqa: PTH120 - strings
        return {*_special_files(folders), *map(os.path.realpath, filter(os.path.lexists, paths))}


def _resolve(numbers: Iterable[str], names: dict[str, str]) -> dict[str, str]:
    """Return the paths of sockets with relative names, from the folders of their processes."""
    numbers_by_link = {f"socket:[{number}]": number for number in numbers}
    paths: dict[str, str] = {}
    for process in os.listdir("/proc"):  # noqa: PTH208 - strings
        if process.isdecimal():
            with suppress(OSError), os.scandir(f"/proc/{process}/fd") as entries:
                for entry in entries:
                    number = numbers_by_link.get(os.readlink(entry.path))  # noqa: PTH115 - strings
                    if number is not None:
                        folder = os.readlink(f"/proc/{process}/cwd")  # noqa: PTH115 - strings
                        paths[number] = os.path.join(folder, names[number])  # noqa: PTH118 - strings
    return paths


def _special_files(folders: Iterable[str]) -> Iterable[str]:
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink() or entry.is_file() or entry.is_dir():
                    continue  # known without a stat call
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode):
                    yield entry.path
