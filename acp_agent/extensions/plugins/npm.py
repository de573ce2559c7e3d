"""Fetch a plugin from npm, without installing the package or running its code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import msgspec
from msgspec import Struct

from acp_agent.content import printable_line
from acp_agent.errors import ConfigError
from acp_agent.platform.decoding import decode_json

PREFIX = "npm:"
_PACKAGE = re.compile(r"(@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*")
_VERSION = re.compile(r"[A-Za-z0-9.^~+-]*")
_SECONDS = 300
_MAX_FILES = 10_000
_MAX_BYTES = 200_000_000  # of all files together


class _Packed(Struct):
    """The output of `npm pack` for a package."""

    filename: str
    version: str


def fetch_package(source: str, ref: str, folder: Path) -> tuple[Path, str]:
    """Fetch a package into an empty folder; return the folder of its files, and its version.

    Args:
        source: its name, optionally with a version after `@`.
        ref: its version, unless the name has one; "" for the newest.

    Raises:
        ConfigError: npm is missing or has no such package, or the archive is malformed.
    """
    at = source.find("@", 1)
    name, version = (source, ref) if at < 0 else (source[:at], source[at + 1 :])
    if not _PACKAGE.fullmatch(name) or not _VERSION.fullmatch(version):
        raise ConfigError(f"{printable_line(source, 100)} is not the name of an npm package")
    npm = shutil.which("npm")
    if npm is None:
        raise ConfigError("npm was not found; install it")
    packed = _pack(npm, f"{name}@{version or 'latest'}", folder)
    archive = folder / Path(packed.filename).name
    try:
        _extract(archive, folder / "files")
    except (OSError, tarfile.TarError) as error:
        raise ConfigError(f"{name}: it cannot be unpacked: {error}") from None
    tops = [entry for entry in (folder / "files").iterdir() if entry.is_dir()]
    if len(tops) != 1:
        raise ConfigError(f"{name}: expected one folder in the archive")
    return tops[0], packed.version


def _pack(npm: str, spec: str, folder: Path) -> _Packed:
    # In a separate folder, so that no project's .npmrc applies.
    command = [npm, "pack", "--ignore-scripts", "--json", "--pack-destination", str(folder), spec]
    try:
        process = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "npm_config_ignore_scripts": "true", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"npm took longer than {_SECONDS} s") from None
    except OSError as error:
        raise ConfigError(f"npm cannot be started: {error.strerror}") from None
    if process.returncode:
        lines = [line for line in process.stderr.decode("utf-8", "replace").splitlines() if line]
        raise ConfigError(f"npm failed: {printable_line(' '.join(lines[:3]), 400)}")
    try:
        (packed,) = decode_json(process.stdout, list[_Packed])
    except (msgspec.DecodeError, ValueError) as error:
        raise ConfigError(f"cannot read the output of npm: {error}") from None
    return packed


def _extract(archive: Path, to: Path) -> None:
    """Unpack an archive of regular files.

    Raises:
        ConfigError: it is too large.
        OSError, TarError: it is invalid, or contains other kinds of files.
    """
    count = size = 0
    with tarfile.open(archive, "r:gz") as files:
        for member in files:
            count, size = count + 1, size + member.size
            if count > _MAX_FILES or size > _MAX_BYTES:
                raise ConfigError(
                    f"{archive.name}: it has more than {_MAX_FILES:,} files, or 200 MB"
                )
            files.extract(member, to, filter="data")
