"""Clients that others wrote and that no registry has: where their sources are, where they are.

A folder for each, named as its repository is, below `$ACP_AGENT_EDITOR_SOURCES`, or else below
`acp-agent-editors/sources` in the user's cache, where `make editor-sources` puts them, at the
commits of others_sources.toml. What is not there is skipped.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


def cache() -> Path:
    """What these tests keep between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "acp-agent-editors"


def folder() -> Path:
    """The folder of the sources."""
    return Path(os.environ.get("ACP_AGENT_EDITOR_SOURCES") or cache() / "sources")


def sources(*names: str) -> list[Path]:
    """The folders of some repositories; skips the test where one is not there."""
    below = folder()
    missing = [name for name in names if not (below / name).exists()]
    if missing:
        pytest.skip(f"{', '.join(missing)} not in {below}: `make editor-sources` fetches sources")
    return [below / name for name in names]


def give_demo(home: Path) -> None:
    """Let the agent of a home use the offline demo."""
    config = home / ".config" / "acp-agent" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('model = "demo/demo"\n')


def user_environment(home: Path) -> dict[str, str]:
    """What a user with this home has in the environment: no keys, and the programs of the tests."""
    program = Path(sys.executable).parent
    return {
        "HOME": str(home),
        "PATH": f"{program}{os.pathsep}{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "TERM": "xterm",
    }
