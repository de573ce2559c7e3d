"""Fetches the sources of clients that no registry has: `make editor-sources`.

Each repository of others_sources.toml goes at its commit, without its history, into the folder
where the tests look for it (`others_sources.folder`), by the user's git. A folder that somebody
changed stays as it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, convert, field

from tests.editors.end_to_end.others_sources import folder

RECIPE = Path(__file__).with_name("others_sources.toml")
_PATIENCE = 600  # seconds for one repository


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """A repository, the commit of it that is wanted, and what it is wanted for."""

    repository: str
    commit: str
    reason: str = field(name="for")


class FetchError(Exception):
    """Git could not do what was asked of it; the message says why."""


def recipe(path: Path = RECIPE) -> dict[str, Source]:
    """The sources by the names of their folders."""
    return convert(tomllib.loads(path.read_text("utf-8")), dict[str, Source])


def fetch(source: Source, target: Path) -> str:
    """Bring a source to its commit in `target`; says what was done. Blocks.

    Raises:
        FetchError: git could not do it; what was there stays.
    """
    if not target.exists():
        target.mkdir(parents=True)
        try:
            _git(target, "init", "--quiet")
            _check_out(source, target)
        except FetchError:
            shutil.rmtree(target)
            raise
        return f"fetched, for {source.reason}"
    if not (target / ".git").exists():
        return "left as it is: it is not from here"
    if _git(target, "rev-parse", "--verify", "--quiet", "HEAD^{commit}") == source.commit:
        return "is there"
    if _git(target, "status", "--porcelain"):
        return "left as it is: it was changed"
    _check_out(source, target)
    return f"brought up to date, for {source.reason}"


def _check_out(source: Source, target: Path) -> None:
    _git(target, "fetch", "--quiet", "--depth=1", "--no-tags", source.repository, source.commit)
    _git(target, "checkout", "--quiet", "--detach", source.commit)


def _git(where: Path, *words: str) -> str:
    """What the user's git says, with the user's configuration; it asks nobody for a password."""
    try:
        done = subprocess.run(
            ["git", "-C", where, *words],
            env=os.environ | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE,
            check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise FetchError("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise FetchError(f"it took longer than {_PATIENCE} seconds") from None
    if done.returncode:
        said = [
            line.removeprefix("fatal: ") for line in done.stderr.splitlines() if "fatal" in line
        ]
        raise FetchError(said[0] if said else f"git ended with status {done.returncode}")
    return done.stdout.strip()


def main(sources: dict[str, Source], where: Path, wanted: Sequence[str] = ()) -> int:
    """Fetch all sources, or the `wanted` ones; returns the exit status."""
    missing: list[str] = []
    for name in wanted or sources:
        try:
            done = fetch(sources[name], where / name)
        except FetchError as error:
            missing.append(name)
            done = f"could not be fetched: {error}"
        print(f"{name}: {done}", flush=True)
    if missing:
        print(f"\nWithout {', '.join(missing)} their tests are skipped. Check that there is a way "
              "to the internet, and run `make editor-sources` again.")  # fmt: skip
        return 1
    print(f"\nAll sources are in {where}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(recipe(), folder(), sys.argv[1:]))
