"""What the tests of streamable HTTP send by hand, and how they read what is answered."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from tests.server.remote.remote_agent import RemoteAgent
from tests.server.remote.remote_clients import CONNECTION

JSON = {"Content-Type": "application/json"}
EVENTS = {"Accept": "text/event-stream"}
BOTH = pytest.mark.parametrize("version", [1, 2])  # of HTTP


def request(method: str, params: dict[str, Any], number: int | None = 1) -> bytes:
    """A message of JSON-RPC: a request, or without a number a notification."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if number is None else message | {"id": number}).encode()


INITIALIZE = request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})


async def connected(client: httpx2.AsyncClient, agent: RemoteAgent) -> dict[str, str]:
    """The header of a new connection."""
    response = await client.post(agent.url, content=INITIALIZE, headers=JSON)
    assert response.status_code == 200
    return {CONNECTION: response.headers[CONNECTION]}


def reason(response: httpx2.Response) -> str:
    """What a refusal says, as one line."""
    text = response.json()["error"]
    assert isinstance(text, str)
    assert "\n" not in text
    return text
