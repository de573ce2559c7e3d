"""Plugins that are Python packages: beside this program, or installed into separate folders.

pip resolves the required packages, and their versions and digests are saved. It then installs
exactly those, and builds nothing. Packages of this program itself take precedence.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

import msgspec
from msgspec import Struct

from acp_agent.content import printable_line
from acp_agent.errors import ConfigError
from acp_agent.extensions.plugins.installed import Installed
from acp_agent.platform.decoding import decode_json

GROUP = "acp_agent.plugins"
_SECONDS = 600
_NAME = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*((?:[=<>!~]=|[<>])[^;]*)?")
_ONLY_BUILT = ("--only-binary", ":all:")


class _Archive(Struct, frozen=True):
    hashes: dict[str, str] = {}


class _Download(Struct, frozen=True):
    archive_info: _Archive = _Archive()


class _Metadata(Struct, frozen=True):
    name: str
    version: str


class _Item(Struct, frozen=True):
    metadata: _Metadata
    download_info: _Download


class _Report(Struct):
    """Output of `pip install --dry-run --report` (https://pip.pypa.io/en/stable/reference)."""

    install: list[_Item]


def package_name(requirement: str) -> str | None:
    """Return the normalized name of a required package (PEP 503), or None for invalid text."""
    match = _NAME.fullmatch(requirement.strip())
    return None if match is None else re.sub(r"[-_.]+", "-", match[1]).lower()


def resolve(requirement: str) -> Installed:
    """Return what to install for a package, each part with its digest. Queries the registry.

    Raises:
        ConfigError: there is no such package, no version fits, or pip is missing.
    """
    name = package_name(requirement)
    assert name is not None
    if present := _installed_distribution(name):
        return present
    report = _pip("install", "--dry-run", "--quiet", "--report", "-", *_ONLY_BUILT, requirement)
    try:
        items = decode_json(report, _Report).install
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"pip: its report cannot be read ({error}); update pip") from None
    lines = []
    for item in items:
        digest = item.download_info.archive_info.hashes.get("sha256")
        if not digest:
            raise ConfigError(f"{item.metadata.name}: it has no digest, so it is not installed")
        lines.append(f"{item.metadata.name}=={item.metadata.version} --hash=sha256:{digest}")
    version = next(
        (item.metadata.version for item in items if package_name(item.metadata.name) == name), ""
    )
    return Installed(
        source=requirement, kind="package", revision=version, requirements=tuple(lines)
    )


def _installed_distribution(name: str) -> Installed | None:
    """Return the record of a package that is installed beside this program, or None."""
    try:
        package = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    return Installed(
        source=name, kind="package", revision=package.version, digest=_content_digest(package)
    )


def install(record: Installed, folder: Path) -> str:
    """Install resolved packages into a folder; return the digest of their content.

    Raises:
        ConfigError: a file has another digest, or pip failed.
    """
    folder.mkdir(parents=True, mode=0o700)
    file = folder / "requirements.txt"
    file.write_text("".join(f"{line}\n" for line in record.requirements), "utf-8")
    _pip(
        "install", "--quiet", "--no-deps", "--require-hashes", "--no-compile", *_ONLY_BUILT,
        "--target", str(folder), "--requirement", str(file),
    )  # fmt: skip
    name = package_name(record.source)
    assert name is not None
    installed = distribution(name, folder)
    if installed is None:
        raise ConfigError(f"{record.source}: pip installed no package of this name")
    return _content_digest(installed, folder)


def _pip(*arguments: str) -> bytes:
    argv = [sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", "--no-input"]
    try:
        process = subprocess.run(
            [*argv, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"pip took longer than {_SECONDS} s") from None
    if process.returncode:
        error_output = process.stderr.decode("utf-8", "replace")
        if "No module named pip" in error_output:
            raise ConfigError(
                "pip is missing where this program is installed; install the package beside it, "
                "for instance: uv tool install --with PACKAGE acp-agent-server, and add it again"
            )
        raise ConfigError(f"pip failed: {printable_line(error_output.replace('ERROR: ', ''), 400)}")
    return process.stdout


def distribution(name: str, folder: Path) -> metadata.Distribution | None:
    """Return a package from its folder, or from beside this program; None if it is in neither."""
    for path in ([str(folder)], None):
        search = metadata.distributions(path=path) if path else metadata.distributions()
        for candidate in search:
            if package_name(candidate.metadata["Name"] or "") == name:
                return candidate
    return None


def _content_digest(package: metadata.Distribution, folder: Path | None = None) -> str:
    """Return the digest of a package's file list and of the files that differ from their lists.

    Args:
        folder: a folder whose other packages count too, but only by files that differ.
    """
    packages = [package] if folder is None else metadata.distributions(path=[str(folder)])
    digest = hashlib.sha256((package.read_text("RECORD") or "").encode("utf-8", "surrogateescape"))
    for file in sorted({str(file.locate()) for each in packages for file in _changed(each)}):
        digest.update(f"\n{file}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _changed(package: metadata.Distribution) -> Iterator[metadata.PackagePath]:
    """Yield the files of a package that differ from its file list, or are missing."""
    for file in package.files or ():
        if file.hash is None or file.hash.mode != "sha256":
            continue
        try:
            content = Path(str(file.locate())).read_bytes()
        except OSError:
            yield file
            continue
        found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        if found != file.hash.value:
            yield file


def load_objects(name: str, record: Installed, folder: Path) -> Iterator[tuple[str, object]]:
    """Import a package and yield its entry points. Runs its code: call it in a thread.

    Raises:
        ConfigError: the package is missing, has changed since it was added, or has no entry point.
        Exception: any error of its code.
    """
    package = distribution(name, folder)
    if package is None:
        raise ConfigError(f"{name}: the package is not installed any more; add it again, or remove")
    if record.digest != _content_digest(package, folder if folder.is_dir() else None):
        raise ConfigError(
            f"{name}: the package is another one than was added; look at it, then remove it and "
            "add it again"
        )
    if folder.is_dir() and str(folder) not in sys.path:
        sys.path.append(str(folder))
        importlib.invalidate_caches()
    points: Sequence[metadata.EntryPoint] = [
        entry_point for entry_point in package.entry_points if entry_point.group == GROUP
    ]
    if not points:
        raise ConfigError(f"{name}: it has no entry point of the group {GROUP}")
    for point in points:
        yield point.name, point.load()
