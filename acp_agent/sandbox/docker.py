"""Run programs in containers of an image that the user names, with docker(1) or podman(1).

A container has the image's files, read-only. Of this machine's files it has only the session's
folders, those that the configuration makes readable, and a temporary folder.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from acp_agent.platform.posix import is_below
from acp_agent.sandbox.bubblewrap import memory_limit
from acp_agent.sandbox.launch import PROXY_SOCKET, CommandNetwork, Launch, SandboxedProgram
from acp_agent.sandbox.policy import (
    TEMPORARY,
    MountKind,
    SandboxPolicy,
    needs_file_capabilities,
)

if TYPE_CHECKING:
    from acp_agent.sandbox.launch import Backend

_FILE_CAPABILITIES = ("DAC_OVERRIDE", "CHOWN", "FOWNER")  # see `bubblewrap`
# Variables about this machine and its user. Other variables with paths are found by their values.
_MACHINE_VARIABLES = frozenset({"USER", "LOGNAME", "HOSTNAME", "HOME", "PATH"})
_NAMESPACES = ("--network", "none", "--ipc", "private", "--cgroupns", "private")
_ISOLATION = (
    "--rm",
    "--init",
    "--interactive",
    "--pull",
    "never",
    "--log-driver",
    "none",
    *_NAMESPACES,
)
# SELinux labels would deny the container access to the session's files (`_LABELS`).
_HARDENING = ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
_LABELS = ("--security-opt", "label=disable")


class Docker:
    """A `Backend`: containers of one image.

    Args:
        user: options for the user that programs run as.
        has_python: whether the image has `python3`, which programs need to reach hosts.
        for_helpers: the backend for programs outside containers; None for no confinement.
    """

    name = "Docker"

    def __init__(
        self,
        program: str,
        image: str,
        *,
        user: Sequence[str],
        has_python: bool,
        for_helpers: Backend | None,
    ) -> None:
        self.program = program
        self.image = image
        self.user = tuple(user)
        self.has_network = has_python
        self.for_helpers = for_helpers

    @property
    def notice(self) -> str:
        """The limitations of this backend."""
        text = f"Commands run in containers of the image {self.image}, with its programs."
        if not self.has_network:
            text += " They reach no hosts, since the image has no python3."
        return text

    def temporary(self, policy: SandboxPolicy) -> str:
        """Return the path of the temporary folder; see `Backend`."""
        del policy
        return TEMPORARY

    def launch(self, program: SandboxedProgram) -> Launch:
        """Return how to start a program; see `Backend`."""
        argv, mounts, policy, cwd, environ, network = program
        visible_mounts = list(_container_mounts(mounts, policy))
        container_environ = policy.environ(environ, offline=network is None)
        if network is not None:
            argv = ["python3", *network.command[1:], *argv]
            container_environ |= network.environ
        container_environ = _container_environ(
            container_environ, [path for path, kind in visible_mounts if kind != "hide"]
        )
        options = [
            option for mount in _mount_options(visible_mounts, policy, network) for option in mount
        ]
        name = f"acp-agent-{os.urandom(8).hex()}"
        variables = _variables_file(container_environ | {"HOME": TEMPORARY})
        limits = policy.config.limits
        memory = str(memory_limit(limits))
        command = [
            self.program,
            "run",
            "--name",
            name,
            *_ISOLATION,
            *_HARDENING,
            *_LABELS,
            *self.user,
        ]
        command += ["--pids-limit", str(limits.processes), "--memory", memory]
        command += ["--shm-size", memory, "--ulimit", "core=0"]
        command += ["--ulimit", f"fsize={limits.file_bytes}", "--ulimit", f"data={memory}"]
        if needs_file_capabilities(mounts):
            command += [
                option for capability in _FILE_CAPABILITIES for option in ("--cap-add", capability)
            ]
        command += [*options, "--workdir", cwd, "--env-file", f"/dev/fd/{variables}"]
        command += ["--entrypoint", argv[0], self.image, *argv[1:]]
        # docker itself runs with this program's environment, not with that of the command.
        end = (*_engine_variables(), self.program, "rm", "--force", name)
        return Launch(tuple(command), dict(os.environ), (variables,), network, end=end)


def _engine_variables() -> list[str]:
    """Return a command that runs another one with the variables that lead to the engine.

    The watchdog, which ends a container when this program is killed, has none of them.
    """
    names = ("PATH", "HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME")
    passed = [
        f"{name}={value}"
        for name, value in os.environ.items()
        if "\n" not in value and (name in names or name.startswith(("DOCKER_", "CONTAINER")))
    ]
    return ["/usr/bin/env", *passed]


def _container_mounts(
    mounts: Sequence[tuple[str, MountKind]], policy: SandboxPolicy
) -> Iterator[tuple[str, MountKind]]:
    """Yield the mounts of the session's and allowed files, not those of the rest of the machine."""
    allowed = [*policy.roots, *policy.readable, *policy.config.filesystem.allow_read]
    folders = [os.path.realpath(os.path.expanduser(path)) for path in allowed]  # noqa: PTH111 - strings
    folders += [path for path, kind in mounts if kind == "write"]
    for path, kind in mounts:
        if any(is_below(path, folder) for folder in folders):
            yield path, kind


