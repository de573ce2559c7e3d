"""The sources of others' clients are fetched at their commits, and what a person changed stays."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.editors.end_to_end.fetch_sources import Source, fetch, main, recipe


class Upstream:
    """A repository somewhere else, with two commits."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self._git("init", "--quiet")
        self.first, self.second = self._commit("one"), self._commit("two")

    def at(self, commit: str) -> Source:
        return Source(repository=self._folder.as_uri(), commit=commit, reason="a test")

    def _commit(self, text: str) -> str:
        (self._folder / "plugin.lua").write_text(text)
        self._git("add", ".")
        self._git("commit", "--quiet", "-m", text)
        return self._git("rev-parse", "HEAD")

    def _git(self, *words: str) -> str:
        who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.test")
        done = subprocess.run(
            ["git", *who, *words], cwd=self._folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path / "upstream")


def test_a_source_comes_at_its_commit_without_its_history_and_once(
    upstream: Upstream, tmp_path: Path
) -> None:
    target = tmp_path / "sources" / "plugin"
    assert fetch(upstream.at(upstream.first), target) == "fetched, for a test"
    assert (target / "plugin.lua").read_text() == "one"
    assert fetch(upstream.at(upstream.first), target) == "is there"
    assert fetch(upstream.at(upstream.second), target) == "brought up to date, for a test"
    assert (target / "plugin.lua").read_text() == "two"
    assert (target / ".git" / "shallow").exists()


def test_changes_and_files_of_others_stay(upstream: Upstream, tmp_path: Path) -> None:
    changed, own = tmp_path / "changed", tmp_path / "own"
    fetch(upstream.at(upstream.first), changed)
    (changed / "plugin.lua").write_text("mine")
    own.mkdir()
    assert "it was changed" in fetch(upstream.at(upstream.second), changed)
    assert "it is not from here" in fetch(upstream.at(upstream.second), own)
    assert (changed / "plugin.lua").read_text() == "mine"
    assert list(own.iterdir()) == []


def test_an_unreachable_repository_is_reported_and_leaves_no_incomplete_folder(
    upstream: Upstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = Source(repository=(tmp_path / "gone").as_uri(), commit="0" * 40, reason="a test")
    sources = {"gone": gone, "plugin": upstream.at(upstream.first)}
    assert main(sources, tmp_path / "sources") == 1
    said = capsys.readouterr().out
    assert re.search("gone: could not be fetched: .*gone", said)
    assert "plugin: fetched" in said
    assert "Without gone their tests are skipped. Check that there is a way to the internet" in said
    assert [path.name for path in (tmp_path / "sources").iterdir()] == ["plugin"]


def test_the_recipe_names_a_commit_of_a_public_repository_for_each() -> None:
    for name, source in recipe().items():
        assert source.repository.startswith("https://")
        assert source.repository.rpartition("/")[2] == name
        assert re.fullmatch("[0-9a-f]{40}", source.commit)
        assert source.reason
