"""Find the plugins of a session: those that the user added or has, and those of the project."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.content import printable_line
from acp_agent.extensions.definitions.locations import DefinitionFolders, Source, plugin_roots
from acp_agent.extensions.plugins.installed import NOT_PINNED, Installed, read_installed
from acp_agent.extensions.plugins.manifest import PluginError, Remark
from acp_agent.extensions.plugins.package import Plugin, describe_parts, read_plugin
from acp_agent.trust.store import Item, Trusts, folder_digest, folder_name

_MAX_PLUGINS = 200  # plugins of one folder
_MAX_DESCRIPTION = 800  # characters of a plugin's description of parts
DATA = ".data"


class FoundPlugins(Struct, frozen=True, kw_only=True):
    """The plugins that were found; for a duplicate name the first one is used.

    Attributes:
        problems: errors: the file or folder, and the reason and remedy in English.
        untrusted: plugins of the project whose current content the user does not trust.
    """

    plugins: tuple[Plugin, ...] = ()
    problems: tuple[Remark, ...] = ()
    untrusted: tuple[Item, ...] = ()


def find_plugins(folders: DefinitionFolders, trusts: Trusts) -> FoundPlugins:
    """Find the plugins of a session. Reads files: call it in a thread.

    Args:
        trusts: returns whether the user trusts an item of the project.
    """
    by_name: dict[str, Plugin] = {}
    problems: list[Remark] = []
    untrusted: list[Item] = []
    user_folder = folders.plugins[0][0]
    for folder, source in folders.plugins:
        try:
            records = read_installed(folder) if folder == user_folder else {}
        except PluginError as error:  # some of its plugins may have been disabled
            problems.append(error.remark)
            continue
        problems += [(link, "it is a link that leads nowhere") for link in _broken_links(folder)]
        roots = plugin_roots(folder)
        if len(roots) > _MAX_PLUGINS:
            problems.append((folder, f"there are more than {_MAX_PLUGINS} plugins; take some out"))
        for root in roots[:_MAX_PLUGINS]:
            record = _record(root, folder, records)
            if record is not None and not record.enabled:
                continue
            try:
                plugin = _read(root, source, user_folder, folders.top, record)
            except PluginError as error:
                problems.append(error.remark)
                continue
            if source == "project":
                item = _item(plugin, folders.top)
                if not trusts(item):
                    untrusted.append(item)
                    continue
            problems += plugin.problems
            first = by_name.setdefault(plugin.name, plugin)
            if first.root != plugin.root:
                why = f"{first.root} has the same name, {plugin.name}, and counts; take one out"
                problems.append((root, why))
    return FoundPlugins(
        plugins=tuple(by_name.values()), problems=tuple(problems), untrusted=tuple(untrusted)
    )


def _broken_links(folder: Path) -> list[Path]:
    try:
        return [
            path for path in sorted(folder.iterdir()) if os.path.islink(path) and not _exists(path)
        ]
    except OSError:
        return []


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except OSError:
        return False
    return True


def _record(root: Path, folder: Path, records: dict[str, Installed]) -> Installed | None:
    """Return the record of an added plugin; a link to it has its name."""
    return next(
        (
            record
            for name, record in records.items()
            if os.path.realpath(folder / name) == str(root)
        ),
        None,
    )


def _read(
    root: Path, source: Source, plugins_folder: Path, top: Path, record: Installed | None
) -> Plugin:
    if source == "project" and not root.is_relative_to(os.path.realpath(top)):
        raise PluginError(root, "it is a link that leads out of the project; put a folder there")
    if record is not None and record.digest and record.digest != pinned_digest(root):
        raise PluginError(
            root,
            "its files are others than those that were added; look at them, then: "
            "acp-agent plugin update, or remove",
        )
    entry = None if record is None else record.manifest
    plugin = read_plugin(
        root, data=plugins_folder / DATA / root.name, source=source, marketplace_entry=entry
    )
    if source == "user" and root.parent == plugins_folder:
        return plugin
    # Other plugins may have the same name, so each has its own data folder.
    mark = hashlib.sha256(os.fsencode(root)).hexdigest()[:8]
    return replace(plugin, data=plugins_folder / DATA / f"{plugin.name}-{mark}")


def pinned_digest(root: Path) -> str:
    """Return the digest that identifies the files of a plugin. Reads all of them.

    Raises:
        PluginError: there are too many, or one cannot be read.
    """
    digest, _ = folder_digest(root, NOT_PINNED)
    if not digest:
        raise PluginError(root, "it has too many files, or one that cannot be read")
    return digest


def _item(plugin: Plugin, top: Path) -> Item:
    """Return the trust item of a project's plugin, which covers all of its files."""
    digest, _ = folder_digest(plugin.root)
    real = Path(os.path.realpath(top))
    return Item(
        kind="plugin",
        folder=folder_name(top),
        path=str(plugin.root.relative_to(real)),
        digest=digest,
        what=printable_line("; ".join(describe_parts(plugin)), _MAX_DESCRIPTION),
    )
