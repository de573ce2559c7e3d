"""Start helpers of this program confined: git, ripgrep, syntax checks, language and MCP servers.

docs/sandbox.md describes their confinement.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from acp_agent.sandbox.launch import (
    CommandNetwork,
    Launch,
    SandboxedProgram,
    unconfined,
    without_loader_variables,
)

if TYPE_CHECKING:
    import subprocess

    from acp_agent.config.network_addresses import Resolve
    from acp_agent.config.sandbox_types import SandboxConfig
    from acp_agent.sandbox.launch import Backend
    from acp_agent.sandbox.policy import MountKind, SandboxPolicy

# In a bind mount without `dev`, no other device can be opened. `--as-pid-1` saves a process.
_VISIBLE_MOUNTS = ("--ro-bind", "/", "/", "--dev-bind", "/dev/null", "/dev/null")
_ISOLATION = (
    "--unshare-pid",
    "--as-pid-1",
    "--unshare-ipc",
    "--cap-drop",
    "ALL",
    "--die-with-parent",
)

# Caches of long-running programs, in their temporary folder.
_CACHES = {"XDG_CACHE_HOME": ".cache", "CARGO_TARGET_DIR": "target"}


def is_excluded(program: str, config: SandboxConfig) -> bool:
    """Return whether `excluded_commands` contains a program, by its name or path."""
    names = {program, os.path.basename(program)}  # noqa: PTH119 - a string
    return any(
        pattern.split()[0].removesuffix(":*") in names for pattern in config.excluded_commands
    )


def launch_reader(
    backend: Backend,
    argv: Sequence[str],
    environ: Mapping[str, str],
    cwd: str,
    *,
    write: Sequence[str] = (),
) -> Launch:
    """Return how to start a helper that only reads, and whose output only this program gets.

    The helper can read all files, since its output goes nowhere else, and starts three times as
    fast as a command. It can change only the folders in `write`, and cannot access sockets or
    other processes. Blocks for a moment: call it in a thread.

    Args:
        cwd: the working folder in which the caller starts it.
        write: the folders that it may change, resolved.
    """
    from acp_agent.sandbox.bubblewrap import Bubblewrap  # noqa: PLC0415 - when first needed

    helpers = backend.for_helpers
    if helpers is None:
        return unconfined(argv, environ, cwd)
    if not isinstance(helpers, Bubblewrap):
        return _launch_with_backend(helpers, argv, environ, cwd, write)
    options = [*_VISIBLE_MOUNTS, *_ISOLATION]
    if helpers.new_user:
        options.append("--unshare-user")
    elif os.geteuid() == 0:  # root can also read files of others outside
        options += ["--cap-add", "CAP_DAC_READ_SEARCH"]
    for folder in write:
        options += ["--bind", folder, folder]
    if write:  # needed for random names of temporary files
        options += ["--dev-bind", "/dev/urandom", "/dev/urandom"]
    descriptor = helpers.filter_descriptor(sockets=False)
    command = [helpers.program, *options, "--seccomp", str(descriptor), "--", *argv]
    return Launch(tuple(command), dict(environ), (descriptor,))


def start_reader(backend: Backend, argv: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a helper (see `launch_reader`) with empty input and a pipe for its output."""
    import subprocess  # noqa: PLC0415 - heavy, and seldom needed

    return launch_reader(backend, argv, {"PATH": os.defpath, "LC_ALL": "C"}, "/").start(
        "/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


async def launch_server(
    backend: Backend,
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    policy: SandboxPolicy,
    cwd: str,
    hosts: Sequence[str],
    resolve: Resolve,
) -> Launch:
    """Return how to start an MCP server: like `launch_service`, with access to hosts.

    Args:
        policy: its rights, with hosts that are always allowed or refused.
        hosts: further hosts that it may reach.

    Raises:
        OSError: the proxy's socket cannot be created, or no backend can confine the server.
    """
    helpers = backend.for_helpers
    if helpers is None:
        raise ConnectionError("nothing here confines a program that runs outside of containers")
    network_config = policy.config.network
    network: CommandNetwork | None = None
    if helpers.has_network and (hosts or network_config.allowed_domains):
        from acp_agent.sandbox.host_rules import HostRules  # noqa: PLC0415 - few have hosts

        rules = HostRules([*network_config.allowed_domains, *hosts], network_config.denied_domains)
        path = Path(f"{policy.temporary}.{os.urandom(4).hex()}")
        network = await CommandNetwork.open(rules, path, resolve)

    def launch() -> Launch:
        return launch_service(helpers, argv, environ, policy=policy, cwd=cwd, network=network)

    try:
        return await asyncio.to_thread(launch)
    except BaseException:
        if network is not None:
            await network.aclose()
        raise


def launch_service(
    backend: Backend,
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    policy: SandboxPolicy,
    cwd: str,
    network: CommandNetwork | None = None,
) -> Launch:
    """Return how to start a long-running program that executes code of a project.

    The program can read the same files as a command, and change only its temporary folder. Reads
    many files: call it in a thread.

    Args:
        policy: its rights to read.
        network: the hosts that it can reach; None for no network.
    """
    helpers = backend.for_helpers
    if helpers is None:
        return unconfined(argv, environ, cwd)
    os.makedirs(policy.temporary, mode=0o700, exist_ok=True)  # noqa: PTH103 - a string
    mounts = policy.mounts(only_reads=True)
    temporary = helpers.temporary(policy)
    environ = dict(environ) | {
        name: f"{temporary}/{subfolder}" for name, subfolder in _CACHES.items()
    }
    return helpers.launch(
        SandboxedProgram(argv, mounts, policy, os.path.realpath(cwd), environ, network)
    )


def _launch_with_backend(
    backend: Backend,
    argv: Sequence[str],
    environ: Mapping[str, str],
    cwd: str,
    write: Sequence[str],
) -> Launch:
    from acp_agent.config.sandbox_types import SandboxConfig  # noqa: PLC0415 - seldom needed
    from acp_agent.sandbox.policy import PRIVATE_FOLDERS, SandboxPolicy  # noqa: PLC0415 - so

    policy = SandboxPolicy(roots=(), home="/", config=SandboxConfig())
    visible_folders = [folder for folder in PRIVATE_FOLDERS if folder != "/dev"]
    mounts: dict[str, MountKind] = dict.fromkeys(visible_folders, "read")
    mounts |= dict.fromkeys(write, "write")
    launch = backend.launch(
        SandboxedProgram(argv, list(mounts.items()), policy, os.path.realpath(cwd), environ)
    )
    return Launch(launch.argv, without_loader_variables(environ)[0], launch.descriptors)
