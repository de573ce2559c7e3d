"""Fixtures of the tests that drive the real agent through its server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.server.children_client import ClientOf
from tests.server.server_session import ANTHROPIC, OPENAI, OpenSession
from tests.server.v2_session import OpenV2, opener
from tests.support.agent_process import AgentProcess, StartAgent, config_file
from tests.support.editor import Editor
from tests.support.model_server import Api, ModelServer


@pytest.fixture
def opened(agent: StartAgent, model_server: ModelServer, workspace_repo: Path) -> OpenSession:
    """A factory: `running, session = await opened(editor=...)`, in front of `model_server`."""

    async def start(
        *arguments: str,
        editor: Editor | None = None,
        api: Api = "openai",
        environ: Mapping[str, str] | None = None,
    ) -> tuple[AgentProcess, str]:
        model = OPENAI if api == "openai" else ANTHROPIC
        running = await agent(
            *model,
            *arguments,
            editor=editor,
            environ=model_server.environ(api) | dict(environ or {}),
        )
        await running.initialize()
        return running, await running.new_session(workspace_repo)

    return start


@pytest.fixture
def opened_v2(agent: StartAgent, model_server: ModelServer, workspace_repo: Path) -> OpenV2:
    """A factory: `client, session = await opened_v2(permission=...)`, over version 2."""
    return opener(agent, model_server, workspace_repo)


@pytest.fixture
def make_client(
    agent: StartAgent, model_server: ModelServer, workspace_repo: Path, home: Path
) -> ClientOf:
    """A factory: `client = await client_of("v2")`, with a trusted project that has an agent."""
    config_file(home, f'trusted_folders = ["{workspace_repo}"]\n')
    return ClientOf(agent, model_server, workspace_repo)
