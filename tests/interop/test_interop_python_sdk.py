"""The official Python SDK's client drives whole turns."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.client.connection import ClientSideConnection
from acp.schema import (
    ClientCapabilities,
    FileSystemCapabilities,
    ReadTextFileResponse,
    WriteTextFileResponse,
)

from tests.support.agent_process import environment
from tests.support.model_server import ModelServer, Stall, answer
from tests.support.relay import judge, relay_command
from tests.support.sdk_client import PlainClient
from tests.support.warm_parent import shared_parent

ROOT = str(Path(__file__).resolve().parents[2])
DEMO = ("--model", "demo/demo")


class SdkClient(PlainClient):
    """The client's side, as the SDK calls it: it reads and writes files."""

    def __init__(self, press: str) -> None:
        super().__init__(press)
        self.written: dict[str, str] = {}
        self.changed = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        await super().session_update(session_id, update)
        self.changed.set()

    async def read_text_file(
        self, session_id: str, path: str, *_: Any, **__: Any
    ) -> ReadTextFileResponse:
        return ReadTextFileResponse(content=Path(path).read_text())

    async def write_text_file(
        self, session_id: str, path: str, content: str, **_: Any
    ) -> WriteTextFileResponse:
        self.written[path] = content
        Path(path).write_text(content)
        return WriteTextFileResponse()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def connected(
    home: Path,
    *flags: str,
    press: str = "allow_once",
    files: bool = False,
    environ: dict[str, str] | None = None,
) -> AsyncIterator[tuple[SdkClient, ClientSideConnection]]:
    """An initialized connection; every line of the agent's is judged when it is closed."""
    record = home / "record"
    client = SdkClient(press)
    command = relay_command(record, [*shared_parent().command(), *flags])
    variables = environment(home, environ) | {"PYTHONPATH": ROOT}
    async with spawn_agent_process(client, *command, env=variables) as (connection, _):
        capabilities = ClientCapabilities(
            fs=FileSystemCapabilities(read_text_file=files, write_text_file=files)
        )
        answer = await connection.initialize(PROTOCOL_VERSION, client_capabilities=capabilities)
        assert answer.protocol_version == 1
        assert answer.agent_info is not None
        assert answer.agent_info.name == "acp-agent"
        yield client, connection
    judge(record)


async def test_an_edit_is_confirmed_shown_as_a_diff_and_applied_through_the_client(
    home: Path, workspace_repo: Path
) -> None:
    async with connected(home, *DEMO, files=True) as (client, agent):
        session = await agent.new_session(cwd=str(workspace_repo), mcp_servers=[])
        words = text_block("replace Hello with Goodbye in greeting.py")
        result = await agent.prompt(session_id=session.session_id, prompt=[words])
        assert result.stop_reason == "end_turn"
        path = str(workspace_repo / "greeting.py")
        assert list(client.written) == [path]
        assert "Goodbye" in Path(path).read_text()
        [asked] = client.asked
        assert asked.tool_call_id in [call.tool_call_id for call in client.of("tool_call")]
        shown = [
            part
            for update in (*client.of("tool_call"), *client.of("tool_call_update"), asked)
            for part in update.content or ()
            if part.type == "diff"
        ]
        assert any("Hello" in (part.old_text or "") for part in shown)
        assert all("Goodbye" in part.new_text for part in shown)
        assert "I replace" in client.text()


async def test_a_refusal_leaves_the_file_unchanged_and_the_turn_continues(
    home: Path, workspace_repo: Path
) -> None:
    before = (workspace_repo / "greeting.py").read_text()
    async with connected(home, *DEMO, press="reject_once") as (client, agent):
        session = await agent.new_session(cwd=str(workspace_repo), mcp_servers=[])
        words = text_block("replace Hello with Goodbye in greeting.py")
        result = await agent.prompt(session_id=session.session_id, prompt=[words])
        assert result.stop_reason == "end_turn"
        assert len(client.asked) == 1
        assert client.of("tool_call_update")[-1].status == "failed"
        assert "did not work" in client.text()
    assert (workspace_repo / "greeting.py").read_text() == before


async def test_a_cancel_ends_a_streaming_answer_and_the_session_continues(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.add(answer("The first words ", Stall(), "never come."), answer("Hello again."))
    async with connected(home, environ=model_server.environ()) as (client, agent):
        session = (await agent.new_session(cwd=str(workspace_repo), mcp_servers=[])).session_id
        turn = asyncio.create_task(agent.prompt(session_id=session, prompt=[text_block("Talk.")]))
        await client.until(lambda: "first words" in client.text())
        await agent.cancel(session_id=session)
        async with asyncio.timeout(60):
            assert (await turn).stop_reason == "cancelled"
            await model_server.requests[0].closed_early.wait()
        again = await agent.prompt(session_id=session, prompt=[text_block("Hello?")])
        assert again.stop_reason == "end_turn"
        assert client.text() == "The first words Hello again."


async def test_a_loaded_session_replays_the_live_updates(home: Path, workspace_repo: Path) -> None:
    async with connected(home, *DEMO) as (client, agent):
        session = (await agent.new_session(cwd=str(workspace_repo), mcp_servers=[])).session_id
        await agent.prompt(session_id=session, prompt=[text_block("read README.md")])
        live = client.text()
        listed = await agent.list_sessions(cwd=str(workspace_repo))
        assert [one.session_id for one in listed.sessions] == [session]
    (home / "record").unlink()
    async with connected(home, *DEMO) as (client, agent):
        await agent.load_session(cwd=str(workspace_repo), session_id=session, mcp_servers=[])
        with contextlib.suppress(TimeoutError):
            await client.until(lambda: client.text() == live)
        assert client.text() == live
        assert [call.title for call in client.of("tool_call")] == ["Read README.md"]
        assert "".join(c.content.text for c in client.of("user_message_chunk")) == "read README.md"
