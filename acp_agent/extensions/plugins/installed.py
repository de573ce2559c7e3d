"""The plugins that the user added, each with where it is from and what it is pinned to.

They are in one JSON file beside their folders. Whoever changes it holds the lock of that folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from acp_agent.extensions.plugins.manifest import PluginError
from acp_agent.platform.posix import locked, write_private

FILE_NAME = "installed.json"
_LOCK_SECONDS = 30.0
NOT_PINNED = frozenset({"__pycache__", ".git"})  # what programs leave behind, and no content


class Installed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A plugin that was added.

    Attributes:
        source: where it is from, as `plugin add` was told.
        kind: a copy of a folder, a link to one, or a Python package.
        revision: the commit, or the version of a package.
        digest: of its files (SHA-256); "" for a link, whose files may change.
        enabled: whether sessions use it.
        plugin: which one of a marketplace.
        manifest: what the marketplace says of it, where that takes the place of a manifest.
        requirements: a package and those that it needs, each with its version and digests.
    """

    source: str
    kind: Literal["copy", "link", "package"] = "copy"
    revision: str = ""
    digest: str = ""
    enabled: bool = True
    plugin: str = ""
    manifest: dict[str, Any] | None = None
    requirements: tuple[str, ...] = ()


class _File(Struct, frozen=True):
    plugins: dict[str, Installed] = {}


def read_installed(place: Path) -> dict[str, Installed]:
    """Return what was added, by name.

    Raises:
        PluginError: the file cannot be read.
    """
    file = place / FILE_NAME
    try:
        return msgspec.json.decode(file.read_bytes(), type=_File).plugins
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise PluginError(file, f"cannot be read ({error}); correct it, or delete it") from None


@contextmanager
def changing(place: Path) -> Iterator[dict[str, Installed]]:
    """Give what was added, to be changed; it is written at the end. Waits for others that do so.

    Raises:
        PluginError: the file cannot be read, or another process changes it for too long.
        OSError: it cannot be written.
    """
    try:
        with locked(place / FILE_NAME, _LOCK_SECONDS):
            known = read_installed(place)
            yield known
            content = msgspec.json.format(msgspec.json.encode(_File(known)), indent=2)
            write_private(place / FILE_NAME, content + b"\n")
    except TimeoutError:
        raise PluginError(place, "another process changes the plugins; try again") from None
