"""Fetch plugins from folders, git repositories, npm, and marketplaces in any of these.

A marketplace is a folder with `.claude-plugin/marketplace.json`, a list of plugins and their
sources. The format is that of Anthropic's command line program, which other programs share;
marketplaces are only read.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from acp_agent.content import printable_line
from acp_agent.errors import ConfigError
from acp_agent.extensions.plugins.installed import NOT_PINNED
from acp_agent.extensions.plugins.manifest import FILE_NAME, FOREIGN, read_json
from acp_agent.extensions.plugins.npm import PREFIX, fetch_package
from acp_agent.platform.programs import find_git

_MARKETPLACES = tuple(f"{folder}/marketplace.json" for folder in (*FOREIGN, ".agents/plugins"))
_GIT_SECONDS = 300
_MOST = 1_000  # plugins of a marketplace
_SHORT = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+")  # owner/repository on GitHub
_ADDRESS = re.compile(r"(https://|ssh://|git://|file://|[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:)")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# Fetching a repository runs no code of it and asks no questions.
_GIT = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.symlinks=true",
    "-c", "protocol.ext.allow=never", "-c", "submodule.recurse=false", "-c", "filter.lfs.smudge=",
    "-c", "filter.lfs.required=false", "-c", "advice.detachedHead=false",
)  # fmt: skip


class Fetched(Struct, frozen=True, kw_only=True):
    """A fetched folder.

    Attributes:
        folder: the folder of a plugin or of a marketplace.
        revision: the commit, or the version of a package; "" if there is none.
        manifest: a marketplace's entry for the plugin, if that replaces a manifest.
    """

    folder: Path
    revision: str = ""
    manifest: dict[str, Any] | None = None


class Offer(Struct, frozen=True, kw_only=True):
    """A plugin in a marketplace."""

    name: str
    description: str
    source: object
    entry: dict[str, Any]


def is_fetched(source: str) -> bool:
    """Return whether a source is a package of npm, or a git repository."""
    return source.startswith(PREFIX) or _is_repository(source)


def _is_repository(source: str) -> bool:
    """Return whether a source is a git repository's address, or its short form `owner/name`."""
    if Path(source).expanduser().exists():
        return False
    return bool(_ADDRESS.match(source) or source.endswith(".git") or _SHORT.fullmatch(source))


@contextmanager
def fetched(source: str, *, ref: str = "") -> Iterator[Fetched]:
    """Yield the folder of a source: the folder itself, or a temporary copy of what is fetched.

    Args:
        source: the path of a folder, the address of a repository, or `npm:` and a package.
        ref: a branch, tag or commit of the repository, or a version of the package; "" for the
            default.

    Raises:
        ConfigError: it is none of these, or git or npm failed.
    """
    folder = Path(source).expanduser()
    if folder.is_dir():
        yield Fetched(folder=Path(os.path.realpath(folder)))
        return
    if not is_fetched(source):
        raise ConfigError(f"{source}: there is no such folder")
    with tempfile.TemporaryDirectory(prefix="acp-agent-plugin-") as top:
        if source.startswith(PREFIX):
            package, version = fetch_package(source.removeprefix(PREFIX), ref, Path(top))
            yield Fetched(folder=package, revision=version)
            return
        place = Path(top, "repository")
        revision = _clone(source, ref, place)
        yield Fetched(folder=place, revision=revision)


def _clone(source: str, ref: str, place: Path) -> str:
    """Fetch one commit of a repository, and return its hash."""
    git = find_git()
    if git is None:
        raise ConfigError("git is needed for that and was not found; install it")
    if ref.startswith("-") or source.startswith("-"):
        raise ConfigError(f"{ref or source}: it begins with a hyphen, so it is no name")
    address = f"https://github.com/{source}.git" if _SHORT.fullmatch(source) else source
    _run(git, None, "init", "--quiet", "--template=", str(place))
    _run(git, place, "fetch", "--quiet", "--depth=1", "--no-tags", "--", address, ref or "HEAD")
    _run(git, place, "checkout", "--quiet", "--detach", "FETCH_HEAD")
    found = _run(git, place, "rev-parse", "HEAD")
    if _COMMIT.fullmatch(ref) and found != ref:
        raise ConfigError(f"{source}: it gave the commit {found} in place of {ref}")
    return found


