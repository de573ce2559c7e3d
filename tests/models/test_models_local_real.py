"""A turn of the real agent with a real model, offline. `make test-local` installs what it needs."""

from pathlib import Path

import pytest

from acp_agent.models import local
from tests.support.agent_process import AgentProcess
from tests.support.framing import Json

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not local.installed(), reason="needs the extra `local`: run `make test-local`"
    ),
]


def completed(message: Json) -> bool:
    """Whether it tells that a call has done its work."""
    update = message.get("params", {}).get("update", {})
    kind, status = update.get("sessionUpdate"), update.get("status")
    return (kind, status) == ("tool_call_update", "completed")


async def test_a_real_model_reads_a_file_with_a_tool(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("the secret word is plum\n")
    environ = {"ACP_AGENT_MODEL": local.REF}
    async with await AgentProcess.start(home=tmp_path, environ=environ) as agent:
        await agent.initialize()
        session = await agent.new_session(folder)
        prompt = agent.post_prompt(session, "Read the file notes.txt")

        def over(message: Json) -> bool:
            return completed(message) or ("method" not in message and message["id"] == prompt)

        called = await agent.expect(over, timeout=400)
        assert "plum" in str(called), f"it ended without a call: {agent.text(session)[:500]}"
        # What such a model says then is its own affair, and it may never come to an end.
        agent.cancel(session)
        await agent.result(prompt, timeout=30)
        assert '"tool"' not in agent.text(session)
