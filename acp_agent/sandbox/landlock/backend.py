"""Start programs confined with Landlock (landlock(7)) and filters of system calls."""

from __future__ import annotations

import marshal
import os
import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from acp_agent.sandbox.bubblewrap import memory_limit
from acp_agent.sandbox.landlock.call_filter import landlock_filter
from acp_agent.sandbox.landlock.path_rules import path_rules
from acp_agent.sandbox.landlock.ruleset import SCOPES_SINCE, make_ruleset
from acp_agent.sandbox.launch import Launch, SandboxedProgram, without_loader_variables
from acp_agent.sandbox.policy import (
    PRIVATE_FOLDERS,
    MountKind,
    SandboxPolicy,
    needs_file_capabilities,
    visible_run_folders,
)
from acp_agent.sandbox.seccomp import system_call_filter

OLDEST = 3  # the first version that controls truncation: Linux 6.2
# For root with files of others: CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER (linux/capability.h).
_FILE_CAPABILITIES = 1 << 0 | 1 << 1 | 1 << 3
_LAUNCHER = Path(__file__).with_name("launcher.py")


class Landlock:
    """A `Backend`: Landlock.

    Args:
        version: the version of Landlock to use; the kernel has at least this one.
        why: the reason for not using bubblewrap.
        namespace: whether to give each command a process namespace.
    """

    name = "Landlock"
    has_network = False

    def __init__(self, version: int, why: str, *, namespace: bool = False) -> None:
        self.version = version
        self.why = why
        self.namespace = namespace

    @property
    def notice(self) -> str:
        """The limitations of this backend."""
        seen = "files" if self.namespace else "files and processes"
        return (
            f"Commands are confined with Landlock ({self.why}). They cannot use the network, "
            f"servers of this computer, /tmp or /dev/shm; they see that other {seen} exist, "
            "and not what is in them."
        )

    @property
    def for_helpers(self) -> Landlock:
        """This backend itself; see `Backend`."""
        return self

    def temporary(self, policy: SandboxPolicy) -> str:
        """Return the path of the temporary folder; see `Backend`."""
        return policy.temporary

    def launch(self, program: SandboxedProgram) -> Launch:
        """Return how to start a program; see `Backend`.

        Raises:
            OSError: the kernel refuses the rules.
        """
        # The caller starts it in `cwd`, and it reaches no host.
        policy, mounts = program.policy, program.mounts
        kinds = _kinds(mounts, policy)
        rules = path_rules(kinds)
        limits, memory = policy.config.limits, memory_limit(policy.config.limits)
        calls = landlock_filter(
            supervised="write" in kinds.values(),
            signals=self.version < SCOPES_SINCE and not self.namespace,
            reads=_hides_in_writable(kinds),
        )
        common = system_call_filter(sockets=False, shared_bytes=memory) or b""
        ruleset = make_ruleset(rules, self.version)
        environ = policy.environ(program.environ, policy.temporary or "/", offline=True)
        environ, loader_variables = without_loader_variables(environ)
        options = {
            "ruleset": ruleset,
            "filters": [common, calls.program],
            "supervised_calls": calls.supervised_calls,
            "limits": [
                (resource.RLIMIT_NPROC, limits.processes + _running_threads()),
                (resource.RLIMIT_DATA, memory),
                (resource.RLIMIT_FSIZE, limits.file_bytes),
                (resource.RLIMIT_CORE, 0),
            ],
            "capabilities": _FILE_CAPABILITIES if needs_file_capabilities(mounts) else 0,
            "namespace": self.namespace,
            "variables": loader_variables,
            "kinds": {os.fsencode(path): kind for path, kind in kinds.items()},
            "granted": [os.fsencode(path) for path in rules.write],
            "divided": [os.fsencode(path) for path in rules.divided],
        }
        descriptor = os.memfd_create("landlock", os.MFD_CLOEXEC)
        os.write(descriptor, marshal.dumps(options))
        os.lseek(descriptor, 0, os.SEEK_SET)
        python = [sys.executable, "-I", "-S", str(_LAUNCHER), str(descriptor)]
        return Launch((*python, *program.argv), environ, (descriptor, ruleset))


def _kinds(mounts: Sequence[tuple[str, MountKind]], policy: SandboxPolicy) -> dict[str, MountKind]:
    """Return the kinds of paths, including names that must not be created."""
    kinds: dict[str, MountKind] = dict.fromkeys(PRIVATE_FOLDERS, "hide")
    kinds["/proc"] = "read"  # Landlock itself protects processes outside
    kinds |= dict.fromkeys(visible_run_folders(), "read")
    return kinds | policy.with_new_names(mounts)


def _hides_in_writable(kinds: Mapping[str, MountKind]) -> bool:
    """Return whether there is a hidden path in a writable folder."""
    return any(
        kinds.get(folder) == "write"
        for path, kind in kinds.items()
        if kind == "hide"
        for folder in _parents(path)
    )


def _parents(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _running_threads() -> int:
    """Return the number of processes and threads; the limit counts all those of the user."""
    with open("/proc/loadavg", encoding="ascii") as file:
        return int(file.read().split()[3].partition("/")[2])  # proc_loadavg(5)
