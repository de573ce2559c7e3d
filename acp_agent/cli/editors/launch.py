"""The command that an editor starts this program with.

An editor started from the desktop searches few folders, so it gets the full path unless the
program is in one of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.platform.posix import find_program, self_command

PROGRAM = "acp-agent"
DISTRIBUTION = "acp-agent-server"

# The PATH of a program not started by a shell: systemd.exec(5), launchd.plist(5).
_DESKTOP_PATHS = {
    "linux": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "darwin": "/usr/bin:/bin:/usr/sbin:/sbin",
}

# Variables of a shell's environment that a desktop session also has.
_INHERITED = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "DISPLAY", "WAYLAND_DISPLAY")
_INHERITED_PREFIXES = ("LC_", "XDG_", "DBUS_")

# Programs that run a package from a cache, which may be emptied at any time: a part of the cache's
# path, the program, and the arguments that run the package again.
_RUNNERS: Sequence[tuple[str, str, Sequence[str]]] = (
    ("/archive-v", "uvx", ("--from", DISTRIBUTION, PROGRAM)),
    ("/environments-v", "uvx", ("--from", DISTRIBUTION, PROGRAM)),
    ("/builds-v", "uvx", ("--from", DISTRIBUTION, PROGRAM)),
    ("/pipx/.cache/", "pipx", ("run", "--spec", DISTRIBUTION, PROGRAM)),
    ("/.cache/pipx/", "pipx", ("run", "--spec", DISTRIBUTION, PROGRAM)),
)


class Launch(Struct, frozen=True):
    """What an editor starts: the program with its arguments, and additional variables."""

    command: list[str]
    variables: dict[str, str] = {}

    @property
    def model(self) -> str | None:
        """Return the model named in the arguments."""
        for index, word in enumerate(self.command):
            if word == "--model" and index + 1 < len(self.command):
                return self.command[index + 1]
            if word.startswith("--model="):
                return word.partition("=")[2]
        return None


def desktop_environment(environ: Mapping[str, str], *, platform: str) -> dict[str, str]:
    """Return the environment of an agent in an editor started from the desktop.

    It lacks variables that are set by a shell's start-up files, such as keys.
    """
    inherited = {
        name: value
        for name, value in environ.items()
        if name in _INHERITED or name.startswith(_INHERITED_PREFIXES)
    }
    return inherited | {"PATH": _desktop_path(platform)}


def runs_from_cache(command: Sequence[str]) -> bool:
    """Return whether a command runs the package from a runner's cache."""
    return any(Path(command[0]).name == runner for _, runner, _ in _RUNNERS)


def launch_command(
    started_as: str, environ: Mapping[str, str], *, platform: str = sys.platform
) -> list[str]:
    """Return the program and its arguments for an editor to start.

    Args:
        started_as: the running file, `sys.argv[0]`.
    """
    program = _find_running(started_as)
    if program is None:
        return self_command()
    resolved = f"{program.resolve()}"
    for mark, runner, arguments in _RUNNERS:
        runner_path = find_program(runner, environ.get("PATH"))
        if mark in resolved and runner_path is not None:
            return [str(Path(runner_path).absolute()), *arguments]
    default_program = find_program(PROGRAM, _desktop_path(platform))
    if default_program is not None and Path(default_program).samefile(program):
        return [PROGRAM]
    # The name on the PATH may be a link that survives upgrades, as created by pipx and uv.
    program_on_path = find_program(PROGRAM, environ.get("PATH"))
    if program_on_path is not None and Path(program_on_path).samefile(program):
        program = Path(program_on_path)
    return [str(program.absolute())]


def _find_running(started_as: str) -> Path | None:
    """Return the installed program that is running, or is next to the running Python."""
    python_sibling = Path(sys.executable).parent / PROGRAM
    for candidate in (Path(started_as), python_sibling):
        if candidate.name == PROGRAM and candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    return None


def _desktop_path(platform: str) -> str:
    return _DESKTOP_PATHS.get(platform, _DESKTOP_PATHS["linux"])
