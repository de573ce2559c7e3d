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
from acp_agent.platform.posix import find_git

_MARKETPLACES = tuple(f"{folder}/marketplace.json" for folder in (*FOREIGN, ".agents/plugins"))
_GIT_SECONDS = 300
_MAX_PLUGINS = 1_000  # plugins of a marketplace
_GITHUB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+")  # owner/repository on GitHub
_ADDRESS = re.compile(r"(https://|ssh://|git://|file://|[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:)")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# Fetching a repository runs no code of it and asks no questions.
_GIT_OPTIONS = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.symlinks=true",
    "-c", "protocol.ext.allow=never", "-c", "submodule.recurse=false", "-c", "filter.lfs.smudge=",
    "-c", "filter.lfs.required=false", "-c", "advice.detachedHead=false",
)  # fmt: skip


class Fetched(Struct, frozen=True, kw_only=True):
    """A fetched folder.

    Attributes:
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
    """Return whether a source is a bare repository, or an address, in short `owner/name`."""
    path = Path(source).expanduser()
    if path.exists():
        return (path / "HEAD").is_file() and (path / "objects").is_dir()
    return bool(_ADDRESS.match(source) or source.endswith(".git") or _GITHUB_NAME.fullmatch(source))


@contextmanager
def fetch_source(source: str, *, ref: str = "") -> Iterator[Fetched]:
    """Yield the folder of a source: the folder itself, or a temporary copy of what is fetched.

    Args:
        source: the path of a folder or a bare repository, the address of a repository, or `npm:`
            and a package.
        ref: a branch, tag or commit of the repository, or a version of the package; "" for the
            default.

    Raises:
        ConfigError: it is none of these, or git or npm failed.
    """
    folder = Path(source).expanduser()
    if not is_fetched(source):
        if folder.is_dir():
            yield Fetched(folder=Path(os.path.realpath(folder)))
            return
        raise ConfigError(f"{source}: there is no such folder")
    with tempfile.TemporaryDirectory(prefix="acp-agent-plugin-") as top:
        if source.startswith(PREFIX):
            package, version = fetch_package(source.removeprefix(PREFIX), ref, Path(top))
            yield Fetched(folder=package, revision=version)
            return
        repository = Path(top, "repository")
        revision = _clone(source, ref, repository)
        yield Fetched(folder=repository, revision=revision)


def _clone(source: str, ref: str, folder: Path) -> str:
    """Fetch one commit of a repository, and return its hash."""
    git = find_git()
    if git is None:
        raise ConfigError("git is needed for that and was not found; install it")
    if ref.startswith("-") or source.startswith("-"):
        raise ConfigError(f"{ref or source}: it begins with a hyphen, so it is no name")
    address = f"https://github.com/{source}.git" if _GITHUB_NAME.fullmatch(source) else source
    if (path := Path(source).expanduser()).exists():
        address = os.path.realpath(path)
    _run(git, None, "init", "--quiet", "--template=", str(folder))
    _run(git, folder, "fetch", "--quiet", "--depth=1", "--no-tags", "--", address, ref or "HEAD")
    _run(git, folder, "checkout", "--quiet", "--detach", "FETCH_HEAD")
    commit = _run(git, folder, "rev-parse", "HEAD")
    if _COMMIT.fullmatch(ref) and commit != ref:
        raise ConfigError(f"{source}: it gave the commit {commit} in place of {ref}")
    return commit


def _run(git: str, folder: Path | None, *arguments: str) -> str:
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_SSH")
    }
    environ |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_LFS_SKIP_SMUDGE": "1"}
    try:
        process = subprocess.run(
            [git, *_GIT_OPTIONS, *(() if folder is None else ("-C", str(folder))), *arguments],
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
    if process.returncode:
        error_output = printable_line(process.stderr.decode("utf-8", "replace"), 400)
        raise ConfigError(f"git {arguments[0]} failed: {error_output}")
    return process.stdout.decode("utf-8", "replace").strip()


def read_marketplace(folder: Path, chosen: str = "") -> list[Offer] | None:
    """Return the plugins of a marketplace; None if a folder is not one.

    A folder that is also a plugin is a marketplace if one of its plugins is chosen, or if it does
    not offer itself.

    Raises:
        ConfigError: its list is invalid.
    """
    file = next((entry for name in _MARKETPLACES if (entry := folder / name).is_file()), None)
    if file is None:
        return None
    if chosen or not any((folder / name / FILE_NAME).is_file() for name in (".", *FOREIGN)):
        return _read_offers(file, folder)
    try:
        offers = _read_offers(file, folder)
    except ConfigError:
        return None
    offers_itself = any(offer.source in (".", "./") for offer in offers)
    return None if offers_itself or not offers else offers


def _read_offers(file: Path, folder: Path) -> list[Offer]:
    """Return the plugins that a marketplace's file lists. Raises ConfigError."""
    content = read_json(file, folder)
    entries = content.get("plugins")
    if not isinstance(entries, list) or len(entries) > _MAX_PLUGINS:
        raise ConfigError(f"{file}: plugins: expected a list of at most {_MAX_PLUGINS:,}")
    meta = content.get("metadata")
    root = str(meta.get("pluginRoot") or "") if isinstance(meta, dict) else ""
    offers = []
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise ConfigError(f"{file}: plugins: expected an object with a name and a source")
        source = entry.get("source")
        if isinstance(source, str) and root and not source.startswith("./"):
            source = f"{root.rstrip('/')}/{source}"
        text = entry.get("description")
        offers.append(
            Offer(
                name=entry["name"],
                description=printable_line(text, 200) if isinstance(text, str) else "",
                source=source,
                entry={key: entry[key] for key in entry if key != "source"},
            )
        )
    return offers


