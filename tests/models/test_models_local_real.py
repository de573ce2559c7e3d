"""A turn of the real agent with a real model, offline. `make test-local` installs what it needs."""

from pathlib import Path

import pytest

from acp_agent.models import local_model
from tests.support.agent_process import AgentProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not local_model.installed(), reason="needs the extra `local`: run `make test-local`"
    ),
]


async def test_a_real_model_reads_a_file_with_a_tool(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("the secret word is plum\n")
    environ = {"ACP_AGENT_MODEL": local_model.REF}
    async with await AgentProcess.start(home=tmp_path, environ=environ) as agent:
        await agent.initialize()
        session = await agent.new_session(folder)
        prompt = agent.post_prompt(session, "Read the file notes.txt")
        update = await agent.expect_update(
            session, "tool_call_update", lambda one: one.get("status") == "completed", timeout=400
        )
        assert "plum" in str(update)
        # What such a model says then is its own affair, and it may never come to an end.
        agent.cancel(session)
        await agent.result(prompt, timeout=30)
        assert '"tool"' not in agent.text(session)
