"""Plugins are fetched as packages of npm, and an archive writes nothing outside of its folder."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_agent.errors import ConfigError
from acp_agent.extensions.plugins.adding import fetch_candidate
from acp_agent.extensions.plugins.sources import is_fetched
from tests.extensions.plugins.plugin_files import MANIFEST, SKILL

Fill = Callable[[tarfile.TarFile], None]
# Stands for npm: writes down what it was asked, and packs a file beside it.
NPM = """#!/bin/sh
echo "$@" >> {folder}/asked
cp {folder}/packed.tgz "$5/packed.tgz"
echo '[{{"filename": "packed.tgz", "version": "2.0.1", "files": []}}]'
"""


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Fill], Path]:
    """Returns what lets npm pack an archive; its result has the lines that npm was asked."""

    def packs(fill: Fill) -> Path:
        program = tmp_path / "bin" / "npm"
        program.parent.mkdir()
        program.write_text(NPM.format(folder=tmp_path))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        with tarfile.open(tmp_path / "packed.tgz", "w:gz") as archive:
            fill(archive)
        return tmp_path / "asked"

    return packs


def add(archive: tarfile.TarFile, name: str, text: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(text)
    archive.addfile(entry, io.BytesIO(text.encode()))


def plugin(archive: tarfile.TarFile) -> None:
    add(archive, "package/plugin.json", MANIFEST)
    add(archive, "package/skills/greet/SKILL.md", SKILL)
    add(archive, "package/package.json", '{"scripts": {"postinstall": "touch ran"}}')


@pytest.mark.parametrize(
    ("source", "ref", "asked"),
    [
        ("npm:@example/tools", "", "@example/tools@latest"),
        ("npm:@example/tools@2.0.1", "1.0.0", "@example/tools@2.0.1"),
        ("npm:tools", "^2", "tools@^2"),
    ],
)
def test_a_package_is_a_plugin_with_its_version(
    registry: Callable[[Fill], Path], tmp_path: Path, source: str, ref: str, asked: str
) -> None:
    lines = registry(plugin)
    with fetch_candidate(tmp_path / "own", source, ref=ref) as found:
        assert (found.plugin.name, found.record.revision) == ("hello", "2.0.1")
        assert found.record.source == source
    said = lines.read_text()
    assert said.startswith("pack --ignore-scripts --json --pack-destination ")
    assert said.endswith(f" {asked}\n")


def test_a_marketplace_may_offer_a_package(
    registry: Callable[[Fill], Path], tmp_path: Path
) -> None:
    lines = registry(plugin)
    source = {"source": "npm", "package": "@example/tools", "version": "2.0.1"}
    market = tmp_path / "market" / ".claude-plugin" / "marketplace.json"
    market.parent.mkdir(parents=True)
    market.write_text(json.dumps({"plugins": [{"name": "hello", "source": source}]}))
    with fetch_candidate(tmp_path / "own", str(tmp_path / "market"), chosen="hello") as found:
        assert found.record.revision == "2.0.1"
    assert lines.read_text().endswith(" @example/tools@2.0.1\n")


def link_out(archive: tarfile.TarFile) -> None:
    plugin(archive)
    entry = tarfile.TarInfo("package/out")
    entry.type, entry.linkname = tarfile.SYMTYPE, "../../../secret"
    archive.addfile(entry)


def leads_up(archive: tarfile.TarFile) -> None:
    plugin(archive)
    add(archive, "package/../../../up", "x")


def is_device(archive: tarfile.TarFile) -> None:
    plugin(archive)
    entry = tarfile.TarInfo("package/device")
    entry.type = tarfile.FIFOTYPE
    archive.addfile(entry)


def has_many(archive: tarfile.TarFile) -> None:
    for number in range(10_001):
        archive.addfile(tarfile.TarInfo(f"package/{number}"))


@pytest.mark.parametrize("fill", [link_out, leads_up, is_device, has_many])
def test_an_archive_that_is_no_folder_of_files_is_refused(
    registry: Callable[[Fill], Path], tmp_path: Path, fill: Fill
) -> None:
    registry(fill)
    with (
        pytest.raises(ConfigError, match=r"cannot be unpacked|more than 10,000"),
        fetch_candidate(tmp_path / "own", "npm:tools"),
    ):
        pass
    assert not (tmp_path / "up").exists()


@pytest.mark.parametrize("source", ["npm:../x", "npm:--help", "npm:a/b", "npm:x@$(id)", "npm:"])
def test_an_invalid_package_name_reaches_no_program(
    registry: Callable[[Fill], Path], tmp_path: Path, source: str
) -> None:
    lines = registry(plugin)
    assert is_fetched(source)
    with (
        pytest.raises(ConfigError, match="not the name of an npm package"),
        fetch_candidate(tmp_path / "own", source),
    ):
        pass
    assert not lines.exists()
