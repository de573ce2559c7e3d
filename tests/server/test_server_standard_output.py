"""Standard output belongs to the protocol, and nothing that goes wrong on the way in stops it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.server.server_session import DEMO, OPENAI, OpenSession, messages
from tests.support.agent_process import AgentProcess, StartAgent
from tests.support.editor import EVERYTHING, Editor
from tests.support.framing import Json
from tests.support.model_server import Call, ModelServer, Stall, answer

# Runs in the agent before anything of it does, as a plug-in or a debugger would.
NOISE = """
import os, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "pydantic":
            print("importing", name, flush=True)
            os.write(1, b"raw bytes\\n")
            os.system("echo a child")
        return None
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.cold
@pytest.mark.covers("T1")
async def test_prints_raw_writes_and_children_of_imported_code_never_reach_the_editor(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(NOISE)
    environ = model_server.environ("openai") | {
        "PYTHONPATH": str(tmp_path),
        "PYTHONWARNINGS": "always",
        "PYTHONVERBOSE": "",
        "OPENAI_LOG": "debug",
    }
    model_server.add(answer(Call("shell", {"command": "echo out; echo err >&2"})), answer("Ran."))
    running = await agent(*OPENAI, environ=environ)
    await running.initialize()
    session = await running.new_session(workspace_repo)
    assert (await running.prompt(session, "run"))["stopReason"] == "end_turn"
    await running.stop()  # every line was judged by the oracle
    for noise in (b"importing pydantic", b"raw bytes", b"a child"):
        assert noise in running.stderr
        assert noise not in b"".join(running.lines)


@pytest.mark.cold
@pytest.mark.covers("T1")
@pytest.mark.parametrize(
    "environ",
    [
        {"PYTHONWARNINGS": "always", "PYTHONDEVMODE": "1"},
        {"PYTHONUNBUFFERED": "1", "PYTHONUTF8": "0", "LC_ALL": "C", "LANG": "C"},
        {"PYTHONIOENCODING": "ascii", "PYTHONASYNCIODEBUG": "1"},
    ],
    ids=["warnings", "c locale", "ascii"],
)
async def test_no_environment_of_the_interpreter_breaks_a_line(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, environ: Mapping[str, str]
) -> None:
    model_server.add(answer("Grüße, 世界 🎉\u2028\u0085 end"))
    running = await agent(*OPENAI, environ=model_server.environ("openai") | dict(environ))
    await running.initialize()
    session = await running.new_session(workspace_repo)
    await running.prompt(session, "Grüße, 世界 🎉")
    assert running.text(session) == "Grüße, 世界 🎉\u2028\u0085 end"
    assert "Grüße, 世界 🎉" in json.dumps(messages(model_server), ensure_ascii=False)


@pytest.mark.covers("T1", "T2")
async def test_ids_of_every_kind_come_back_as_they_were(
    agent: StartAgent, workspace_repo: Path
) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    for request in (0, -7, 2**53, "a string", "ü\n", "1", ""):
        await running.send(
            {"jsonrpc": "2.0", "id": request, "method": "session/list", "params": {}}
        )
        assert await running.result(request) == {"sessions": []}


def error_behind(running: AgentProcess, count: int) -> Callable[[Json], bool]:
    """Whether a message is an error, and not one of the first `count` messages."""
    return lambda message: "error" in message and message in running.messages[count:]


@pytest.mark.covers("T3", "T4")
async def test_broken_lines_in_the_middle_of_a_turn_cost_an_error_each_and_nothing_else(
    opened: OpenSession, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("One ", stall, "two."))
    running, session = await opened()
    prompt = running.post_prompt(session, "talk")
    await running.expect_update(session, "agent_message_chunk")
    for line, code in (
        (b"{broken\n", -32700),
        (b"\xff\xfe\n", -32700),
        (b"[]\n", -32600),
        (b"42\n", -32600),
        (b"{}\n", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"session/list"}]\n', -32600),
    ):
        count = len(running.messages)
        await running.send(line)
        error = await running.expect(error_behind(running, count))
        assert (error["id"], error["error"]["code"]) == (None, code)
    for method, code in (
        ("session/unheard_of", -32601),
        ("_vendor/thing", -32601),
        ("$/odd", -32601),
    ):
        answer_ = await running.answer(running.post(method, {}))
        assert answer_["error"]["code"] == code
        assert method in answer_["error"]["message"]
    running.notify("_vendor/event", {"any": "thing"})
    stall.release()
    assert (await running.result(prompt))["stopReason"] == "end_turn"
    assert running.text(session) == "One two."


