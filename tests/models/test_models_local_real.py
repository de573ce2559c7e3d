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
        result = await agent.prompt(session, "Read the file notes.txt", timeout=500)
        assert result["stopReason"] in {"end_turn", "max_tokens"}
        calls = agent.updates(session, "tool_call")
        assert calls, "the model called no tool"
        ended = [u for u in agent.updates(session, "tool_call_update") if u.get("status")]
        assert "completed" in {update["status"] for update in ended}
        assert "plum" in str(ended)
        said = "".join(u["content"]["text"] for u in agent.updates(session, "agent_message_chunk"))
        assert '"answer"' not in said
