"""Find a sandbox backend that works on this machine, by running a program in it."""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from acp_agent.config.sandbox_types import BackendName, SandboxConfig
from acp_agent.platform.posix import find_program
from acp_agent.sandbox.bubblewrap import Bubblewrap
from acp_agent.sandbox.launch import Backend, SandboxedProgram
from acp_agent.sandbox.policy import MountKind, SandboxPolicy
from acp_agent.sandbox.seccomp import system_call_filter

_PROBE_LIMIT = 10.0  # seconds
_ERROR_LENGTH = 200  # characters of a program's error that are quoted
_USER_NAMESPACES = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_BACKENDS_BY_SYSTEM: dict[str, tuple[BackendName, ...]] = {  # the preferred one first
    "Linux": ("bubblewrap", "landlock"),
    "Darwin": ("sandbox-exec",),
}


class Unavailable(Struct, frozen=True):
    """The reason why no program can be confined here, and what the user can do about it."""

    reason: str
    remedy: str

    def __str__(self) -> str:
        """Return the reason and the remedy as text."""
        remedy = f" To have one, {self.remedy}." if self.remedy else ""
        return f"Commands run without a sandbox: {self.reason}.{remedy}"


class _Probe(NamedTuple):
    """Runs a confined program, with its files in `folder`."""

    folder: str | None
    environ: Mapping[str, str]

    def error(
        self, backend: Backend, *, write: bool = False, argv: Sequence[str] = ("true",)
    ) -> str:
        """Return the error of a confined program; empty if it works.

        Args:
            write: also create a file, in a folder with a read-only file.
            argv: the program, unless `write` is set.
        """
        with tempfile.TemporaryDirectory(prefix="acp-agent-", dir=self.folder) as folder:
            policy = SandboxPolicy(roots=(), home=folder, temporary=folder, config=SandboxConfig())
            mounts: list[tuple[str, MountKind]] = []
            if write:
                writable, read_only = Path(folder, "made"), Path(folder, "made", "fixed")
                writable.mkdir()
                read_only.touch()
                mounts = [(str(writable), "write"), (str(read_only), "read")]
                argv = ["/bin/sh", "-c", ': > "$0/new"', str(writable)]
            try:
                launch = backend.launch(SandboxedProgram(argv, mounts, policy, "/", self.environ))
            except OSError as problem:
                return str(problem)[:_ERROR_LENGTH]
            try:
                result = subprocess.run(
                    launch.argv,
                    env=launch.environ,
                    pass_fds=launch.descriptors,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=_PROBE_LIMIT,
                    start_new_session=True,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired) as problem:
                return str(problem)[:_ERROR_LENGTH]
            finally:
                launch.close_descriptors()
                launch.end_others()
            if (
                write
                and not result.returncode
                and Path(folder, "made/new").stat().st_uid != os.geteuid()
            ):
                return "what it makes is another user's"
        if result.returncode == 0:
            return ""
        lines = result.stderr.decode("utf-8", "replace").strip().splitlines()
        return (lines[-1] if lines else f"exit code {result.returncode}")[:_ERROR_LENGTH]


def find_backend(
    search_path: str | None,
    choice: BackendName = "auto",
    image: str | None = None,
    *,
    folder: str | None = None,
    mark: Mapping[str, str] | None = None,
) -> Backend | Unavailable:
    """Return the first backend that works here. Runs programs: call it in a thread.

    Args:
        search_path: the PATH variable to search; None for that of this process.
        folder: the folder for temporary files; None for the system's.
        mark: environment variables that identify the programs.
    """
    probe = _Probe(folder, os.environ if mark is None else {**os.environ, **mark})
    if choice == "docker":
        return _find_docker(search_path, image, probe)
    names = _BACKENDS_BY_SYSTEM.get(platform.system(), ())
    if choice != "auto":
        names = tuple(name for name in names if name == choice)
    if not names:
        missing = "no sandbox that is supported" if choice == "auto" else f"no {choice}"
        return Unavailable(f"this system has {missing}", "")
    if platform.system() == "Linux" and system_call_filter() is None:
        return Unavailable(f"the sandbox does not know {platform.machine()} processors", "")
    problems: list[Unavailable] = []
    for name in names:
        if name == "bubblewrap":
            backend = _find_bubblewrap(search_path, probe)
        elif name == "landlock":
            why = problems[0].reason if problems else "the configuration wants it"
            backend = _find_landlock(why, probe)
        else:
            backend = _find_sandbox_exec(probe)
        if not isinstance(backend, Unavailable):
            return backend
        problems.append(backend)
    reason = ", and ".join(problem.reason for problem in problems)
    return Unavailable(reason, problems[0].remedy)


