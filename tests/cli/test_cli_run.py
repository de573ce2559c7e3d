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

from acp_agent.events import Usage
from tests.support.agent_process import environment
from tests.support.model_server import Call, ModelServer, Pause, Stall, Status, answer
from tests.support.warm_parent import WarmProcess, shared_parent

DEMO = ("--model", "demo/demo")
BIN = Path(sys.executable).parent  # where the program is beside Python


async def start(home: Path, cwd: Path, *arguments: str, **variables: str) -> WarmProcess:
    return await shared_parent().start(arguments, cwd=cwd, env=environment(home, variables))


async def finish(process: Process | WarmProcess, text: str = "") -> tuple[int, str, str]:
    async with asyncio.timeout(60):
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
    assert status == 0
    assert "# Sample" in out
    assert "* Read README.md" in err
    assert "stop reason: end_turn" in err
    assert "\x1b" not in out + err


async def test_only_the_answer_is_written_to_standard_output(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.add(
        answer("I look.", Call("read", {"path": "README.md"})),
        answer("It is", " a sample.\n"),
    )
    status, out, err = await run(
        home, workspace_repo, "--mode", "full", "look", **model_server.environ()
    )
    assert status == 0
    assert out == "I look.\nIt is a sample.\n"
    for text in ("* Read README.md", "stop reason: end_turn", "Continue with: "):
        assert text in err


async def test_the_command_to_continue_is_shown_as_it_can_be_typed(
    home: Path, workspace_repo: Path
) -> None:
    _, _, with_path = await run(home, workspace_repo, *DEMO, "list", PATH=str(BIN))
    assert "Continue with: acp-agent run --resume sess_" in with_path
    _, _, without_path = await run(home, workspace_repo, *DEMO, "list", PATH="/usr/bin:/bin")
    match = re.search(r"Continue with: (\S*acp-agent) run --resume sess_", without_path)
    assert match is not None
    assert (workspace_repo / match[1]).samefile(BIN / "acp-agent")


async def test_an_allowed_edit_is_made_and_shown_as_a_diff(
    home: Path, workspace_repo: Path
) -> None:
    words = "replace Hello with Goodbye in greeting.py"
    status, _, err = await run(home, workspace_repo, *DEMO, "--allow", "edits", words)
    assert status == 0
    assert '-    return f"Hello {name}"' in err
    assert '+    return f"Goodbye {name}"' in err
    assert "? Permission: Edit greeting.py\n" in err
    assert "    -> Allowed by --allow edits\n" in err
    assert "Goodbye" in (workspace_repo / "greeting.py").read_text()


@pytest.mark.parametrize(
    ("flags", "prompt", "needed"),
    [
        ((), "$ touch made.txt", "--allow all"),
        (("--allow", "edits"), "$ touch made.txt", "--allow all"),
        ((), "create made.txt with hi", "--allow edits"),
        (("--json",), "create made.txt with hi", "--allow edits"),
    ],
)
async def test_a_call_without_permission_does_not_run(
    home: Path, workspace_repo: Path, flags: tuple[str, ...], prompt: str, needed: str
) -> None:
    status, out, err = await run(home, workspace_repo, *DEMO, *flags, prompt)
    assert status == 4
    assert "Refused: nobody to ask" in out + err
    last = err.splitlines()[-1]
    assert last.startswith("acp-agent: refused, because there is no terminal to ask in: ")
    assert last.endswith(f"To allow it, add {needed}.")
    assert not (workspace_repo / "made.txt").exists()
    assert (await run(home, workspace_repo, *DEMO, *needed.split(), prompt))[0] == 0
    assert (workspace_repo / "made.txt").exists()


async def test_a_call_that_the_user_denies_is_refused_without_a_failure(
    home: Path, workspace_repo: Path
) -> None:
    status, _, err = await run(home, workspace_repo, *DEMO, "--allow", "none", "$ touch made.txt")
    assert status == 0
    assert "    -> Refused by --allow none" in err
    assert not (workspace_repo / "made.txt").exists()


async def test_the_record_says_who_decided(home: Path, workspace_repo: Path) -> None:
    for flags, decision in (
        (("--allow", "all"), "Allowed by --allow all"),
        (("--allow", "none"), "Refused by --allow none"),
        ((), "Refused: nobody to ask"),
        (("--mode", "full"), "Allowed by mode full"),
    ):
        await run(home, workspace_repo, *DEMO, *flags, "$ touch made.txt")
        show = await start(home, workspace_repo, "sessions", "show", "latest")
        _, output, err = await finish(show)
        assert decision in output, err
        assert "by you" not in output
    page = workspace_repo / "page.html"
    view = await start(home, workspace_repo, "view", "latest", "--output", str(page))
    _, _, err = await finish(view)
    assert decision in page.read_text("utf-8"), err
    assert "Allowed by you" not in page.read_text("utf-8")


async def test_a_chat_without_a_terminal_records_that_no_user_was_asked(
    home: Path, workspace_repo: Path
) -> None:
    chat = await start(home, workspace_repo, "chat", *DEMO)
    _, out, _ = await finish(chat, "$ touch made.txt\n")
    assert "-> Refused: nobody to ask" in out
    _, output, _ = await finish(await start(home, workspace_repo, "sessions", "show", "latest"))
    assert "Refused: nobody to ask" in output
    assert "by you" not in output


async def test_the_mode_decides_before_anybody_is_asked(home: Path, workspace_repo: Path) -> None:
    status, _, err = await run(home, workspace_repo, *DEMO, "--mode", "full", "$ touch made.txt")
    assert status == 0
    assert "? Permission" not in err
    assert (workspace_repo / "made.txt").exists()


async def test_a_commands_output_is_shown(home: Path, workspace_repo: Path) -> None:
    _, _, err = await run(home, workspace_repo, *DEMO, "--allow", "all", "$ echo $((40 + 2))")
    assert "    | 42\n" in err


async def test_json_lines_have_the_updates_in_order_and_then_the_result(
    home: Path, workspace_repo: Path
) -> None:
    status, out, _ = await run(
        home, workspace_repo, *DEMO, "--json", "--allow", "all", "$ touch made.txt"
    )
    assert status == 0
    first, *between, last = lines(out)
    assert first["type"] == "session"
    assert last["type"] == "result"
    assert last["sessionId"] == first["sessionId"]
    assert last["stopReason"] == "end_turn"
    assert last["refused"] == []
    assert {line["type"] for line in between} == {"update", "permission"}
    kinds = [line["update"]["sessionUpdate"] for line in between if line["type"] == "update"]
    assert kinds.index("tool_call") < kinds.index("tool_call_update")
    [permission] = [line for line in between if line["type"] == "permission"]
    assert "touch made.txt" in permission["title"]
    assert (permission["by"], permission["name"], permission["allowed"]) == (
        "flag",
        "--allow all",
        True,
    )


async def test_the_json_result_has_the_last_message_the_usage_and_the_refusals(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.add(
        answer(
            "I write.",
            Call("write", {"path": "a.txt", "content": "hi"}),
            usage=Usage(input=100, output=10),
        ),
        answer("I could ", "not.", usage=Usage(input=200, output=20)),
    )
    status, out, _ = await run(home, workspace_repo, "--json", "write it", **model_server.environ())
    assert status == 4
    last = lines(out)[-1]
    assert last["text"] == "I could not."
    assert (last["usage"]["inputTokens"], last["usage"]["outputTokens"]) == (300, 30)
    assert last["cost"]["currency"] == "USD"
    assert last["cost"]["amount"] > 0
    [refused] = last["refused"]
    assert refused["title"] == "Create a.txt"
    assert refused["flag"] == "--allow edits"


async def test_the_prompt_can_come_from_standard_input(home: Path, workspace_repo: Path) -> None:
    status, out, _ = await run(home, workspace_repo, *DEMO, "-", text="read README.md\n")
    assert status == 0
    assert "# Sample" in out


async def test_prompts_can_come_as_json_lines_each_with_its_result(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.add(answer("One."), answer("Two."))
    prompts = (
        '{"role": "user", "content": "First"}\n'
        '\nno JSON\n{"role": "assistant", "content": "No"}\n'
        '{"type": "user", "message": {"role": "user", "content": '
        '[{"type": "text", "text": "Second"}]}}'
    )
    status, out, _ = await run(
        home, workspace_repo, "--input-json", text=prompts, **model_server.environ()
    )
    printed = lines(out)
    assert [line["text"] for line in printed if line["type"] == "result"] == ["One.", "Two."]
    errors = [line["message"] for line in printed if line["type"] == "error"]
    assert [error.partition(":")[0] for error in errors] == ["line 3", "line 4"]
    assert status == 1
    second = model_server.requests[1].json["messages"]
    assert [message["role"] for message in second[1:]] == ["user", "assistant", "user"]


async def test_a_prompt_and_json_lines_exclude_each_other(home: Path, workspace_repo: Path) -> None:
    status, out, err = await run(home, workspace_repo, "--input-json", "Hi")
    assert (status, out) == (2, "")
    assert "--input-json" in err
    status, _, err = await run(home, workspace_repo)
    assert status == 2


async def test_a_session_continues_where_it_stopped(
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


async def test_the_error_for_a_run_without_a_model_has_a_remedy(
    home: Path, workspace_repo: Path
) -> None:
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


async def test_an_answer_that_reached_its_limit_has_its_own_exit_status(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.otherwise = lambda _: answer("half an ans", stop="max_tokens")
    status, _, err = await run(home, workspace_repo, "talk", **model_server.environ())
    assert status == 3
    assert "stop reason: max_tokens" in err


@pytest.mark.parametrize(
    "arguments",
    [(), ("--allow", "everything", "x"), ("",), ("--cwd", "/no/such/folder", "x")],
)
async def test_a_usage_error_has_status_2_and_starts_nothing(
    home: Path, workspace_repo: Path, arguments: tuple[str, ...]
) -> None:
    status, out, err = await run(home, workspace_repo, *arguments)
    assert status == 2
    assert out == ""
    assert err


async def test_an_interrupt_cancels_the_turn_and_keeps_its_text(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.add(answer("The first words ", Stall(), "never come."))
    process = await start(home, workspace_repo, "run", "talk", **model_server.environ())
    assert process.stdout is not None
    async with asyncio.timeout(60):
        output = await process.stdout.readuntil(b"words")
    process.send_signal(signal.SIGINT)
    status, _, err = await finish(process)
    assert status == 130
    assert output.endswith(b"words")
    assert "stop reason: cancelled" in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_termination_signal_stops_the_turn_in_order(
    home: Path, workspace_repo: Path, model_server: ModelServer, number: signal.Signals
) -> None:
    model_server.add(answer("The first words ", Stall(), "never come."))
    process = await start(home, workspace_repo, "run", "talk", **model_server.environ())
    assert process.stdout is not None
    async with asyncio.timeout(60):
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
async def test_an_interrupt_before_a_command_is_ready_ends_it_silently(
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


async def test_a_closed_output_cancels_the_turn_silently(
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
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert (out, err) == (b"many words", b"")
    await model_server.requests[0].closed_early.wait()


async def test_a_turn_runs_as_the_named_agent_or_not_at_all(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Fine.")
    environ = model_server.environ()
    status, out, _ = await run(home, workspace_repo, "--agent", "review", "look", **environ)
    assert (status, out) == (0, "Fine.\n")
    (request,) = model_server.requests
    assert request.json["messages"][0]["content"].startswith("You review changes")
    status, out, err = await run(home, workspace_repo, "--agent", "reviw", "look", **environ)
    assert (status, out) == (1, "")
    assert "'reviw' is no value of agent; it can be default, explore, plan" in err
    assert len(model_server.requests) == 1
