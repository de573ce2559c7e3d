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

from acp_agent.platform.programs import find_program, self_command

PROGRAM = "acp-agent"
DISTRIBUTION = "acp-agent-server"

# The PATH of a program not started by a shell: systemd.exec(5), launchd.plist(5).
_DESKTOP_PATHS = {
    "linux": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "darwin": "/usr/bin:/bin:/usr/sbin:/sbin",
}

# Variables of a shell's environment that a desktop session also has.
_KEPT = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "DISPLAY", "WAYLAND_DISPLAY")
_KEPT_BEGINNINGS = ("LC_", "XDG_", "DBUS_")

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
    kept = {
        name: value
        for name, value in environ.items()
        if name in _KEPT or name.startswith(_KEPT_BEGINNINGS)
    }
    return kept | {"PATH": _desktop_path(platform)}


def runs_from_cache(command: Sequence[str]) -> bool:
    """Return whether a command runs the package from a runner's cache."""
    return any(Path(command[0]).name == runner for _, runner, _ in _RUNNERS)


def launch_command(
    started_as: str, environ: Mapping[str, str], *, platform: str = sys.platform
) -> list[str]:
    """Return the program and its arguments for an editor to start.

    Args:
        started_as: the running file, `sys.argv[0]`.
        environ: the shell's environment.
        platform: as in `sys.platform`.
    """
    program = _running(started_as)
    if program is None:
        return self_command()
    resolved = f"{program.resolve()}"
    for mark, runner, arguments in _RUNNERS:
        found = find_program(runner, environ.get("PATH"))
        if mark in resolved and found is not None:
            return [str(Path(found).absolute()), *arguments]
    known = find_program(PROGRAM, _desktop_path(platform))
    if known is not None and Path(known).samefile(program):
        return [PROGRAM]
    # The name on the PATH may be a link that survives upgrades, as created by pipx and uv.
    named = find_program(PROGRAM, environ.get("PATH"))
    if named is not None and Path(named).samefile(program):
        program = Path(named)
    return [str(program.absolute())]


def _running(started_as: str) -> Path | None:
    """Return the installed program that is running, or is next to the running Python."""
    beside = Path(sys.executable).parent / PROGRAM
    for candidate in (Path(started_as), beside):
        if candidate.name == PROGRAM and candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    return None


def _desktop_path(platform: str) -> str:
    return _DESKTOP_PATHS.get(platform, _DESKTOP_PATHS["linux"])
