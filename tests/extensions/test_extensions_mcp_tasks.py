"""Tools that a server runs only as tasks (Model Context Protocol 2025-11-25, Tasks)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.extensions.direct_mcp_session import connected, count
from tests.extensions.mcp_web import web_server
from tests.extensions.raw_mcp_server import TOOL, Json, RawServer
from tests.support.waiting import until


class TaskServer(RawServer):
    """Runs its tool as a task that works for some polls; -1: for ever."""

    def __init__(self, polls: int, status: str = "completed") -> None:
        super().__init__()
        self.polls = polls
        self.status = status

    def result(self, message: Json) -> Json:
        now = "2026-01-01T00:00:00Z"
        task: Json = {"taskId": "t", "status": "working", "createdAt": now, "lastUpdatedAt": now}
        task |= {"ttl": 1_000, "pollInterval": 1}
        match message["method"]:
            case "initialize":
                response = super().result(message)
                tasks: Json = {"cancel": {}, "requests": {"tools": {"call": {}}}}
                response["result"]["capabilities"]["tasks"] = tasks
                return response
            case "tools/list":
                tools = [TOOL | {"execution": {"taskSupport": "required"}}]
                result: dict[str, Any] = {"tools": tools}
            case "tools/call":
                if "task" not in message["params"]:
                    error = {"code": -32601, "message": "Only as a task"}
                    return {"jsonrpc": "2.0", "id": message["id"], "error": error}
                result = {"task": task}
            case "tasks/get":
                self.polls -= 1
                result = task if self.polls else task | {"status": self.status}
            case "tasks/result":
                content = [{"type": "text", "text": "the result"}]
                result = {"content": content, "isError": self.status == "failed"}
            case _:
                result = task | {"status": "cancelled"}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def methods(web: RawServer) -> list[str]:
    return [request[":rpc"] for request in web.requests if request[":rpc"]]


@pytest.mark.parametrize("status", ["completed", "failed"])
async def test_a_tool_that_runs_only_as_a_task_is_polled_until_it_has_ended(status: str) -> None:
    web = TaskServer(polls=2, status=status)
    async with web_server(made=web), connected(web) as (server, _):
        assert await count(server) == "the result"
    assert methods(web)[-4:] == ["tools/call", "tasks/get", "tasks/get", "tasks/result"]


async def test_a_cancelled_call_cancels_its_task_at_the_server() -> None:
    web = TaskServer(polls=-1)
    async with web_server(made=web), connected(web) as (server, _):
        calling = asyncio.create_task(count(server))
        await until(lambda: "tasks/get" in methods(web))
        calling.cancel()
        await until(lambda: "tasks/cancel" in methods(web))
        await asyncio.wait([calling])
        assert calling.cancelled()
