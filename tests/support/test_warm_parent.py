"""Agents that are forked behind their imports are like those that an editor starts."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.agent_process import AgentProcess, Command, Launch
from tests.support.warm_parent import WarmParent
from tests.support.wire_client import AnswerError


@pytest.fixture(params=["warm", "command", "cold"])
def way(request: pytest.FixtureRequest, warm_parent: WarmParent) -> Launch | None:
    """All ways to start an agent."""
    if request.param == "cold":
        return None
    return Command(*warm_parent.command()) if request.param == "command" else warm_parent.start


async def test_an_agent_serves_and_ends_with_its_input(way: Launch | None, tmp_path: Path) -> None:
    async with await AgentProcess.start("--model", "demo/demo", home=tmp_path, launch=way) as agent:
        await agent.initialize()
        session = await agent.new_session(tmp_path)
        assert (await agent.prompt(session, "hello"))["stopReason"] == "end_turn"
        await agent.close_stdin()
        assert await agent.wait() == 0


async def test_an_agent_that_is_killed_is_known_by_its_signal(
    way: Launch | None, tmp_path: Path
) -> None:
    agent = await AgentProcess.start(home=tmp_path, launch=way)
    await agent.initialize()
    await agent.kill()
    assert agent.process.returncode == -signal.SIGKILL
    await agent.stop()


async def test_an_agent_has_the_arguments_and_environment_that_it_is_given(
    way: Launch | None, tmp_path: Path
) -> None:
    async with await AgentProcess.start(
        "--trace", "trace", home=tmp_path, cwd=tmp_path,
        environ={"ACP_AGENT_MODEL": "nobody/nothing"}, launch=way,
    ) as agent:  # fmt: skip
        await agent.initialize()
        with pytest.raises(AnswerError, match="nobody/nothing"):
            await agent.new_session(tmp_path)
    assert (tmp_path / "trace").exists()


async def test_agents_are_distinguished(warm_parent: WarmParent, tmp_path: Path) -> None:
    first = await AgentProcess.start(home=tmp_path, launch=warm_parent.start)
    second = await AgentProcess.start(home=tmp_path, launch=warm_parent.start)
    await first.initialize()
    await first.stop()
    assert second.process.returncode is None
    await second.initialize()
    await second.stop()
