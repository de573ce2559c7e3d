"""What the program's name means with no command behind it: flags, and who they come from."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.support.agent_process import environment
from tests.support.terminal_screen import Person, terminal
from tests.support.warm_parent import shared_parent

DEMO = ("--model", "demo/demo")
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": 1, "clientCapabilities": {}},
}


def written(person: Person) -> str:
    return person.raw.decode("utf-8", "replace")


async def piped(home: Path, cwd: Path, *arguments: str, text: str = "") -> tuple[int, str, str]:
    process = await shared_parent().start(arguments, cwd=cwd, env=environment(home))
    async with asyncio.timeout(60):
        out, err = await process.communicate(text.encode())
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--nonsense",), "unknown argument --nonsense"),
        (("--modle", "demo/demo"), "unknown argument --modle; did you mean --model?"),
        (("--trcae=wire.log",), "unknown argument --trcae; did you mean --trace?"),
        (("--model", "demo/demo", "hello"), "unknown argument hello"),
        (("serve", "--nonsense"), "unknown argument --nonsense"),
        (("acp", "--nonsense"), "unknown argument --nonsense"),
    ],
)
async def test_an_unknown_argument_in_a_terminal_is_a_usage_error(
    home: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    async with terminal(home, tmp_path, *arguments) as person:
        assert await person.status() == 2
        await person.see("More: acp-agent --help")
        assert f"acp-agent: {message}\r\n" in written(person)
        assert "usage: acp-agent [--model PROVIDER/NAME]" in written(person)


async def test_an_argument_that_an_editor_appends_is_tolerated_and_logged(
    home: Path, tmp_path: Path
) -> None:
    line = json.dumps(INITIALIZE) + "\n"
    status, out, err = await piped(home, tmp_path, "acp", "--nonsense", "-x", text=line)
    assert (status, err) == (0, "")
    assert json.loads(out)["result"]["protocolVersion"] == 1
    logs = "".join(path.read_text() for path in home.rglob("*.log"))
    assert "unknown arguments: --nonsense -x" in logs


@pytest.mark.parametrize(
    "arguments",
    [
        (*DEMO, "-p", "read README.md"),
        ("--print=read README.md", *DEMO),
    ],
)
async def test_the_option_print_works_like_run_with_its_flags(
    home: Path, workspace_repo: Path, arguments: tuple[str, ...]
) -> None:
    status, out, err = await piped(home, workspace_repo, *arguments)
    assert status == 0
    assert "# Sample" in out
    assert "stop reason: end_turn" in err
    status, out, _ = await piped(home, workspace_repo, *arguments, "--json")
    assert status == 0
    assert json.loads(out.splitlines()[-1])["type"] == "result"


async def test_the_option_print_works_like_run_in_a_terminal(
    home: Path, workspace_repo: Path
) -> None:
    async with terminal(home, workspace_repo, *DEMO, "-p", "$ touch made.txt") as person:
        await person.see("Your choice:")
        person.type("1\n")
        assert await person.status() == 0
        assert (workspace_repo / "made.txt").exists()


async def test_the_option_print_without_a_prompt_is_a_usage_error(
    home: Path, tmp_path: Path
) -> None:
    status, out, err = await piped(home, tmp_path, "-p")
    assert (status, out) == (2, "")
    assert "prompt" in err


async def test_the_server_in_a_terminal_says_that_it_waits_for_a_client(
    home: Path, tmp_path: Path
) -> None:
    async with terminal(home, tmp_path) as person:
        await person.see("Waiting for an editor")
        await person.see("acp-agent chat")
        person.type("\x04")
        assert await person.status() == 0
