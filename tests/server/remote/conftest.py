"""Fixtures of the tests that reach the real agent over a socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.server.remote.remote_agent import DEMO, TOKEN, RemoteAgent

StartListening = Callable[..., RemoteAgent]


@pytest.fixture
def listening(home: Path) -> Iterator[StartListening]:
    """A factory of listening agents; after the test each has to end in order."""
    started: list[RemoteAgent] = []

    def start(
        *arguments: str,
        environ: Mapping[str, str] | None = None,
        listen: str = "127.0.0.1:0",
        token: str | None = TOKEN,
    ) -> RemoteAgent:
        first = RemoteAgent(home, *arguments, environ=environ, listen=listen, token=token)
        started.append(first)
        return first

    yield start
    for remote_agent in started:
        with remote_agent:
            pass


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteAgent]:
    """One listening agent with the demo's model for all tests of a module."""
    with RemoteAgent(tmp_path_factory.mktemp("home"), *DEMO) as agent:
        yield agent


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder to work in."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "greeting.py").write_text("print('Hello')\n")
    return folder
