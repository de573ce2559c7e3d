"""The harness notices an agent that misbehaves."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.support.agent_process import AgentProcess
from tests.support.framing import ViolationError
from tests.support.waiting import until
from tests.support.wire_client import AnswerError
from tests.support.wire_schema import wire_schema

# An agent in a few lines: answers `initialize`, then does what the test is about.
AGENT = """
import json, subprocess, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        login = [{{"id": "a", "name": "A"}}]
        result = {{"protocolVersion": 1, "authMethods": login}}
        print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "result": result}}), flush=True)
    else:
        {misdeed}
"""


async def start(home: Path, misdeed: str) -> AgentProcess:
    script = home / "agent.py"
    script.write_text(AGENT.format(misdeed=misdeed))
    agent = await AgentProcess.start(home=home, command=(sys.executable, str(script)))
    await agent.initialize()
    return agent


async def test_a_stray_print_fails_everything_that_waits_for_an_answer(home: Path) -> None:
    agent = await start(home, "print('Loading', flush=True)")
    with pytest.raises(ViolationError, match="T1"):
        await agent.request("session/list", {})
    with pytest.raises(ViolationError, match="T1"):
        await agent.stop()


async def test_half_a_line_at_the_end_is_noticed_unless_the_agent_was_killed(home: Path) -> None:
    half = "sys.stdout.write('{\"jsonrpc\"'); sys.stdout.flush(); sys.exit()"
    agent = await start(home, half)
    agent.post("session/list")
    with pytest.raises(ViolationError, match="cut off"):
        await agent.stop()
    wait = "sys.stdout.write('{\"jsonrpc\"'); sys.stdout.flush()"
    async with await start(home, wait) as agent:
        agent.post("session/list")
        await agent.kill()


async def test_a_process_that_is_left_behind_is_noticed_and_ended(home: Path) -> None:
    if not Path("/proc/self/environ").exists():
        pytest.skip("orphans are found by /proc, which this system lacks")
    orphan = (
        "subprocess.Popen(['sleep', '300'], start_new_session=True, stdout=subprocess.DEVNULL,"
        " stderr=subprocess.DEVNULL); sys.exit()"
    )
    agent = await start(home, orphan)
    agent.post("session/list")
    assert await agent.wait() == 0
    with pytest.raises(AssertionError, match="sleep 300"):
        await agent.stop()
    await until(lambda: not agent.left_behind())


async def test_an_agent_that_does_not_end_with_its_client_is_noticed(home: Path) -> None:
    agent = await start(home, "import time; time.sleep(300)")
    agent.post("session/list")
    await agent.close_stdin()
    with pytest.raises(AssertionError, match="runs on"):
        await agent.wait(timeout=0.5)
    await agent.kill()
    await agent.stop()


async def test_an_error_and_an_early_end_are_distinguished(home: Path) -> None:
    error = '{"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}'
    agent = await start(home, f"print(json.dumps({error}), flush=True)")
    with pytest.raises(AnswerError) as raised:
        await agent.request("session/list", {})
    assert (raised.value.code, raised.value.message) == (-32601, "no")
    await agent.stop()
    agent = await start(home, "sys.exit(3)")
    with pytest.raises(AssertionError, match="exited before"):
        await agent.request("session/list", {})
    assert await agent.wait() == 3
    await agent.stop()


def test_without_node_the_framing_is_still_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support import acp_schema

    acp_schema.load.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert wire_schema.__wrapped__() is None
