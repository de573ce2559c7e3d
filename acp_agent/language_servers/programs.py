"""Find the programs of language servers and their project folders.

A program in the session's folders came with the project and is not trusted: it is started only in
a trusted session, or if the user's configuration names it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from acp_agent.errors import MissingFileError
from acp_agent.language_servers.table import ServerSettings, ServerSpec
from acp_agent.platform.decoding import convert
from acp_agent.platform.posix import find_program, outside_folders
from acp_agent.workspace.environment import command_environ

_PACKAGES = (".venv/lib/python3*/site-packages", "venv/lib/python3*/site-packages")
_PROJECT_FOLDERS = (".venv/bin", "venv/bin", "node_modules/.bin", "vendor/bin")


class InstalledServer(Struct, frozen=True, kw_only=True):
    """A server that is installed: the command that starts it.

    `in_project` where the program lies in the session's folders.
    """

    spec: ServerSpec
    command: tuple[str, ...]
    in_project: bool


def find_server(
    spec: ServerSpec, roots: Sequence[Path], search_path: str, *, in_project: bool
) -> InstalledServer | None:
    """Return a server if it is installed. Reads the disk.

    Args:
        in_project: whether programs in the session's folders count as well.
    """
    for name, *arguments in spec.commands:
        if spec.by_user and ("/" in name or name.startswith("~")):
            program: str | None = str(roots[0] / Path(name).expanduser())
            program = program if program and os.access(program, os.X_OK) else None
        else:
            folders = [str(root / part) for root in roots for part in _PROJECT_FOLDERS]
            outside = outside_folders(search_path, roots)
            program = find_program(name, outside)
            if in_project or spec.by_user:
                program = find_program(name, os.pathsep.join([*folders, search_path])) or program
        if program is not None:
            is_in_project = any(Path(program).is_relative_to(root) for root in roots)
            return InstalledServer(
                spec=spec, command=(program, *arguments), in_project=is_in_project
            )
    return None


def find_root(spec: ServerSpec, path: Path, roots: Sequence[Path]) -> Path | None:
    """Return the folder of the project that a file belongs to.

    This is the nearest folder above it with a marker, else the session's folder.

    Args:
        spec: the server, which says what marks a root.
        roots: the session's folders; None is returned for a file outside of them.
    """
    root = next((root for root in roots if path.is_relative_to(root)), None)
    if root is None:
        return None
    for folder in path.parents:
        if any(os.path.exists(folder / marker) for marker in spec.root_markers):
            return folder
        if folder == root:
            break
    return None if spec.required_marker else root


def fill_placeholders(
    settings: ServerSettings, program: str, root: Path, search_path: str
) -> ServerSettings:
    """Return a server's settings with paths in place of placeholders.

    Raises:
        MissingFileError: there is no such path, so that the server would use the project's own.
    """
    real = Path(os.path.realpath(program))
    modules = next((str(item) for item in real.parents if item.name == "node_modules"), None)
    python = find_program("python3", outside_folders(search_path, [root]))

    def fill(value: object) -> object:
        if isinstance(value, dict):
            return {key: fill(item) for key, item in value.items()}
        if value == ["{packages}"]:
            return [str(item) for pattern in _PACKAGES for item in root.glob(pattern)]
        if not isinstance(value, str) or not value.startswith(("{python}", "{node_modules}")):
            return value
        path = value.replace("{python}", python or "").replace("{node_modules}", modules or "")
        if not Path(path).is_absolute() or not os.path.exists(path):
            raise MissingFileError("what it needs is installed in the project alone")
        return path

    return convert(fill(msgspec.to_builtins(settings)), ServerSettings)


def server_environ(environ: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a server: the user's without secrets, and what the table adds."""
    return {**command_environ(environ), **added}
