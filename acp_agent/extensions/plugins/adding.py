"""Add, update and remove plugins of the user: each is a copy, pinned to its content."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.locations import PACKAGES
from acp_agent.extensions.plugins.find import DATA, pinned_digest
from acp_agent.extensions.plugins.installed import Installed, change_installed, read_installed
from acp_agent.extensions.plugins.package import Plugin, read_plugin
from acp_agent.extensions.plugins.packages import install
from acp_agent.extensions.plugins.sources import (
    Fetched,
    Offer,
    copy_folder,
    fetch_offer,
    fetch_source,
    read_marketplace,
)
from acp_agent.platform.posix import make_private_folder


class Candidate(Struct, frozen=True, kw_only=True):
    """A plugin that can be added, with the record that will be saved for it."""

    plugin: Plugin
    record: Installed


class NoChoiceError(ConfigError):
    """A marketplace has several plugins, and none was chosen."""

    def __init__(self, source: str, offers: list[Offer]) -> None:
        super().__init__(f"{source} is a marketplace; name one of its plugins")
        self.offers = offers


@contextmanager
def fetch_candidate(
    plugins_folder: Path, source: str, *, ref: str = "", chosen: str = ""
) -> Iterator[Candidate]:
    """Yield a plugin as it would be added, from a temporary copy.

    Args:
        source: the path of a folder, or the address of a repository.
        ref: a branch, tag or commit of the repository.
        chosen: the name of the plugin, if the source is a marketplace.

    Raises:
        NoChoiceError: it is a marketplace, and no plugin is chosen.
        ConfigError: it cannot be fetched, or is not a usable plugin.
    """
    make_private_folder(plugins_folder)
    with (
        fetch_source(source, ref=ref) as fetched_source,
        _plugin_folder(fetched_source, source, chosen) as plugin_source,
        tempfile.TemporaryDirectory(prefix=".new-", dir=plugins_folder) as new,
    ):
        root = Path(new, "plugin")
        copy_folder(plugin_source.folder, root)
        try:
            plugin = read_plugin(
                root, data=plugins_folder, source="user", marketplace_entry=plugin_source.manifest
            )
        except ConfigError as error:  # the folder is temporary, so the source is named
            raise ConfigError(str(error).replace(str(root), source)) from None
        record = Installed(
            source=_stored_source(source),
            revision=plugin_source.revision,
            digest=pinned_digest(root),
            plugin=chosen,
            manifest=plugin_source.manifest,
        )
        yield Candidate(plugin=plugin, record=record)


@contextmanager
def _plugin_folder(fetched_source: Fetched, source: str, chosen: str) -> Iterator[Fetched]:
    offers = read_marketplace(fetched_source.folder, chosen)
    if offers is None:
        if chosen:
            raise ConfigError(f"{source}: it is no marketplace, so no plugin of it can be chosen")
        yield fetched_source
        return
    offer = next((candidate for candidate in offers if candidate.name == chosen), None)
    if offer is None:
        if chosen:
            names = ", ".join(candidate.name for candidate in offers) or "none"
            raise ConfigError(f"{source}: it has no plugin {chosen}; it has: {names}")
        raise NoChoiceError(source, offers)
    with fetch_offer(fetched_source, offer) as plugin_source:
        yield plugin_source


def _stored_source(source: str) -> str:
    folder = Path(source).expanduser()
    return os.path.realpath(folder) if folder.is_dir() else source


def link_candidate(plugins_folder: Path, folder: Path) -> Candidate:
    """Return a plugin that is used in place, so that changes to its files apply.

    Raises:
        ConfigError: it is not a usable plugin.
    """
    plugin = read_plugin(folder, data=plugins_folder, source="user")
    return Candidate(plugin=plugin, record=Installed(source=str(plugin.root), kind="link"))


def install_candidate(plugins_folder: Path, added: Candidate, *, replacing: bool) -> None:
    """Move a plugin to its folder and save its record. A plugin that it replaces is deleted.

    Args:
        added: the plugin, in a folder that may be moved.
        replacing: whether it may replace a plugin of the same name.

    Raises:
        ConfigError: a plugin of its name exists, or its folder is taken.
        OSError: the files cannot be changed.
    """
    name = added.plugin.name
    folder = plugins_folder / name
    with change_installed(plugins_folder) as records:
        if name in records and not replacing:
            raise ConfigError(f"there is a plugin {name} already; remove it, or update it")
        if name not in records and os.path.lexists(folder):
            raise ConfigError(f"{folder}: there is a folder of that name, which was not added")
        record = added.record
        if name in records:
            record = replace(record, enabled=records[name].enabled)
            _discard(plugins_folder, folder)
        if record.kind == "link":
            folder.symlink_to(added.plugin.root)
        else:
            added.plugin.root.rename(folder)
        records[name] = record


def install_package(plugins_folder: Path, name: str, record: Installed) -> None:
    """Install a Python package as it was resolved, and save its record.

    Raises:
        ConfigError: a plugin of its name exists, or one of its files has another digest.
        OSError: the files cannot be changed.
    """
    make_private_folder(plugins_folder / PACKAGES)
    with change_installed(plugins_folder) as records:
        if name in records:
            raise ConfigError(f"there is a plugin {name} already; remove it first")
        if record.digest:  # it is installed beside this program
            records[name] = record
            return
        with tempfile.TemporaryDirectory(prefix=".new-", dir=plugins_folder) as new:
            folder = Path(new, name)
            digest = install(record, folder)
            _discard(plugins_folder, plugins_folder / PACKAGES / name)
            folder.rename(plugins_folder / PACKAGES / name)
        records[name] = replace(record, digest=digest)


def remove(plugins_folder: Path, name: str, *, keep_data: bool) -> None:
    """Remove a plugin and, unless `keep_data` is true, the data of its programs.

    Raises:
        ConfigError: no plugin of this name was added.
        OSError: the files cannot be changed.
    """
    with change_installed(plugins_folder) as records:
        is_package = require(records, name).kind == "package"
        del records[name]
        _discard(
            plugins_folder,
            plugins_folder / PACKAGES / name if is_package else plugins_folder / name,
        )
        if not keep_data:
            shutil.rmtree(plugins_folder / DATA / name, ignore_errors=True)


def enable(plugins_folder: Path, name: str, *, is_enabled: bool) -> None:
    """Enable or disable a plugin for sessions. Raises ConfigError, OSError."""
    with change_installed(plugins_folder) as records:
        records[name] = replace(require(records, name), enabled=is_enabled)


def require(records: dict[str, Installed], name: str) -> Installed:
    """Return the record of a plugin. Raises ConfigError if no plugin of this name was added."""
    if name not in records:
        listed = ", ".join(records) or "none"
        raise ConfigError(f"no plugin {name} was added; added were: {listed}")
    return records[name]


def update(
    plugins_folder: Path, name: str, agree: Callable[[Candidate], bool], *, ref: str = ""
) -> bool:
    """Fetch a plugin again, and replace the installed one if it differs.

    Args:
        agree: asks whether to install a changed plugin.
        ref: a branch, tag or commit; "" for the default.

    Returns:
        Whether the plugin was replaced.

    Raises:
        ConfigError: no plugin of this name was added, or it cannot be fetched.
        OSError: the files cannot be changed.
    """
    record = require(read_installed(plugins_folder), name)
    if record.kind != "copy":
        raise ConfigError(f"{name}: it cannot be fetched again; remove it, and add it")
    with fetch_candidate(plugins_folder, record.source, ref=ref, chosen=record.plugin) as latest:
        if latest.plugin.name != name:
            raise ConfigError(
                f"{record.source}: the plugin is called {latest.plugin.name} now; add that one"
            )
        is_unchanged = (
            latest.record.digest == record.digest
            and pinned_digest(plugins_folder / name) == record.digest
        )
        if is_unchanged or not agree(latest):
            return False
        install_candidate(plugins_folder, latest, replacing=True)
        return True


def _discard(plugins_folder: Path, path: Path) -> None:
    """Delete a folder or a link; to other processes it disappears in one step."""
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        with tempfile.TemporaryDirectory(prefix=".old-", dir=plugins_folder) as old:
            path.rename(Path(old, "plugin"))
