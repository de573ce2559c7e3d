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
from acp_agent.extensions.plugins.installed import Installed, changing, read_installed
from acp_agent.extensions.plugins.package import Plugin, read_plugin
from acp_agent.extensions.plugins.packages import install
from acp_agent.extensions.plugins.sources import (
    Fetched,
    Offer,
    copy_folder,
    fetched,
    marketplace,
    offered,
)
from acp_agent.platform.posix import make_private_folder


class Candidate(Struct, frozen=True, kw_only=True):
    """A plugin that can be added, with the record that will be saved for it."""

    plugin: Plugin
    record: Installed


class NoChoiceError(ConfigError):
    """A marketplace has several plugins, and none was chosen.

    Args:
        source: the marketplace.
        offers: its plugins.
    """

    def __init__(self, source: str, offers: list[Offer]) -> None:
        super().__init__(f"{source} is a marketplace; name one of its plugins")
        self.offers = offers


@contextmanager
def candidate(own: Path, source: str, *, ref: str = "", chosen: str = "") -> Iterator[Candidate]:
    """Yield a plugin as it would be added, from a temporary copy.

    Args:
        own: the folder of the user's plugins.
        source: the path of a folder, or the address of a repository.
        ref: a branch, tag or commit of the repository.
        chosen: the name of the plugin, if the source is a marketplace.

    Raises:
        NoChoiceError: it is a marketplace, and no plugin is chosen.
        ConfigError: it cannot be fetched, or is not a usable plugin.
    """
    make_private_folder(own)
    with (
        fetched(source, ref=ref) as found,
        _plugin_folder(found, source, chosen) as place,
        tempfile.TemporaryDirectory(prefix=".new-", dir=own) as new,
    ):
        root = Path(new, "plugin")
        copy_folder(place.folder, root)
        plugin = read_plugin(root, data=own, source="user", given=place.manifest)
        record = Installed(
            source=_remembered(source),
            revision=place.revision,
            digest=pinned_digest(root),
            plugin=chosen,
            manifest=place.manifest,
        )
        yield Candidate(plugin=plugin, record=record)


@contextmanager
def _plugin_folder(found: Fetched, source: str, chosen: str) -> Iterator[Fetched]:
    offers = marketplace(found.folder)
    if offers is None:
        if chosen:
            raise ConfigError(f"{source}: it is no marketplace, so no plugin of it can be chosen")
        yield found
        return
    offer = next((one for one in offers if one.name == chosen), None)
    if offer is None:
        if chosen:
            known = ", ".join(one.name for one in offers) or "none"
            raise ConfigError(f"{source}: it has no plugin {chosen}; it has: {known}")
        raise NoChoiceError(source, offers)
    with offered(found, offer) as place:
        yield place


def _remembered(source: str) -> str:
    folder = Path(source).expanduser()
    return os.path.realpath(folder) if folder.is_dir() else source


def linked(own: Path, folder: Path) -> Candidate:
    """Return a plugin that is used in place, so that changes to its files apply.

    Raises:
        ConfigError: it is not a usable plugin.
    """
    plugin = read_plugin(folder, data=own, source="user")
    return Candidate(plugin=plugin, record=Installed(source=str(plugin.root), kind="link"))


def put(own: Path, one: Candidate, *, replacing: bool) -> None:
    """Move a plugin to its folder and save its record. A plugin that it replaces is deleted.

    Args:
        own: the folder of the user's plugins.
        one: the plugin, in a folder that may be moved.
        replacing: whether it may replace a plugin of the same name.

    Raises:
        ConfigError: a plugin of its name exists, or its folder is taken.
        OSError: the files cannot be changed.
    """
    name = one.plugin.name
    place = own / name
    with changing(own) as known:
        if name in known and not replacing:
            raise ConfigError(f"there is a plugin {name} already; remove it, or update it")
        if name not in known and os.path.lexists(place):
            raise ConfigError(f"{place}: there is a folder of that name, which was not added")
        record = one.record
        if name in known:
            record = replace(record, enabled=known[name].enabled)
            _discard(own, place)
        if record.kind == "link":
            place.symlink_to(one.plugin.root)
        else:
            one.plugin.root.rename(place)
        known[name] = record


def put_package(own: Path, name: str, record: Installed) -> None:
    """Install a Python package as it was resolved, and save its record.

    Raises:
        ConfigError: a plugin of its name exists, or one of its files has another digest.
        OSError: the files cannot be changed.
    """
    make_private_folder(own / PACKAGES)
    with changing(own) as known:
        if name in known:
            raise ConfigError(f"there is a plugin {name} already; remove it first")
        if record.digest:  # it is installed beside this program
            known[name] = record
            return
        with tempfile.TemporaryDirectory(prefix=".new-", dir=own) as new:
            folder = Path(new, name)
            digest = install(record, folder)
            _discard(own, own / PACKAGES / name)
            folder.rename(own / PACKAGES / name)
        known[name] = replace(record, digest=digest)


def remove(own: Path, name: str, *, keep_data: bool) -> None:
    """Remove a plugin and, unless `keep_data` is true, the data of its programs.

    Raises:
        ConfigError: no plugin of this name was added.
        OSError: the files cannot be changed.
    """
    with changing(own) as known:
        is_package = require(known, name).kind == "package"
        del known[name]
        _discard(own, own / PACKAGES / name if is_package else own / name)
        if not keep_data:
            shutil.rmtree(own / DATA / name, ignore_errors=True)


def enable(own: Path, name: str, *, on: bool) -> None:
    """Enable or disable a plugin for sessions.

    Raises:
        ConfigError: no plugin of this name was added.
        OSError: the files cannot be changed.
    """
    with changing(own) as known:
        known[name] = replace(require(known, name), enabled=on)


def require(known: dict[str, Installed], name: str) -> Installed:
    """Return the record of a plugin.

    Raises:
        ConfigError: no plugin of this name was added.
    """
    if name not in known:
        listed = ", ".join(known) or "none"
        raise ConfigError(f"no plugin {name} was added; added were: {listed}")
    return known[name]


def update(own: Path, name: str, agree: Callable[[Candidate], bool], *, ref: str = "") -> bool:
    """Fetch a plugin again, and replace the installed one if it differs.

    Args:
        own: the folder of the user's plugins.
        name: the plugin.
        agree: asks whether to install a changed plugin.
        ref: a branch, tag or commit; "" for the default.

    Returns:
        Whether the plugin was replaced.

    Raises:
        ConfigError: no plugin of this name was added, or it cannot be fetched.
        OSError: the files cannot be changed.
    """
    record = require(read_installed(own), name)
    if record.kind != "copy":
        raise ConfigError(f"{name}: it cannot be fetched again; remove it, and add it")
    with candidate(own, record.source, ref=ref, chosen=record.plugin) as one:
        if one.plugin.name != name:
            raise ConfigError(
                f"{record.source}: the plugin is called {one.plugin.name} now; add that one"
            )
        same = one.record.digest == record.digest and pinned_digest(own / name) == record.digest
        if same or not agree(one):
            return False
        put(own, one, replacing=True)
        return True


def _discard(own: Path, place: Path) -> None:
    """Delete a folder or a link; to other processes it disappears in one step."""
    if place.is_symlink():
        place.unlink()
    elif place.exists():
        with tempfile.TemporaryDirectory(prefix=".old-", dir=own) as old:
            place.rename(Path(old, "plugin"))