def _mount_options(
    mounts: Sequence[tuple[str, MountKind]],
    policy: SandboxPolicy,
    network: CommandNetwork | None,
) -> Iterator[tuple[str, str]]:
    for folder in (TEMPORARY, "/var/tmp"):  # noqa: S108 - the session's own
        yield _bind_option(policy.temporary, folder, "write")
    for path, kind in mounts:
        if kind != "hide":
            yield _bind_option(path, path, kind)
        elif os.path.isdir(path):
            yield "--mount", _csv("type=tmpfs", f"dst={path}", "tmpfs-mode=0555", "tmpfs-size=4096")
        else:
            yield _bind_option("/dev/null", path, "read")
    if network is not None:
        yield _bind_option(network.path, PROXY_SOCKET, "read")
        relay = network.command[3]
        yield _bind_option(relay, relay, "read")


def _bind_option(source: str, target: str, kind: MountKind) -> tuple[str, str]:
    readonly = () if kind == "write" else ("readonly",)
    return "--mount", _csv("type=bind", f"src={source}", f"dst={target}", *readonly)


def _csv(*fields: str) -> str:
    """Return a line of comma-separated values, quoted if a path has commas or quotes."""
    quoted = ('"' + field.replace('"', '""') + '"' for field in fields)
    return ",".join(
        raw if not set(raw) & set(',"\n') else quoted_field
        for raw, quoted_field in zip(fields, quoted, strict=True)
    )


def _container_environ(environ: Mapping[str, str], folders: Sequence[str]) -> dict[str, str]:
    """Return the variables that are meaningful in a container.

    Variables with paths of this machine are removed, unless the container has those paths.
    """
    visible_folders = [*folders, TEMPORARY]

    def is_visible(value: str) -> bool:
        paths = [part for part in value.replace("://", "").split(os.pathsep) if part[:1] == "/"]
        return all(any(is_below(path, folder) for folder in visible_folders) for path in paths)

    return {
        name: value
        for name, value in environ.items()
        if name not in _MACHINE_VARIABLES and "\n" not in value and is_visible(value)
    }


def _variables_file(environ: Mapping[str, str]) -> int:
    """Return a descriptor for `--env-file`; on the command line, others could see the variables."""
    text = "".join(f"{name}={value}\n" for name, value in environ.items())
    with tempfile.TemporaryFile() as file:
        file.write(text.encode("utf-8", "surrogateescape"))
        file.seek(0)
        return os.dup(file.fileno())


def user_options(program: str) -> list[list[str]]:
    """Return options that run programs as the owner of this user's files, most likely first.

    With a root daemon, user ids are the same in a container. In rootless mode, root in the
    container is this user; podman can also preserve the user id.
    """
    user = ["--user", f"{os.geteuid()}:{os.getegid()}"]
    keep_id = [["--userns", "keep-id", *user]] if Path(program).name == "podman" else []
    return [*keep_id, user, ["--user", "0:0"]]
