"""Both versions of the protocol over every transport, each agreed on by its connection."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.server.remote.remote_agent import RemoteAgent
from tests.server.remote.remote_clients import (
    EVERY_WAY,
    Open,
    http_client,
    websocket_client,
)
from tests.support.editor import Editor
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2


@EVERY_WAY
async def test_a_turn_of_version_2_is_driven_with_its_permission(
    remote: RemoteAgent, project: Path, open_client: Open
) -> None:
    async with open_client(remote, editor=EditorV2(permission="allow_once")) as wire:
        client = V2Client(wire)
        await client.initialize()
        session = await client.new_session(project)
        ended = await client.prompt(session, "replace Hello with Goodbye in greeting.py")
        assert ended["stopReason"] == "end_turn"
        assert "Goodbye" in (project / "greeting.py").read_text()


async def test_batches_are_accepted_on_a_websocket_in_version_2_and_refused_in_version_1(
    remote: RemoteAgent,
) -> None:
    batch: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": n, "method": "session/list", "params": {}} for n in (71, 72)
    ]
    async with websocket_client(remote, editor=EditorV2()) as wire:
        await V2Client(wire).initialize()
        await wire.send(batch)
        assert "result" in await wire.answer(71)
        assert "result" in await wire.answer(72)
        assert {answer["id"] for answer in json.loads(wire.lines[-1])} == {71, 72}
    async with websocket_client(remote) as wire:
        await wire.initialize()
        await wire.send(batch)
        refused = await wire.expect(lambda message: "error" in message)
        assert refused["id"] is None
        assert refused["error"]["code"] == -32600


async def test_a_session_goes_from_one_version_and_transport_to_the_other(
    remote: RemoteAgent, project: Path
) -> None:
    async with websocket_client(remote, editor=Editor()) as wire:
        await wire.initialize()
        session = await wire.new_session(project)
        await wire.prompt(session, "read greeting.py")
        text = wire.text(session)
    async with http_client(remote, editor=EditorV2()) as wire:
        client = V2Client(wire)
        await client.initialize()
        view = await client.resume(session, project, replay=True)
        assert view.text() == text
        assert (await client.prompt(session, "hi"))["stopReason"] == "end_turn"


async def test_a_method_of_the_other_version_is_not_known(remote: RemoteAgent) -> None:
    async with http_client(remote) as wire:
        await wire.initialize()
        answer = await wire.answer(wire.post("auth/login", {"methodId": "demo"}))
        assert answer["error"]["code"] == -32601
    async with http_client(remote, editor=EditorV2()) as wire:
        await V2Client(wire).initialize()
        answer = await wire.answer(wire.post("authenticate", {"methodId": "demo"}))
        assert answer["error"]["code"] == -32601
