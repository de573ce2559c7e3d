"""What the tests of language servers share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from acp_agent.language_servers import edit_checks, syntax_check
from tests.support.open_session import Desk
from tests.support.waiting import until

SCRIPTED = Path(__file__).parents[1] / "support" / "language_server.py"


@pytest.fixture(autouse=True)
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for servers and parsers as long as a busy machine needs."""
    for module, limit in (
        (edit_checks, "MAX_WAIT"),
        (edit_checks, "_MAX_OTHERS_WAIT"),
        (syntax_check, "MAX_SECONDS"),
    ):
        monkeypatch.setattr(module, limit, 60.0)


async def until_reported(desk: Desk, name: str, message: str) -> None:
    """Wait until a server has reported a problem of a file of the session."""
    path = (desk.folder / name).resolve()

    def is_reported() -> bool:
        pool = desk.services.language_servers._pool
        running = [server.running for server in pool.servers([path.parent])] if pool else []
        return any(
            message in problem.message
            for server in running
            if server is not None
            for problem in server.diagnostics.snapshot().get(path, ())
        )

    await until(is_reported)


def scripted_server(*arguments: str) -> str:
    """The configuration of the scripted server, for files that end in .txt."""
    command = ", ".join(f'"{part}"' for part in (sys.executable, str(SCRIPTED), *arguments))
    return (
        'mode = "full"\n'
        f'[language_servers.scripted]\ncommand = [{command}]\nextensions = [".txt"]\n'
    )
