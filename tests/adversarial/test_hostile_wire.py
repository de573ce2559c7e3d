"""Any bytes at all on stdin: every request is answered, nothing breaks, and good requests work.

ACP_AGENT_FUZZ sets how many inputs are tried (`make fuzz`), ACP_AGENT_FUZZ_SEED the first seed.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from acp_agent.server.initialize import SUPPORTED_VERSIONS
from protocol.transports.base import LIMIT
from tests.adversarial.wire_fuzz import Fuzz, FuzzOracle
from tests.protocol.byte_driver import FuzzedProcess
from tests.protocol.byte_fuzz import ByteFuzz
from tests.protocol.byte_reference import RESULT, Reference
from tests.support.agent_process import AgentProcess, environment
from tests.support.process_memory import resident_memory

INPUTS = int(os.environ.get("ACP_AGENT_FUZZ", "300"))
SEED = int(os.environ.get("ACP_AGENT_FUZZ_SEED", "0"))
BATCH = 15
SESSIONS = 4  # open ones, to be named in inputs
ROUND = 100
DEMO = ("--model", "demo/demo")


async def answered(agent: AgentProcess, oracle: FuzzOracle, *, within: float = 60.0) -> None:
    """Wait until no request that was certainly one is open."""
    deadline = asyncio.get_running_loop().time() + within
    while left := oracle.unanswered():
        assert asyncio.get_running_loop().time() < deadline, f"never answered: {left}"
        assert agent.violation is None, agent.violation
        await asyncio.sleep(0.005)


@pytest.mark.timeout(max(120, INPUTS))
async def test_all_input_is_answered_or_ignored_and_good_requests_still_work(
    home: Path, workspace_repo: Path, unharmed: list[AgentProcess]
) -> None:
    oracle = FuzzOracle()
    sessions: list[str] = []
    async with await AgentProcess.start(*DEMO, home=home, oracle=oracle) as agent:
        unharmed.append(agent)
        await agent.initialize()
        done = 0
        while done < INPUTS:
            fuzz = Fuzz(SEED + done // BATCH, sessions)
            for _ in range(min(BATCH, INPUTS - done)):
                data, maybe = fuzz.line()
                if maybe is None:
                    oracle.sent(data)
                else:
                    oracle.maybe_sent(data, maybe)
                for piece in fuzz.cuts(data):
                    agent.writer.write(piece)
                    await asyncio.sleep(0)
                await agent.writer.drain()
                done += 1
            await agent.request("authenticate", {"methodId": "demo"})  # `logout` was among them
            session = await agent.new_session(workspace_repo)
            sessions.append(session)
            assert (await agent.prompt(session, "hello"))["stopReason"] == "end_turn"
            assert agent.text(session)
            await answered(agent, oracle)
            agent.forget_what_came()
            if len(sessions) > SESSIONS:
                agent.post("session/close", {"sessionId": sessions.pop(0)})
        assert resident_memory(agent.process.pid) < 250 << 20
        await agent.close_stdin()
        assert await agent.wait() == 0


UNKNOWN = '{"prompt": [{"text": "x", "type": "text"}], "sessionId": "nope"}'
SAME_IN_ALL = {
    ("session/list", "{}"): RESULT,
    ("session/list", '{"cwd": 5}'): -32602,
    ("session/list", '{"cwd": "/nowhere"}'): RESULT,
    ("session/prompt", "{}"): -32602,
    ("session/prompt", "[]"): -32602,
    ("session/prompt", UNKNOWN): -32002,
    ("session/new", '{"cwd": 5, "mcpServers": []}'): -32602,
    ("initialize", '{"protocolVersion": "1"}'): -32602,
    ("initialize", "{}"): -32602,
}
INITIALIZE: dict[int, Any] = {
    1: {"protocolVersion": 1},
    2: {"info": {"name": "fuzz", "version": "1"}, "protocolVersion": 2},
}
TOLD = [
    ("session/cancel", {"sessionId": "nope"}),
    ("session/cancel", {}),
    ("session/prompt", {}),
    ("session/unknown", [1]),
]


@pytest.mark.covers("T2", "T3", "T4")
@pytest.mark.timeout(max(120, INPUTS // 20))
@pytest.mark.parametrize("version", SUPPORTED_VERSIONS)
def test_any_bytes_get_their_one_right_answer_from_the_agent(
    home: Path, workspace_repo: Path, tmp_path: Path, version: int
) -> None:
    initialize = INITIALIZE[version]
    outcomes = SAME_IN_ALL | {("initialize", json.dumps(initialize, sort_keys=True)): RESULT}
    reference = Reference(outcomes, batches=version >= 2, limit=LIMIT)
    command = (sys.executable, "-m", "acp_agent", *DEMO)
    log = tmp_path / "stderr"
    with FuzzedProcess(command, reference=reference, log=log, env=environment(home)) as agent:
        assert agent.ask("initialize", initialize)["protocolVersion"] == version
        for start in range(0, INPUTS, ROUND):
            seed = SEED + start // ROUND
            fuzz = ByteFuzz(seed, outcomes, notifications=TOLD, long=(70_000, 2_000_000, LIMIT + 1))
            agent.round(fuzz, min(ROUND, INPUTS - start), name=f"seed {seed}")
            new = {"cwd": str(workspace_repo), "mcpServers": []}
            session = agent.ask("session/new", new)["sessionId"]
            words = [{"type": "text", "text": "hello"}]
            answer = agent.ask("session/prompt", {"sessionId": session, "prompt": words})
            assert version > 1 or answer["stopReason"] == "end_turn"
            assert agent.ask("session/close", {"sessionId": session}) == {}
        assert resident_memory(agent.process.pid) < 350 << 20
        assert agent.end() == 0
    assert b"Traceback" not in log.read_bytes()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n\r\n \n",
        b"\0" * 10_000,
        b'{"jsonrpc":"2.0"',
        b"\xef\xbb\xbf",
        b"\x16\x03\x01\x02\x00\x01",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"Content-Length: 2\r\n\r\n{}",
        b"x" * 3_000_000,
        b"x" * 3_000_000 + b"\n",
        b"[" * 500_000 + b"\n",
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":' + b"[" * 500_000,
    ],
    ids=lambda data: repr(data[:20]),
)
async def test_an_end_after_garbage_as_the_first_bytes_ends_the_agent_in_order(
    home: Path, unharmed: list[AgentProcess], data: bytes
) -> None:
    oracle = FuzzOracle()
    async with await AgentProcess.start(*DEMO, home=home, oracle=oracle) as agent:
        unharmed.append(agent)
        oracle.maybe_sent(data + b"\n\n\n\n", (None, 1))
        agent.writer.write(data)
        await agent.close_stdin()
        assert await agent.wait() == 0
        assert all("error" in message for message in agent.messages)


async def test_garbage_before_initialize_does_not_prevent_it(
    home: Path, workspace_repo: Path, unharmed: list[AgentProcess]
) -> None:
    oracle = FuzzOracle()
    async with await AgentProcess.start(*DEMO, home=home, oracle=oracle) as agent:
        unharmed.append(agent)
        for data in (b"garbage\n", b"\xff\xfe\n", b"[]\n", b"{}\n", b"7\n", b'"x"\n'):
            oracle.maybe_sent(data, (None,))
            agent.writer.write(data)
        too_early = await agent.answer(agent.post("session/new", {"cwd": "/", "mcpServers": []}))
        assert "send that first" in too_early["error"]["message"]
        await agent.initialize()
        session = await agent.new_session(workspace_repo)
        assert (await agent.prompt(session, "hello"))["stopReason"] == "end_turn"
