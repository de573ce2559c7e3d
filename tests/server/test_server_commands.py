"""Commands that the agent runs: whose processes they are, and how their output shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.server.server_session import OPENAI, OpenSession, calls_by_id, messages
from tests.support.agent_process import AgentProcess, StartAgent, config_file
from tests.support.editor import EVERYTHING, Editor
from tests.support.model_server import Call, ModelServer, answer
from tests.support.wire_client import content_text

FIFO = "mkfifo go; echo first; read line < go; echo second"
ZED: dict[str, Any] = {"_meta": {"terminal_output": True}}


def runs(server: ModelServer, command: str, **more: Any) -> None:
    """Let the model run one command and then say something."""
    server.add(answer(Call("shell", {"command": command} | more)), answer("Ran."))


async def zed(
    agent: StartAgent, server: ModelServer, cwd: Path, *arguments: str
) -> tuple[AgentProcess, str]:
    """An agent whose client shows live output from `_meta`."""
    running = await agent(*OPENAI, *arguments, environ=server.environ("openai"))
    await running.initialize(clientCapabilities=ZED)
    return running, await running.new_session(cwd)


@pytest.mark.covers("P5", "P3")
async def test_output_shows_while_the_command_still_runs(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    runs(model_server, FIFO)
    running, session = await opened()
    prompt = running.post_prompt(session, "run")
    seen = await running.expect_update(
        session, "tool_call_update", lambda update: "first" in _output(update)
    )
    assert "second" not in _output(seen)
    with (workspace_repo / "go").open("w") as fifo:
        fifo.write("\n")
    assert (await running.result(prompt))["stopReason"] == "end_turn"
    (call,) = calls_by_id(running.updates(session)).values()
    assert call[0]["kind"] == "execute"
    assert "first\nsecond" in content_text(call[-1])
    assert "exit code 0" in content_text(call[-1])


def _output(update: dict[str, Any]) -> str:
    """What an update shows of a command's output, without the command itself."""
    return "" if "title" in update else content_text(update).replace(FIFO, "")


@pytest.mark.covers("P5", "I6")
@pytest.mark.parametrize("traced", [False, True])  # a traced connection takes the ordinary way in
async def test_zed_gets_the_output_once_in_a_terminal(
    agent: StartAgent,
    model_server: ModelServer,
    workspace_repo: Path,
    tmp_path: Path,
    traced: bool,
) -> None:
    runs(model_server, "echo one; echo two >&2; printf '\\033[31mred\\033[0m'; exit 3")
    trace = ("--trace", str(tmp_path / "trace")) if traced else ()
    running, session = await zed(agent, model_server, workspace_repo, *trace)
    await running.prompt(session, "run")
    (call,) = calls_by_id(running.updates(session)).values()
    terminal = call[0]["toolCallId"]
    metas = [update["_meta"] for update in call if "_meta" in update]
    (info,) = [meta["terminal_info"] for meta in metas if "terminal_info" in meta]
    assert info == {"terminal_id": terminal, "cwd": str(workspace_repo)}
    pieces = [meta["terminal_output"] for meta in metas if "terminal_output" in meta]
    assert {piece["terminal_id"] for piece in pieces} == {terminal}
    output = "".join(piece["data"] for piece in pieces)
    assert output.count("one") == output.count("two") == output.count("red") == 1
    (end,) = [meta["terminal_exit"] for meta in metas if "terminal_exit" in meta]
    assert end == {"terminal_id": terminal, "exit_code": 3, "signal": None}
    content = [part for update in call for part in update.get("content") or ()]
    assert {"type": "terminal", "terminalId": terminal} in content
    assert call[-1]["status"] == "failed"


@pytest.mark.covers("I6", "P5")
async def test_no_client_that_did_not_announce_it_gets_terminal_meta(
    opened: OpenSession, model_server: ModelServer
) -> None:
    runs(model_server, "echo one")
    running, session = await opened(editor=Editor(offers=EVERYTHING - {"terminal"}))
    await running.prompt(session, "run")
    assert b'"terminal_' not in b"".join(running.lines)


@pytest.mark.covers("P5", "I6")
@pytest.mark.parametrize("opted_in", [False, True])
async def test_the_editor_s_terminal_is_used_only_when_the_user_wants_it(
    opened: OpenSession, home: Path, model_server: ModelServer, opted_in: bool
) -> None:
    config_file(home, f"[editor]\nterminals = {str(opted_in).lower()}\n")
    runs(model_server, "echo 'two  spaces' | tr a-z A-Z")
    editor = Editor(offers=frozenset({"terminal"}))
    running, session = await opened(editor=editor)
    await running.prompt(session, "run")
    assert bool(editor.commands) is opted_in
    assert "TWO  SPACES" in str(messages(model_server)[-1]["content"])


@pytest.mark.covers("P5", "T1")
async def test_a_command_has_no_way_to_the_protocol_s_streams(
    opened: OpenSession, model_server: ModelServer
) -> None:
    line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {}})
    runs(
        model_server,
        f"echo '{line}'; echo '{line}' >&2; cat; for fd in 3 4 5 6 7 8 9; do "
        f"echo '{line}' >&$fd; done 2>/dev/null; ls -l /proc/self/fd",
    )
    running, session = await opened()
    await running.prompt(session, "run")
    result = str(messages(model_server)[-1]["content"])
    assert "jsonrpc" in result  # the command's own output went where output goes
    inherited = [int(number) for number in re.findall(r" (\d+) -> ", result)]
    assert max(inherited) <= 3  # 3 is ls reading the folder
    # Anything of it on standard output would have broken the oracle's rules.


@pytest.mark.covers("P5", "P3")
async def test_a_command_that_takes_too_long_is_ended_and_says_so(
    opened: OpenSession, model_server: ModelServer
) -> None:
    runs(model_server, "echo begun; sleep 1000", timeout=1.5)
    running, session = await opened()
    assert (await running.prompt(session, "run"))["stopReason"] == "end_turn"
    (call,) = calls_by_id(running.updates(session)).values()
    assert call[-1]["status"] == "failed"
    assert "timed out after 1.5 s" in content_text(call[-1])
    assert "begun" in str(messages(model_server)[-1]["content"])


@pytest.mark.covers("P5")
async def test_binary_output_and_very_long_lines_are_harmless(
    opened: OpenSession, model_server: ModelServer
) -> None:
    runs(model_server, "head -c 3000000 /dev/urandom; echo; echo the end")
    running, session = await opened()
    assert (await running.prompt(session, "run"))["stopReason"] == "end_turn"
    request_text = str(messages(model_server)[-1]["content"])
    assert "the end" in request_text
    assert len(request_text) < 60_000
    assert sum(map(len, running.lines)) < 12_000_000