@contextmanager
def fetch_offer(marketplace_source: Fetched, offer: Offer) -> Iterator[Fetched]:
    """Yield the folder of a plugin that a marketplace offers, for the duration of the context.

    Raises:
        ConfigError: its source cannot be used here; the message says why.
    """
    label = printable_line(offer.name, 80)
    manifest = offer.entry  # used if the plugin has no manifest
    match offer.source:
        case str() as path:
            folder = _below(marketplace_source.folder, path, label)
            yield Fetched(folder=folder, revision=marketplace_source.revision, manifest=manifest)
        case {"source": kind, **fields}:
            address, path = _address(str(kind), fields, label)
            ref = str(fields.get("sha") or fields.get("ref") or fields.get("version") or "")
            with fetch_source(address, ref=ref) as fetched_source:
                folder = _below(fetched_source.folder, path, label)
                yield Fetched(folder=folder, revision=fetched_source.revision, manifest=manifest)
        case _:
            raise ConfigError(f"{label}: the marketplace does not say where it is")


def _below(top: Path, path: str, label: str) -> Path:
    folder = Path(os.path.realpath(top / path))
    if not folder.is_relative_to(os.path.realpath(top)) or not folder.is_dir():
        raise ConfigError(f"{label}: {printable_line(path, 100)} is no folder of the marketplace")
    return folder


def _address(kind: str, source: Mapping[Any, object], label: str) -> tuple[str, str]:
    """Return the address of a repository or package, and the folder in it."""
    repository, url = source.get("repo"), source.get("url")
    if kind == "npm" and isinstance(source.get("package"), str) and not source.get("registry"):
        return f"{PREFIX}{source['package']}", "."
    if kind == "github" and isinstance(repository, str) and _GITHUB_NAME.fullmatch(repository):
        return repository, str(source.get("path") or ".")
    if kind in {"url", "git", "git-subdir"} and isinstance(url, str) and _is_address(url):
        return url, str(source.get("path") or ".")
    raise ConfigError(
        f"{label}: plugins from {printable_line(kind, 40)!r} are not fetched here; download it, "
        "and add its folder"
    )


def _is_address(url: str) -> bool:
    return bool(_ADDRESS.match(url) or _GITHUB_NAME.fullmatch(url))


def copy_folder(folder: Path, target: Path) -> None:
    """Copy a plugin's folder: only its files, folders and links. Raises ConfigError."""

    def ignored_names(folder_path: str, names: list[str]) -> list[str]:
        return [
            name for name in names if name in NOT_PINNED or not _is_content(Path(folder_path, name))
        ]

    try:
        shutil.copytree(folder, target, symlinks=True, ignore=ignored_names)
    except (OSError, shutil.Error) as error:
        raise ConfigError(
            f"{folder}: it cannot be copied: {printable_line(str(error), 300)}"
        ) from None


def _is_content(path: Path) -> bool:
    mode = path.lstat().st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
