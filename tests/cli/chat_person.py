"""What tests of `acp-agent chat` share: how a person leaves it, and the chat without a terminal."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.support.agent_process import environment
from tests.support.terminal_screen import CTRL_D, Person
from tests.support.warm_parent import shared_parent

READY = "lists commands and keys"


async def quit_chat(person: Person) -> None:
    person.type(CTRL_D)
    assert await person.status() == 0


async def in_pipes(home: Path, agent: str, text: str = "", *arguments: str) -> tuple[int, str, str]:
    """Chat line by line, without any terminal; exit status, stdout, stderr."""
    words = ["chat", "--command", agent, *arguments]
    process = await shared_parent().start(words, cwd=home, env=environment(home))
    async with asyncio.timeout(60):
        out, err = await process.communicate(text.encode())
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()
