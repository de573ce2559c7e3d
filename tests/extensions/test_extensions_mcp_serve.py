"""`acp-agent mcp serve`: the agent as an MCP server, used with the client of the `mcp` package."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters, types
from mcp.client.session import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client

from acp_agent.cli.mcp import agent_tools
from acp_agent.cli.mcp.agent_tools import WaitingRuns
from acp_agent.cli.mcp.serve import build
from acp_agent.cli.serving.prompt_run import PromptOptions, PromptRun, Question, TurnEnd
from tests.support.agent_process import environment
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.waiting import until

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


async def test_a_client_of_the_newest_version_answers_by_repeating_its_call(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.add(answer(write("one.txt"), write("two.txt")), answer("Made one."))
    asked: list[str] = []

    async def decide(
        context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        del context
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"allow": "one.txt" in params.message})

    server = StdioServerParameters(
        command=sys.executable,
        args=[*COMMAND],
        env=environment(home, model_server.environ()),
        cwd=workspace_repo,
    )
    async with Client(server, mode="2026-07-28", elicitation_callback=decide) as client:
        made = await called(client, "run_prompt", prompt="make both")
        assert (made["text"], len(made["refused"]), len(asked)) == ("Made one.", 1, 2)
        assert (workspace_repo / "one.txt").read_text() == "made\n"
        assert not (workspace_repo / "two.txt").exists()
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        hints = {
            name: tool.annotations and tool.annotations.read_only_hint
            for name, tool in tools.items()
        }
        assert hints == {"run_prompt": False, "list_sessions": True, "read_session": True}


async def test_a_waiting_prompt_is_continued_once_and_cancelled_when_its_question_expires(
    monkeypatch: pytest.MonkeyPatch, home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    for name, value in environment(home, model_server.environ()).items():
        monkeypatch.setenv(name, value)
    model_server.add(answer(write("one.txt")), answer("Made."), answer(write("two.txt")))
    options = PromptOptions(flags=[], cwd=workspace_repo, session="", mode=None, prompt="make")
    waiting = WaitingRuns()

    async def asking() -> PromptRun:
        run = PromptRun(options, asyncio.Semaphore(1))
        while not isinstance((await run.next())[-1], Question):
            pass
        return run

    run = await asking()
    state = waiting.add(run)
    assert waiting.pop(state) is run
    assert waiting.pop(state) is None
    run.answer(allow=True)
    while not isinstance(end := (await run.next())[-1], TurnEnd):
        pass
    assert (end.text, end.refused, end.error) == ("Made.", [], "")

    run = await asking()
    monkeypatch.setattr(agent_tools, "ANSWER_SECONDS", 0.01)
    state = waiting.add(run)
    await until(lambda: not run.waits)
    assert waiting.pop(state) is None
    await run.aclose()
    assert not (workspace_repo / "two.txt").exists()


async def test_a_client_that_waits_learns_that_the_prompt_still_runs(
    monkeypatch: pytest.MonkeyPatch, home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    monkeypatch.setattr(agent_tools, "_PROGRESS_SECONDS", 0.01)
    monkeypatch.setenv("HOME", str(home))
    for name, value in environment(home, model_server.environ()).items():
        monkeypatch.setenv(name, value)
    stall = Stall()
    model_server.add(answer("Slow", stall, "ly."))
    steps: list[float] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        del total, message
        steps.append(progress)
        stall.release()

    async with Client(build(agent_tools.AgentTools([workspace_repo], None))) as client:
        arguments = {"prompt": "hi"}
        result = await client.call_tool("run_prompt", arguments, progress_callback=report)
    assert result.structured_content is not None
    assert result.structured_content["text"] == "Slowly."
    assert steps == sorted(set(steps))


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
        async with asyncio.timeout(60):
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
        async with asyncio.timeout(60):
            await process.wait()
