"""Fixtures of the tests that give a session MCP servers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.extensions.mcp_session import Json, OpenWithServers
from tests.server.server_session import OPENAI
from tests.support.agent_process import AgentProcess, StartAgent, config_file
from tests.support.editor import EVERYTHING, Editor
from tests.support.model_server import ModelServer


@pytest.fixture
def with_servers(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, home: Path
) -> OpenWithServers:
    """A factory: `running, session = await with_servers(program("echo"))`."""

    async def start(
        *servers: Json,
        editor: Editor | None = None,
        config: str = "",
        environ: Mapping[str, str] | None = None,
    ) -> tuple[AgentProcess, str]:
        if config:
            config_file(home, config)
        running = await agent(
            *OPENAI,
            editor=editor or Editor(offers=EVERYTHING, permission="allow_once"),
            environ=model_server.environ() | dict(environ or {}),
        )
        await running.initialize()
        return running, await running.new_session(workspace_repo, mcpServers=list(servers))

    return start
