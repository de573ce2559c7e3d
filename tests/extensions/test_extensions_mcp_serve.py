"""`acp-agent mcp serve`: the agent as an MCP server, used with the client of the `mcp` package."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters, types
from mcp.client.session import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client

from tests.support.agent_process import environment
from tests.support.model_server import Call, ModelServer, answer

COMMAND = ("-m", "acp_agent", "mcp", "serve")
TOKEN = "a-token-of-this-test"


def write(name: str) -> Call:
    return Call("write", {"path": name, "content": "made\n"})


async def called(client: Client, tool: str, **arguments: object) -> Any:
    """What a tool answered: its values, or the text of its error."""
    result = await client.call_tool(tool, arguments)
    first = result.content[0]
    assert isinstance(first, types.TextContent)
    return first.text if result.is_error else result.structured_content


async def test_a_client_prompts_answers_questions_continues_and_reads(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.add(
        answer(write("one.txt")), answer("Made one."), answer(write("two.txt")), answer("Not two.")
    )
    asked: list[str] = []

    async def decide(
        context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        del context
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"allow": len(asked) == 1})

    server = StdioServerParameters(
        command=sys.executable,
        args=[*COMMAND],
        env=environment(home, model_server.environ()),
        cwd=workspace_repo,
    )
    async with Client(server, mode="legacy", elicitation_callback=decide) as client:
        made = await called(client, "run_prompt", prompt="make one")
        assert (made["text"], made["stop_reason"]) == ("Made one.", "end_turn")
        assert (workspace_repo / "one.txt").read_text() == "made\n"
        session = made["session_id"]
        made = await called(client, "run_prompt", prompt="make two", session_id=session)
        assert (made["session_id"], len(made["refused"])) == (session, 1)
        assert not (workspace_repo / "two.txt").exists()
        assert ["one.txt" in asked[0], "two.txt" in asked[1]] == [True, True]

        (listed,) = (await called(client, "list_sessions"))["sessions"]
        assert (listed["session_id"], listed["turns"]) == (session, 2)
        read = await called(client, "read_session", session_id=session)
        assert "make one" in read["text"]
        assert "Not two." in read["text"]
        outside = await called(client, "run_prompt", prompt="x", folder=str(home))
        assert "is not served" in outside
        assert "no session" in await called(client, "read_session", session_id="sess_none")


async def test_over_http_a_token_is_needed_and_pages_stay_out(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.add(answer(write("one.txt")), answer("Nobody agreed."))
    variables = {**model_server.environ(), "ACP_AGENT_LISTEN_TOKEN": TOKEN}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *COMMAND,
        "--http",
        "0",
        cwd=workspace_repo,
        env=environment(home, variables),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(30):
            found = re.search(rb"http://\S+", await process.stderr.readline())
        assert found is not None
        url = found[0].decode()
        authorized = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient() as http:
            statuses = [
                (await http.post(url, json={}, headers=headers)).status_code
                for headers in (
                    {},
                    {"Authorization": "Bearer wrong"},
                    authorized | {"Origin": "http://evil.example"},
                    authorized | {"Host": "evil.example"},
                )
            ]
        assert statuses == [401, 401, 403, 421]
        async with (
            httpx2.AsyncClient(headers=authorized, timeout=30) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            made = await called(client, "run_prompt", prompt="make one")
        assert (made["text"], len(made["refused"])) == ("Nobody agreed.", 1)
        assert not (workspace_repo / "one.txt").exists()
    finally:
        process.terminate()
        async with asyncio.timeout(30):
            await process.wait()