def _find_bubblewrap(search_path: str | None, probe: _Probe) -> Backend | Unavailable:
    program = find_program("bwrap", search_path)
    if program is None:
        return Unavailable("bubblewrap is not installed", "install the package `bubblewrap`")
    error = ""
    for sizes, new_user in ((True, False), (True, True), (False, False), (False, True)):
        backend = Bubblewrap(program, new_user=new_user, sizes=sizes)
        error = probe.error(backend)
        if not error:
            backend.perl = find_program("perl", search_path)
            if backend.perl is not None and probe.error(backend, write=True):
                backend.perl = None  # no Landlock, or its version 1
            return backend
    return Unavailable(f"bubblewrap does not work here ({error})", _remedy())


def _find_landlock(why: str, probe: _Probe) -> Backend | Unavailable:
    from acp_agent.sandbox.landlock.backend import OLDEST, Landlock  # noqa: PLC0415 - for few machines
    from acp_agent.sandbox.landlock.ruleset import landlock_version  # noqa: PLC0415 - so

    try:
        version = landlock_version()
    except OSError as missing:
        return Unavailable(f"the kernel has no Landlock ({missing.strerror})", "")
    if version < OLDEST:
        return Unavailable(f"the kernel's Landlock is too old (version {version})", "")
    error = ""
    for namespace in (True, False):
        backend = Landlock(version, why, namespace=namespace)
        error = probe.error(backend, write=True)
        if not error:
            return backend
    return Unavailable(f"Landlock does not work here ({error})", "")


def _find_sandbox_exec(probe: _Probe) -> Backend | Unavailable:
    from acp_agent.sandbox.sandbox_exec import SandboxExec  # noqa: PLC0415 - for few machines

    backend = SandboxExec()
    error = probe.error(backend, write=True)
    return Unavailable(f"sandbox-exec does not work here ({error})", "") if error else backend


def _find_docker(
    search_path: str | None, image: str | None, probe: _Probe
) -> Backend | Unavailable:
    from acp_agent.sandbox.docker import Docker, user_options  # noqa: PLC0415 - for few users

    if image is None:
        return Unavailable("no image is named", "set `sandbox.image`")
    program = find_program("docker", search_path) or find_program("podman", search_path)
    if program is None:
        return Unavailable("neither docker nor podman is installed", "install one of them")
    helper_backend = find_backend(search_path)
    error = ""
    for user in user_options(program):
        backend = Docker(
            program,
            image,
            user=user,
            has_python=True,
            for_helpers=None if isinstance(helper_backend, Unavailable) else helper_backend,
        )
        error = probe.error(backend, write=True)
        if not error:
            backend.has_network = not probe.error(backend, argv=["python3", "-c", ""])
            return backend
    remedy = f"see that the engine runs and has the image (`{Path(program).name} pull {image}`)"
    return Unavailable(f"{Path(program).name} does not work here ({error})", remedy)


def _remedy() -> str:
    try:
        restricted = _USER_NAMESPACES.read_text("ascii").strip() == "1"
    except OSError:
        restricted = False
    if restricted:
        return (
            "AppArmor forbids user namespaces; allow them for bwrap with a profile in "
            "/etc/apparmor.d (`abi <abi/4.0>, profile bwrap /usr/bin/bwrap flags=unconfined "
            "{ userns, }`)"
        )
    if any(Path(name).exists() for name in ("/.dockerenv", "/run/.containerenv")):
        return (
            "containers forbid namespaces; start this one with `--security-opt seccomp=unconfined "
            "--security-opt apparmor=unconfined --security-opt systempaths=unconfined`"
        )
    return "allow unprivileged user namespaces (`sysctl user.max_user_namespaces`)"
