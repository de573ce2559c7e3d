"""`acp-agent run` in a terminal, a real pseudo-terminal: it asks, it has colours, Ctrl-C works."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.model_server import ModelServer, Stall, answer
from tests.support.terminal_screen import CTRL_C, Person, terminal

RUN = ("run", "--model", "demo/demo")


def written(person: Person) -> str:
    """Everything that came to the terminal, with its escape codes."""
    return person.raw.decode("utf-8", "replace")


async def test_a_person_is_asked_and_the_answer_counts(home: Path, workspace_repo: Path) -> None:
    async with terminal(home, workspace_repo, *RUN, "$ touch made.txt") as person:
        await person.see("Your choice:")
        assert "1) Allow once" in written(person)
        assert not (workspace_repo / "made.txt").exists()
        person.type("1\n")
        assert await person.status() == 0
        assert (workspace_repo / "made.txt").exists()


async def test_an_invalid_answer_is_requested_again_and_then_refused(
    home: Path, workspace_repo: Path
) -> None:
    async with terminal(home, workspace_repo, *RUN, "$ touch made.txt") as person:
        for times, typed in enumerate(("\n", "yes\n", "9\n"), 1):
            await person.count("Your choice:", times)
            person.type(typed)
        assert await person.status() == 0
        assert not (workspace_repo / "made.txt").exists()


async def test_colours_are_for_terminals_and_can_be_turned_off(
    home: Path, workspace_repo: Path
) -> None:
    async with terminal(home, workspace_repo, *RUN, "read README.md") as person:
        assert await person.status() == 0
        await person.see("stop reason: end_turn")
        assert "\x1b[36m* Read README.md" in written(person)
    async with terminal(
        home, workspace_repo, *RUN, "read README.md", environ={"NO_COLOR": "1"}
    ) as person:
        assert await person.status() == 0
        await person.see("stop reason: end_turn")
        assert "\x1b" not in written(person)


async def test_a_file_cannot_drive_the_terminal(home: Path, workspace_repo: Path) -> None:
    (workspace_repo / "evil.txt").write_text("a\x1b]0;title\x07b\x9b2Jc\n")
    async with terminal(home, workspace_repo, *RUN, "read evil.txt") as person:
        assert await person.status() == 0
        await person.see("stop reason")
        assert "\x1b]" not in written(person)
        assert "\x9b" not in written(person)


@pytest.mark.parametrize("when", ["asked", "streaming"])
async def test_ctrl_c_cancels_the_turn(
    home: Path, workspace_repo: Path, model_server: ModelServer, when: str
) -> None:
    model_server.add(answer("The first words ", Stall(), "never come."))
    arguments, awaited = [*RUN, "$ touch made.txt"], "Your choice:"
    if when == "streaming":
        arguments, awaited = ["run", "talk"], "first words"
    environ = model_server.environ()
    async with terminal(home, workspace_repo, *arguments, environ=environ) as person:
        await person.see(awaited)
        person.type(CTRL_C)
        assert await person.status() == 130
        await person.see("stop reason: cancelled")
    assert not (workspace_repo / "made.txt").exists()


async def test_a_second_ctrl_c_quits_though_the_agent_does_not_answer(
    home: Path, workspace_repo: Path
) -> None:
    words = "$ echo ready; sleep 60"
    cold = {"ACP_AGENT_TEST_COLD": "1"}  # with a process that can be told from the command's
    run = (*RUN, "--mode", "full", words)
    async with terminal(home, workspace_repo, *run, environ=cold) as person:
        await person.see("| ready")
        [agent] = [pid for pid, line in person.processes().items() if " acp_agent acp " in line]
        os.kill(agent, signal.SIGSTOP)
        person.type(CTRL_C)
        await person.see("again to quit")
        person.type(CTRL_C)
        assert await person.status() == 130
        for pid in person.processes():  # what the stopped agent could not end any more
            os.kill(pid, signal.SIGKILL)
