"""The records of the plugins that the user added: their sources and pinned versions.

They are stored in one JSON file beside the plugins' folders. Changing it requires the file's lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from acp_agent.extensions.plugins.manifest import PluginError
from acp_agent.platform.decoding import decode_json
from acp_agent.platform.posix import locked, write_private

FILE_NAME = "installed.json"
_LOCK_SECONDS = 30.0
NOT_PINNED = frozenset({"__pycache__", ".git"})  # left behind by programs; not part of the content


class Installed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A plugin that was added.

    Attributes:
        source: where it is from, as given to `plugin add`.
        kind: a copy of a folder, a link to one, or a Python package.
        revision: the commit, or the version of a package.
        digest: the SHA-256 of its files; "" for a link, whose files may change.
        enabled: whether sessions use it.
        plugin: its name in a marketplace.
        manifest: the marketplace's entry for it, if that replaces a manifest.
        requirements: a package and its dependencies, each with its version and digests.
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


def read_installed(folder: Path) -> dict[str, Installed]:
    """Return the records of added plugins, by name. Raises PluginError."""
    file = folder / FILE_NAME
    try:
        return decode_json(file.read_bytes(), _File).plugins
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise PluginError(file, f"cannot be read ({error}); correct it, or delete it") from None


@contextmanager
def change_installed(folder: Path) -> Iterator[dict[str, Installed]]:
    """Yield the records for changes, then write them. Waits for other processes that do so.

    Raises:
        PluginError: the file cannot be read, or another process holds it for too long.
        OSError: it cannot be written.
    """
    try:
        with locked(folder / FILE_NAME, _LOCK_SECONDS):
            records = read_installed(folder)
            yield records
            content = msgspec.json.format(msgspec.json.encode(_File(records)), indent=2)
            write_private(folder / FILE_NAME, content + b"\n")
    except TimeoutError:
        raise PluginError(folder, "another process changes the plugins; try again") from None