def _run(git: str, place: Path | None, *arguments: str) -> str:
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_SSH")
    }
    environ |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_LFS_SKIP_SMUDGE": "1"}
    try:
        ended = subprocess.run(
            [git, *_GIT, *(() if place is None else ("-C", str(place))), *arguments],
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"git {arguments[0]} took longer than {_GIT_SECONDS} s") from None
    except OSError as error:
        raise ConfigError(f"git cannot be started: {error.strerror}") from None
    if ended.returncode:
        said = printable_line(ended.stderr.decode("utf-8", "replace"), 400)
        raise ConfigError(f"git {arguments[0]} failed: {said}")
    return ended.stdout.decode("utf-8", "replace").strip()


def marketplace(folder: Path) -> list[Offer] | None:
    """Return the plugins of a marketplace; None if a folder is not one, or is itself a plugin.

    Raises:
        ConfigError: its list is invalid.
    """
    if any((folder / place / FILE_NAME).is_file() for place in (".", *FOREIGN)):
        return None
    file = next((one for name in _MARKETPLACES if (one := folder / name).is_file()), None)
    if file is None:
        return None
    found = read_json(file, folder)
    entries = found.get("plugins")
    if not isinstance(entries, list) or len(entries) > _MOST:
        raise ConfigError(f"{file}: plugins: expected a list of at most {_MOST:,}")
    meta = found.get("metadata")
    root = str(meta.get("pluginRoot") or "") if isinstance(meta, dict) else ""
    offers = []
    for one in entries:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            raise ConfigError(f"{file}: plugins: expected an object with a name and a source")
        source = one.get("source")
        if isinstance(source, str) and root and not source.startswith("./"):
            source = f"{root.rstrip('/')}/{source}"
        text = one.get("description")
        offers.append(
            Offer(
                name=one["name"],
                description=printable_line(text, 200) if isinstance(text, str) else "",
                source=source,
                entry={key: one[key] for key in one if key != "source"},
            )
        )
    return offers


@contextmanager
def offered(place: Fetched, offer: Offer) -> Iterator[Fetched]:
    """Yield the folder of a plugin that a marketplace offers, for the duration of the context.

    Raises:
        ConfigError: its source cannot be used here; the message says why.
    """
    named = printable_line(offer.name, 80)
    manifest = offer.entry  # used if the plugin has no manifest
    match offer.source:
        case str() as path:
            folder = _below(place.folder, path, named)
            yield Fetched(folder=folder, revision=place.revision, manifest=manifest)
        case {"source": kind, **rest}:
            address, path = _address(str(kind), rest, named)
            ref = str(rest.get("sha") or rest.get("ref") or rest.get("version") or "")
            with fetched(address, ref=ref) as found:
                folder = _below(found.folder, path, named)
                yield Fetched(folder=folder, revision=found.revision, manifest=manifest)
        case _:
            raise ConfigError(f"{named}: the marketplace does not say where it is")


def _below(top: Path, path: str, named: str) -> Path:
    folder = Path(os.path.realpath(top / path))
    if not folder.is_relative_to(os.path.realpath(top)) or not folder.is_dir():
        raise ConfigError(f"{named}: {printable_line(path, 100)} is no folder of the marketplace")
    return folder


def _address(kind: str, source: Mapping[Any, object], named: str) -> tuple[str, str]:
    """Return the address of a repository or package, and the folder in it."""
    repository, url = source.get("repo"), source.get("url")
    if kind == "npm" and isinstance(source.get("package"), str) and not source.get("registry"):
        return f"{PREFIX}{source['package']}", "."
    if kind == "github" and isinstance(repository, str) and _SHORT.fullmatch(repository):
        return repository, str(source.get("path") or ".")
    if kind in {"url", "git", "git-subdir"} and isinstance(url, str) and _is_address(url):
        return url, str(source.get("path") or ".")
    raise ConfigError(
        f"{named}: plugins from {printable_line(kind, 40)!r} are not fetched here; download it, "
        "and add its folder"
    )


def _is_address(url: str) -> bool:
    return bool(_ADDRESS.match(url) or _SHORT.fullmatch(url))


def copy_folder(folder: Path, to: Path) -> None:
    """Copy a plugin's folder: only its files, folders and links.

    Raises:
        ConfigError: it cannot be copied.
    """

    def left_out(place: str, names: list[str]) -> list[str]:
        return [name for name in names if name in NOT_PINNED or not _is_content(Path(place, name))]

    try:
        shutil.copytree(folder, to, symlinks=True, ignore=left_out)
    except (OSError, shutil.Error) as error:
        raise ConfigError(
            f"{folder}: it cannot be copied: {printable_line(str(error), 300)}"
        ) from None


def _is_content(path: Path) -> bool:
    mode = path.lstat().st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
