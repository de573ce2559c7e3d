"""`acp-agent run`: the real command, which starts the real server."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_process import environment
from tests.support.model_server import ModelServer, Pause, Stall, Status, answer

DEMO = ("--model", "demo/demo")
BIN = Path(sys.executable).parent  # where the program is beside Python


async def start(home: Path, cwd: Path, *arguments: str, **variables: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "acp_agent",
        *arguments,
        cwd=cwd,
        env=environment(home, variables),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )


async def finish(process: Process, text: str = "") -> tuple[int, str, str]:
    async with asyncio.timeout(40):
        out, err = await process.communicate(text.encode())
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def run(
    home: Path, cwd: Path, *arguments: str, text: str = "", **variables: str
) -> tuple[int, str, str]:
    return await finish(await start(home, cwd, "run", *arguments, **variables), text)


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


async def test_a_turn_is_readable_and_plain_in_a_pipe(home: Path, workspace_repo: Path) -> None:
    status, out, err = await run(home, workspace_repo, *DEMO, "read README.md")
    assert (status, err) == (0, "")
    assert "* Read README.md" in out
    assert "# Sample" in out
    assert "stop reason: end_turn" in out
    assert "\x1b" not in out


async def test_how_to_go_on_is_told_as_it_can_be_typed(home: Path, workspace_repo: Path) -> None:
    _, there, _ = await run(home, workspace_repo, *DEMO, "list", PATH=str(BIN))
    assert "go on with: acp-agent run --resume sess_" in there
    _, elsewhere, _ = await run(home, workspace_repo, *DEMO, "list", PATH="/usr/bin:/bin")
    said = re.search(r"go on with: (\S*acp-agent) run --resume sess_", elsewhere)
    assert said is not None
    assert (workspace_repo / said[1]).samefile(BIN / "acp-agent")


async def test_an_allowed_edit_is_made_and_shown_as_a_diff(
    home: Path, workspace_repo: Path
) -> None:
    words = "replace Hello with Goodbye in greeting.py"
    status, out, _ = await run(home, workspace_repo, *DEMO, "--allow", "edits", words)
    assert status == 0
    assert '-    return f"Hello {name}"' in out
    assert '+    return f"Goodbye {name}"' in out
    assert "? Permission: Edit greeting.py" in out
    assert "Goodbye" in (workspace_repo / "greeting.py").read_text()


@pytest.mark.parametrize("flags", [(), ("--allow", "none"), ("--allow", "edits")])
async def test_what_nobody_allowed_does_not_run(
    home: Path, workspace_repo: Path, flags: tuple[str, ...]
) -> None:
    status, out, _ = await run(home, workspace_repo, *DEMO, *flags, "$ touch made.txt")
    assert status == 0
    assert "? Permission" in out
    assert not (workspace_repo / "made.txt").exists()


async def test_the_mode_decides_before_anybody_is_asked(home: Path, workspace_repo: Path) -> None:
    status, out, _ = await run(home, workspace_repo, *DEMO, "--mode", "full", "$ touch made.txt")
    assert status == 0
    assert "? Permission" not in out
    assert (workspace_repo / "made.txt").exists()


async def test_a_commands_output_is_shown(home: Path, workspace_repo: Path) -> None:
    _, out, _ = await run(home, workspace_repo, *DEMO, "--allow", "all", "$ echo $((40 + 2))")
    assert "    | 42\n" in out


async def test_json_lines_tell_the_updates_as_they_came_then_the_result(
    home: Path, workspace_repo: Path
) -> None:
    status, out, _ = await run(
        home, workspace_repo, *DEMO, "--json", "--allow", "all", "$ touch made.txt"
    )
    assert status == 0
    first, *between, last = lines(out)
    assert first["type"] == "session"
    assert last == {
        "type": "result",
        "sessionId": first["sessionId"],
        "stopReason": "end_turn",
    }
    assert {one["type"] for one in between} == {"update", "permission"}
    kinds = [one["update"]["sessionUpdate"] for one in between if one["type"] == "update"]
    assert kinds.index("tool_call") < kinds.index("tool_call_update")
    [permission] = [one for one in between if one["type"] == "permission"]
    assert "touch made.txt" in permission["title"]


async def test_the_prompt_can_come_from_standard_input(home: Path, workspace_repo: Path) -> None:
    status, out, _ = await run(home, workspace_repo, *DEMO, "-", text="read README.md\n")
    assert status == 0
    assert "# Sample" in out


async def test_a_session_goes_on_where_it_was(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.add(answer("Noted."), answer("It was blue."))
    variables = model_server.environ()
    _, out, _ = await run(home, workspace_repo, "--json", "I like blue.", **variables)
    session = lines(out)[0]["sessionId"]
    status, out, _ = await run(
        home, workspace_repo, "--resume", session, "What do I like?", **variables
    )
    assert status == 0
    assert "It was blue." in out
    assert "I like blue." in json.dumps(model_server.requests[1].json)


async def test_without_a_model_it_says_what_to_do(home: Path, workspace_repo: Path) -> None:
    status, _, err = await run(home, workspace_repo, "hello")
    assert status == 1
    assert "acp-agent login" in err
    assert "Traceback" not in err


async def test_an_error_of_the_provider_is_one_line_and_a_failure(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.add(Status(code=401, message="bad key"))
    status, _, err = await run(home, workspace_repo, "hello", **model_server.environ())
    assert status == 1
    assert "401" in err
    assert len(err.splitlines()) == 1


async def test_an_error_is_a_json_line_too(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.add(Status(code=401, message="bad key"))
    status, out, _ = await run(home, workspace_repo, "--json", "hello", **model_server.environ())
    assert status == 1
    last = lines(out)[-1]
    assert last["type"] == "error"
    assert "401" in last["message"]


async def test_an_answer_that_was_cut_at_its_limit_has_a_status_of_its_own(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.add(answer("half an ans", stop="max_tokens"))
    status, out, _ = await run(home, workspace_repo, "talk", **model_server.environ())
    assert status == 3
    assert "stop reason: max_tokens" in out


@pytest.mark.parametrize(
    "arguments",
    [(), ("--allow", "everything", "x"), ("",), ("--cwd", "/no/such/folder", "x")],
)
async def test_wrong_use_has_status_2_and_starts_nothing(
    home: Path, workspace_repo: Path, arguments: tuple[str, ...]
) -> None:
    status, out, err = await run(home, workspace_repo, *arguments)
    assert status == 2
    assert out == ""
    assert err


async def test_an_interrupt_cancels_the_turn_and_keeps_what_it_said(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.add(answer("The first words ", Stall(), "never come."))
    process = await start(home, workspace_repo, "run", "talk", **model_server.environ())
    assert process.stdout is not None
    async with asyncio.timeout(20):
        said = await process.stdout.readuntil(b"words")
    process.send_signal(signal.SIGINT)
    status, out, _ = await finish(process)
    assert status == 130
    assert said.endswith(b"words")
    assert "stop reason: cancelled" in out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_to_end_stops_the_turn_in_order(
    home: Path, workspace_repo: Path, model_server: ModelServer, number: signal.Signals
) -> None:
    model_server.add(answer("The first words ", Stall(), "never come."))
    process = await start(home, workspace_repo, "run", "talk", **model_server.environ())
    assert process.stdout is not None
    async with asyncio.timeout(20):
        await process.stdout.readuntil(b"words")
    process.send_signal(number)
    status, _, err = await finish(process)
    assert status == 128 + number
    assert "Traceback" not in err


# Ctrl-C while a command is still being imported.
EARLY = """
import signal, sys
from acp_agent.cli.main import main

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "acp_agent.cli." + sys.argv[1]:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.exit(main([word for word in sys.argv[1:] if word != "serve"]))
"""


@pytest.mark.parametrize("command", ["chat", "doctor", "serve"])
async def test_an_interrupt_before_a_command_is_ready_ends_it_without_a_word(
    home: Path, workspace_repo: Path, command: str
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", EARLY, command),
        cwd=workspace_repo,
        env=environment(home, {}),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
    assert await finish(process) == (130, "", "")


async def test_output_that_nobody_reads_cancels_the_turn_quietly(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    slowly = [step for _ in range(100) for step in ("many words ", Pause(0.05))]
    model_server.add(answer(*slowly, Stall(), "never come."))
    process = await asyncio.create_subprocess_shell(
        f"'{sys.executable}' -m acp_agent run talk | head -c 10",
        cwd=workspace_repo,
        env=environment(home, model_server.environ()),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    async with asyncio.timeout(40):
        out, err = await process.communicate()
    assert (out, err) == (b"many words", b"")
    await model_server.requests[0].closed_early.wait()
