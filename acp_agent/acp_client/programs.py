"""Finds the programs of other agents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from acp_agent.platform.programs import find_program, outside_folders


def find_command(
    command: str, environ: Mapping[str, str], roots: Iterable[str | os.PathLike[str]]
) -> str | None:
    """Return the path of an agent's program; None: there is none.

    What is in a project is never meant: a name is looked up in PATH alone, outside the project.

    Args:
        command: a name, or an absolute path.
        environ: the user's environment.
        roots: the project's folders.
    """
    path = Path(command).expanduser()
    if path.is_absolute():
        return str(path)
    if len(path.parts) != 1:
        return None
    return find_program(command, outside_folders(environ.get("PATH", os.defpath), roots))
