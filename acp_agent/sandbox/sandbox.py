"""The sandbox of a session's programs, with what this machine has for it."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.config.public_addresses import Resolve
from acp_agent.config.sandbox_types import SandboxConfig
from acp_agent.platform.programs import find_program
from acp_agent.sandbox.bubblewrap import bubblewrap_options, limited, memory_limit
from acp_agent.sandbox.host_rules import HostRules
from acp_agent.sandbox.launch import CommandNetwork, Launch
from acp_agent.sandbox.policy import MountKind, SandboxPolicy
from acp_agent.sandbox.seccomp import system_call_filter

if TYPE_CHECKING:  # needed by the first command
    from acp_agent.sandbox.git_folders import GitFolders
    from acp_agent.sandbox.watch import SandboxWatch, Surroundings, WatchedCommand

_FRESH = 20.0  # seconds for which a look for secrets counts
_PROBE_LIMIT = 10.0  # seconds
_ERROR_LENGTH = 200  # characters of what a program said that are quoted
_USER_NAMESPACES = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")


class Unavailable(Struct, frozen=True):
    """Why programs cannot be confined here, and what the user can do about it."""

    reason: str
    remedy: str

    def __str__(self) -> str:
        """Return both in a sentence."""
        remedy = f" To have one, {self.remedy}." if self.remedy else ""
        return f"Commands run without a sandbox: {self.reason}.{remedy}"


class Backend(Protocol):
    """A way of this machine to confine programs."""

    def launch(
        self,
        argv: Sequence[str],
        *,
        mounts: Sequence[tuple[str, MountKind]],
        policy: SandboxPolicy,
        cwd: str,
        environ: Mapping[str, str],
        network: CommandNetwork | None = None,
    ) -> Launch:
        """Return how a program is started so that it is confined."""
        ...


class Bubblewrap:
    """A `Backend`: bubblewrap.

    Args:
        program: the path of bwrap.
        new_user: whether it takes a user namespace where it would not need one.
        sizes: whether it can limit the size of what is kept in memory (bwrap 0.7).
    """

    def __init__(self, program: str, *, new_user: bool, sizes: bool = True) -> None:
        self.program = program
        self.new_user = new_user
        self._sizes = sizes
        self._filters: dict[tuple[bool, int | None], int] = {}

    def filter_descriptor(self, *, sockets: bool, shared_bytes: int | None = None) -> int:
        """Return a new descriptor of the filter of system calls; see `system_call_filter`."""
        key = sockets, shared_bytes
        if key not in self._filters:
            program = system_call_filter(sockets=sockets, shared_bytes=shared_bytes) or b""
            self._filters[key] = _filter_file(program)
        return os.open(f"/proc/self/fd/{self._filters[key]}", os.O_RDONLY | os.O_CLOEXEC)

    def launch(
        self,
        argv: Sequence[str],
        *,
        mounts: Sequence[tuple[str, MountKind]],
        policy: SandboxPolicy,
        cwd: str,
        environ: Mapping[str, str],
        network: CommandNetwork | None = None,
    ) -> Launch:
        """Return how a program is started; see `Backend`."""
        memory = memory_limit(policy.config.limits)
        options = bubblewrap_options(
            mounts,
            temporary=policy.temporary,
            cwd=cwd,
            new_user=self.new_user,
            proxy=None if network is None else network.path,
            shared_bytes=memory if self._sizes else None,
        )
        environ = policy.environ(environ)
        if network is not None:
            argv, environ = [*network.command, *argv], environ | network.environ
        descriptor = self.filter_descriptor(sockets=True, shared_bytes=memory)
        command = [self.program, *options, "--seccomp", str(descriptor), "--"]
        command += limited(argv, policy.config.limits)
        return Launch(tuple(command), environ, (descriptor,), network)


def find_backend(search_path: str | None) -> Backend | Unavailable:
    """Return what confines programs here, tried with a real one. Blocks: call it in a thread.

    Args:
        search_path: the PATH variable to look for programs in; None takes the process's own.
    """
    if platform.system() != "Linux":
        return Unavailable("this system has no sandbox that is supported", "")
    if system_call_filter() is None:
        return Unavailable(f"the sandbox does not know {platform.machine()} processors", "")
    program = find_program("bwrap", search_path)
    if program is None:
        return Unavailable("bubblewrap is not installed", "install the package `bubblewrap`")
    said = ""
    for sizes, new_user in ((True, False), (True, True), (False, False), (False, True)):
        backend = Bubblewrap(program, new_user=new_user, sizes=sizes)
        said = _problem(backend)
        if not said:
            return backend
    return Unavailable(f"bubblewrap does not work here ({said})", _remedy())


class Sandbox:
    """Confines the programs of a session.

    Args:
        backend: what confines them.
        policy: what they may do, given the folder that they have as /tmp.
    """

    def __init__(self, backend: Backend, policy: SandboxPolicy) -> None:
        self._backend = backend
        self._policy = policy
        self._mounts: dict[bool, list[tuple[str, MountKind]]] = {}
        self._secret: tuple[float, list[str]] = (0.0, [])  # when it was looked for, and found
        self._networks = 0
        self._watch: SandboxWatch | None = None

    @property
    def policy(self) -> SandboxPolicy:
        """What the programs may do."""
        return self._policy

    async def launch(
        self,
        argv: Sequence[str],
        cwd: Path,
        environ: Mapping[str, str],
        *,
        only_reads: bool,
        alone: bool,
        hosts: Sequence[str] = (),
        resolve: Resolve,
    ) -> Launch:
        """Return how a program is started.

        Args:
            argv: the program and its arguments.
            cwd: the folder that it starts in.
            environ: its environment.
            only_reads: it may change nothing.
            alone: no other confined program of the session runs, which could exchange folders for
                links while they are looked at.
            hosts: what it may reach beside what the configuration allows.
            resolve: gives a host's addresses.

        Raises:
            ConfigError: a host cannot be named so.
            OSError: the folder for temporary files, or the proxy's socket, cannot be made.
        """
        given = self._policy.config.network
        network: CommandNetwork | None = None
        if not only_reads and (hosts or given.allowed_domains):
            self._networks += 1
            rules = HostRules([*given.allowed_domains, *hosts], given.denied_domains)
            path = Path(f"{self._policy.temporary}.{self._networks}")
            network = await CommandNetwork.open(rules, path, resolve)

        def prepare() -> Launch:
            os.makedirs(self._policy.temporary, mode=0o700, exist_ok=True)  # noqa: PTH103 - in a thread
            surroundings: Surroundings | None = None
            if alone or only_reads not in self._mounts:
                # No confined program can make any of it, and the user seldom does.
                if not self._secret[0] or time.monotonic() > self._secret[0] + _FRESH:
                    self._secret = time.monotonic(), self._policy.secret_paths()
                repositories = [] if only_reads else self._policy.repositories()
                self._mounts[only_reads] = self._policy.mounts(
                    only_reads=only_reads, secret=self._secret[1], repositories=repositories
                )
                if not only_reads:
                    surroundings = self._surroundings(repositories)
            launch = self._backend.launch(
                argv,
                mounts=self._mounts[only_reads],
                policy=self._policy,
                cwd=os.path.realpath(cwd),
                environ=environ,
                network=network,
            )
            if only_reads:
                return launch
            return replace(launch, watched=self._watched(surroundings))

        try:
            return await asyncio.to_thread(prepare)
        except BaseException:
            if network is not None:
                await network.aclose()
            raise

    def allow_new_file(self, path: str) -> None:
        """Leave a file in place that this program is about to write while commands run."""
        if self._watch is not None:
            self._watch.allow(path)

    def _watched(self, surroundings: Surroundings | None) -> WatchedCommand:
        from acp_agent.sandbox.process_limits import ProcessLimits  # noqa: PLC0415 - when first needed
        from acp_agent.sandbox.watch import SandboxWatch  # noqa: PLC0415 - so

        if self._watch is None:
            self._watch = SandboxWatch()
        given = self._policy.config.limits
        limits = ProcessLimits(given.processes, memory_limit(given))
        return self._watch.start(surroundings, limits)

    def _surroundings(self, repositories: Sequence[GitFolders]) -> Surroundings:
        from acp_agent.sandbox.new_files import NewFiles  # noqa: PLC0415 - when first needed
        from acp_agent.sandbox.new_repositories import NewRepositories  # noqa: PLC0415 - so
        from acp_agent.sandbox.watch import Surroundings  # noqa: PLC0415 - so

        writable = [path for path, kind in self._mounts[False] if kind == "write"]
        return Surroundings(
            NewFiles(self._policy.protected_paths()),
            [NewRepositories(found) for found in repositories],
            tuple(writable),
        )

    async def aclose(self) -> None:
        """Remove the temporary files."""
        await asyncio.to_thread(shutil.rmtree, self._policy.temporary, ignore_errors=True)


def _filter_file(program: bytes) -> int:
    descriptor = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    os.write(descriptor, program)
    return descriptor


def _problem(backend: Backend) -> str:
    """Return what goes wrong where a program is confined; empty where nothing does."""
    with tempfile.TemporaryDirectory(prefix="acp-agent-") as folder:
        policy = SandboxPolicy(
            roots=(),
            home=folder,
            own=(),
            readable=(),
            temporary=folder,
            search_path="",
            config=SandboxConfig(),
        )
        launch = backend.launch(["true"], mounts=[], policy=policy, cwd="/", environ=os.environ)
        try:
            ran = subprocess.run(
                launch.argv,
                env=launch.environ,
                pass_fds=launch.descriptors,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PROBE_LIMIT,
                start_new_session=True,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)[:_ERROR_LENGTH]
        finally:
            launch.close_descriptors()
    if ran.returncode == 0:
        return ""
    said = ran.stderr.decode("utf-8", "replace").strip().splitlines()
    return (said[-1] if said else f"exit code {ran.returncode}")[:_ERROR_LENGTH]


def _remedy() -> str:
    try:
        restricted = _USER_NAMESPACES.read_text("ascii").strip() == "1"
    except OSError:
        restricted = False
    if restricted:
        return (
            "AppArmor forbids user namespaces; allow them for bwrap with a profile in "
            "/etc/apparmor.d (`abi <abi/4.0>, profile bwrap /usr/bin/bwrap flags=(unconfined) "
            "{ userns, }`)"
        )
    if any(Path(name).exists() for name in ("/.dockerenv", "/run/.containerenv")):
        return (
            "containers forbid namespaces; start this one with `--security-opt seccomp=unconfined "
            "--security-opt apparmor=unconfined --security-opt systempaths=unconfined`"
        )
    return "allow unprivileged user namespaces (`sysctl user.max_user_namespaces`)"