@pytest.mark.covers("T6")
async def test_requests_of_one_session_are_handled_in_the_order_in_which_they_came(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.otherwise = answer("Done.")
    running, session = await opened()
    lines = []
    for number, mode in enumerate(["plan", "full", "accept-edits", "ask", "plan"] * 4):
        params = {"sessionId": session, "modeId": mode}
        lines.append(
            {"jsonrpc": "2.0", "id": f"m{number}", "method": "session/set_mode", "params": params}
        )
    blocks = [{"type": "text", "text": "/mode"}]
    lines.append(
        {
            "jsonrpc": "2.0",
            "id": "last",
            "method": "session/prompt",
            "params": {"sessionId": session, "prompt": blocks},
        }
    )
    await running.send(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    await running.result("last")
    updates = [
        update["currentModeId"] for update in running.updates(session, "current_mode_update")
    ]
    assert updates == ["plan", "full", "accept-edits", "ask", "plan"] * 4
    assert "`plan` (current)" in running.text(session)
    order = [message["id"] for message in running.messages if isinstance(message.get("id"), str)]
    assert order == [*(f"m{number}" for number in range(20)), "last"]


@pytest.mark.covers("T6")
async def test_a_turn_s_last_update_precedes_its_response_and_nothing_follows(
    opened: OpenSession, model_server: ModelServer
) -> None:
    model_server.otherwise = answer(*["word "] * 50)
    running, session = await opened(editor=Editor(offers=EVERYTHING - {"terminal"}))
    request_ids = []
    for _ in range(3):
        request_ids.append(running.post_prompt(session, "talk"))
        await running.answer(request_ids[-1])
        count = len(running.messages)
        await running.request("session/list", {})
        assert len(running.messages) == count + 1
    assert len(running.text(session)) == 3 * 250


@pytest.mark.covers("T10")
@pytest.mark.parametrize(
    "words",
    [
        ("--experimental-acp",),
        ("--acp", "--verbose"),
        ("acp",),
        ("acp", "--stdio", "--port=0"),
        ("-x", "--no-such-flag=1"),
    ],
)
async def test_arguments_that_hosts_add_are_tolerated(
    agent: StartAgent, workspace_repo: Path, words: tuple[str, ...]
) -> None:
    running = await agent(*words, *DEMO)
    await running.initialize()
    await running.new_session(workspace_repo)


@pytest.mark.covers("T10", "S3")
async def test_the_model_flag_wins_over_the_environment_and_works_in_both_spellings(
    agent: StartAgent, workspace_repo: Path
) -> None:
    for words in (("--model", "demo/demo"), ("--model=demo/demo",)):
        running = await agent(*words, environ={"ACP_AGENT_MODEL": "openai/gpt-5"})
        await running.initialize()
        response = await running.request(
            "session/new", {"cwd": str(workspace_repo), "mcpServers": []}
        )
        (model,) = [option for option in response["configOptions"] if option["id"] == "model"]
        assert model["currentValue"] == "demo/demo"


@pytest.mark.covers("T10", "T1")
async def test_a_trace_has_every_line_of_both_sides_and_no_key(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.jsonl"
    model_server.otherwise = answer("Traced.")
    key = "sk-test-0123456789abcdef"
    environ = model_server.environ("openai") | {"OPENAI_API_KEY": key}
    running = await agent(*OPENAI, "--trace", str(trace), environ=environ)
    await running.initialize()
    session = await running.new_session(workspace_repo)
    await running.prompt(session, f"my key is {key}")
    await running.stop()
    text = trace.read_text()
    for word in ('initialize"', "session/new", "session/prompt", "Traced.", "stopReason"):
        assert word in text
    assert key not in text


@pytest.mark.covers("T1")
async def test_the_installed_command_serves_as_the_module_does(
    home: Path, workspace_repo: Path
) -> None:
    command = Path(sys.executable).with_name("acp-agent")
    if not command.exists():
        pytest.skip("the package is not installed here, only its sources are")
    async with await AgentProcess.start(*DEMO, home=home, command=(os.fspath(command),)) as running:
        await running.initialize()
        session = await running.new_session(workspace_repo)
        assert (await running.prompt(session, "hello"))["stopReason"] == "end_turn"
