"""A real agent whose client names MCP servers: what the tests of MCP begin with."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tests.support.agent_process import AgentProcess
from tests.support.editor import Editor
from tests.support.model_server import Call, ModelServer, answer

PROGRAM = Path(__file__).resolve().parent / "mcp_program.py"

Json = dict[str, Any]


class OpenWithServers(Protocol):
    """The fixture `with_servers`: an agent and the id of a session that has MCP servers."""

    async def __call__(
        self,
        *servers: Json,
        editor: Editor | None = None,
        config: str = "",
        environ: Mapping[str, str] | None = None,
    ) -> tuple[AgentProcess, str]: ...


def program(behaviour: str, *, name: str = "memo", env: Mapping[str, str] | None = None) -> Json:
    """A server of `mcp_program.py`, as a client names it."""
    return {
        "name": name,
        "command": sys.executable,
        "args": ["-S", str(PROGRAM), behaviour],
        "env": [{"name": key, "value": value} for key, value in (env or {}).items()],
    }


def echo(text: str = "hi", *, server: str = "memo", tool: str = "echo") -> Call:
    """A model's call of a tool that takes a text."""
    return Call(f"mcp__{server}__{tool}", {"text": text})


def call(tool: str, *, server: str = "memo", **arguments: Any) -> Call:
    """A model's call of a tool."""
    return Call(f"mcp__{server}__{tool}", arguments)


def offered(server: ModelServer, request: int = -1) -> list[str]:
    """The names of the tools that a request to the model had, those of MCP servers only."""
    tools = server.requests[request].json.get("tools", [])
    names = [tool["function"]["name"] for tool in tools]
    return [name for name in names if name.startswith("mcp__") or "_mcp_" in name]


def results(server: ModelServer, request: int = -1) -> list[str]:
    """The results of calls in a request to the model."""
    sent: Sequence[Json] = server.requests[request].json["messages"]
    return [_text(message["content"]) for message in sent if message["role"] == "tool"]


async def until_offered(agent: AgentProcess, server: ModelServer, session: str, tool: str) -> None:
    """Take turns until a tool is offered: a program of others may start slowly."""
    server.otherwise = answer("Not yet.")
    async with asyncio.timeout(60):
        while True:
            await agent.prompt(session, "is it there?")
            if tool in offered(server):
                return
            await asyncio.sleep(0.1)


def notices(agent: AgentProcess, session: str) -> list[str]:
    """What the user was told beside the conversation."""
    return [
        f"{update['title']} {update.get('description') or ''}".strip()
        for update in agent.updates(session, "notice")
    ]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", f"<{part['type']}>") for part in content)
