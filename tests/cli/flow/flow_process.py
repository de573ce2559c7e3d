"""Runs `acp-agent flow` and `acp-agent watch` as a user does, against a scripted model."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path

from tests.support.agent_process import environment
from tests.support.model_server import ModelServer, Request


async def start(home: Path, cwd: Path, model: ModelServer, *arguments: str) -> Process:
    """Start `acp-agent` with `arguments`."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "acp_agent",
        *arguments,
        cwd=cwd,
        env=environment(home, {**model.environ(), "ACP_AGENT_HOME": str(home / "agent")}),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )


async def finish(process: Process) -> tuple[int, str, str]:
    """Wait for its end; its status, output and messages."""
    async with asyncio.timeout(40):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def flow(home: Path, cwd: Path, model: ModelServer, *arguments: str) -> tuple[int, str, str]:
    """Run `acp-agent flow` to its end."""
    return await finish(await start(home, cwd, model, "flow", *arguments))


def prompts(request: Request) -> list[str]:
    """What the user said in the conversation of a request, without the agent's notes."""
    texts_of_prompts = []
    for message in request.json["messages"]:
        if message["role"] == "user":
            content = message["content"]
            texts = [content] if isinstance(content, str) else [block["text"] for block in content]
            texts_of_prompts.append(next(text for text in texts if not text.startswith("[")))
    return texts_of_prompts
