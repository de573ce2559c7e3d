"""The benchmark's client: an agent that ends must not leave it waiting."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.harness import client as client_module
from benchmarks.harness.client import Client


@pytest.mark.parametrize("last_line", ["", "not JSON"])
async def test_requests_fail_once_the_agent_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last_line: str
) -> None:
    agent = tmp_path / "agent"
    initialized = '{"jsonrpc": "2.0", "id": 1, "result": {}}'
    agent.write_text(f"#!/bin/sh\nread line\necho '{initialized}'\nread line\necho '{last_line}'\n")
    agent.chmod(0o755)
    monkeypatch.setattr(client_module, "COMMAND", str(agent))
    client = await Client("", {}).__aenter__()
    ended = {"error": {"message": "the agent ended"}}
    async with asyncio.timeout(60):
        assert await client.request("session/new", {}) == ended, "it ends before it answers"
        await asyncio.sleep(0)
        assert await client.request("session/new", {}) == ended, "it has ended already"
        await client.__aexit__()
