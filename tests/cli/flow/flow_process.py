"""Runs `acp-agent flow` and `acp-agent watch` as a user does, against a scripted model."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.support.agent_process import environment
from tests.support.model_server import ModelServer, Request
from tests.support.warm_parent import WarmProcess, shared_parent


async def start(home: Path, cwd: Path, model: ModelServer, *arguments: str) -> WarmProcess:
    """Start `acp-agent` with `arguments` and nothing to read, forked after its imports."""
    env = environment(home, {**model.environ(), "ACP_AGENT_HOME": str(home / "agent")})
    process = await shared_parent().start(arguments, cwd=cwd, env=env)
    assert process.stdin is not None
    process.stdin.close()
    return process


async def finish(process: WarmProcess) -> tuple[int, str, str]:
    """Wait for its end; its status, output and messages."""
    async with asyncio.timeout(60):
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
