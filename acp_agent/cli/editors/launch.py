"""The command with which an editor starts this program.

An editor that was started from the desktop knows few folders to look in, so it gets the full path
unless the program lies in one of those.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.platform.programs import find_program, own_process

PROGRAM = "acp-agent"
DISTRIBUTION = "acp-agent-server"

# The PATH of a program that no shell started: systemd.exec(5), launchd.plist(5).
_DESKTOP_PATHS = {
    "linux": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "darwin": "/usr/bin:/bin:/usr/sbin:/sbin",
}

# What a desktop session does know of the user, of all that a shell has in its environment.
_KEPT = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "DISPLAY", "WAYLAND_DISPLAY")
_KEPT_BEGINNINGS = ("LC_", "XDG_", "DBUS_")

# Programs that run a package from a cache, which may be emptied at any time: where they keep it,
# and how the package is run again.
_RUNNERS: Sequence[tuple[str, str, Sequence[str]]] = (
    ("/archive-v", "uvx", ("--from", DISTRIBUTION, PROGRAM)),
    ("/environments-v", "uvx", ("--from", DISTRIBUTION, PROGRAM)),
    ("/builds-v", "uvx", ("--from", DISTRIBUTION, PROGRAM)),
    ("/pipx/.cache/", "pipx", ("run", "--spec", DISTRIBUTION, PROGRAM)),
    ("/.cache/pipx/", "pipx", ("run", "--spec", DISTRIBUTION, PROGRAM)),
)


class Launch(Struct, frozen=True):
    """What an editor starts: the program and its arguments, and variables beside its own."""

    command: list[str]
    variables: dict[str, str] = {}

    @property
    def model(self) -> str | None:
        """The model that the arguments name."""
        for index, word in enumerate(self.command):
            if word == "--model" and index + 1 < len(self.command):
                return self.command[index + 1]
            if word.startswith("--model="):
                return word.partition("=")[2]
        return None


def desktop_environment(environ: Mapping[str, str], *, platform: str) -> dict[str, str]:
    """What an editor that was started from the desktop would give to its agent.

    Variables that a shell's start-up files set, keys among them, are not in it.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if name in _KEPT or name.startswith(_KEPT_BEGINNINGS)
    }
    return kept | {"PATH": _desktop_path(platform)}


def runs_from_cache(command: Sequence[str]) -> bool:
    """Whether a command of ours is one that runs the package from a runner's cache."""
    return any(Path(command[0]).name == runner for _, runner, _ in _RUNNERS)


def launch_command(
    started_as: str, environ: Mapping[str, str], *, platform: str = sys.platform
) -> list[str]:
    """The program and its arguments, as an editor is to start them.

    Args:
        started_as: the file that runs now, `sys.argv[0]`.
        environ: the shell's environment.
        platform: as in `sys.platform`.
    """
    program = _running(started_as)
    if program is None:
        return own_process()
    resolved = f"{program.resolve()}"
    for mark, runner, arguments in _RUNNERS:
        found = find_program(runner, environ.get("PATH"))
        if mark in resolved and found is not None:
            return [str(Path(found).absolute()), *arguments]
    known = find_program(PROGRAM, _desktop_path(platform))
    if known is not None and Path(known).samefile(program):
        return [PROGRAM]
    # The name that the shell finds may be a link that outlives an upgrade, as pipx and uv make it.
    named = find_program(PROGRAM, environ.get("PATH"))
    if named is not None and Path(named).samefile(program):
        program = Path(named)
    return [str(program.absolute())]


def _running(started_as: str) -> Path | None:
    """The installed program that runs now, or lies beside the Python that does."""
    beside = Path(sys.executable).parent / PROGRAM
    for candidate in (Path(started_as), beside):
        if candidate.name == PROGRAM and candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    return None


def _desktop_path(platform: str) -> str:
    return _DESKTOP_PATHS.get(platform, _DESKTOP_PATHS["linux"])
