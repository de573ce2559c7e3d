"""Streamable HTTP: which request means what, and what a wrong one is answered."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx2
import pytest

from tests.server.remote.http_messages import (
    BOTH,
    EVENTS,
    INITIALIZE,
    JSON,
    connected,
    reason,
    request,
)
from tests.server.remote.remote_agent import RemoteAgent
from tests.server.remote.remote_clients import (
    CONNECTION,
    SESSION,
    http,
    http_client,
    websocket_client,
)
from tests.support.wire_client import AnswerError


@BOTH
async def test_initialize_is_answered_at_once_with_the_connections_id(
    remote: RemoteAgent, version: int
) -> None:
    async with http(remote, version=version) as client:
        response = await client.post(remote.url, content=INITIALIZE, headers=JSON)
    assert response.status_code == 200
    assert response.http_version == ("HTTP/2" if version == 2 else "HTTP/1.1")
    assert response.headers["content-type"] == "application/json"
    assert len(response.headers[CONNECTION]) >= 16
    assert "acp-affinity=" in response.headers["set-cookie"]
    assert response.json()["result"]["protocolVersion"] == 1


@BOTH
@pytest.mark.parametrize("kind", ["text/plain", "", "application/jsonx"])
async def test_a_post_that_is_no_json_by_its_type_is_415(
    remote: RemoteAgent, version: int, kind: str
) -> None:
    async with http(remote, version=version) as client:
        response = await client.post(remote.url, content=INITIALIZE, headers={"Content-Type": kind})
        assert response.status_code == 415
        assert "application/json" in reason(response)
        typed = {"Content-Type": "Application/JSON; charset=utf-8"}
        assert (await client.post(remote.url, content=INITIALIZE, headers=typed)).is_success


@BOTH
async def test_a_get_that_takes_no_events_is_406(remote: RemoteAgent, version: int) -> None:
    async with http(remote, version=version) as client:
        headers = await connected(client, remote)
        response = await client.get(remote.url, headers=headers | {"Accept": "application/json"})
        assert response.status_code == 406
        assert "text/event-stream" in reason(response)


@BOTH
@pytest.mark.parametrize("body", [b"[]", b"[" + INITIALIZE + b"]"])
async def test_a_batch_is_501(remote: RemoteAgent, version: int, body: bytes) -> None:
    async with http(remote, version=version) as client:
        mine = await connected(client, remote)
        for headers in (JSON, JSON | mine):
            response = await client.post(remote.url, content=body, headers=headers)
            assert response.status_code == 501
            assert "one message" in reason(response)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"42",
        b'"text"',
        b"{}",
        b'{"jsonrpc":"1.0","id":1,"method":"initialize"}',
    ],
)
async def test_a_body_that_is_no_message_is_400_and_the_connection_continues(
    remote: RemoteAgent, body: bytes
) -> None:
    async with http(remote) as client:
        mine = await connected(client, remote)
        for headers in (JSON, JSON | mine):
            response = await client.post(remote.url, content=body, headers=headers)
            assert response.status_code == 400
            assert reason(response)
        good = request("session/list", {})
        assert (await client.post(remote.url, content=good, headers=JSON | mine)).status_code == 202


@BOTH
async def test_without_the_header_of_a_connection_everything_but_initialize_is_400(
    remote: RemoteAgent, version: int
) -> None:
    listing = request("session/list", {})
    no_request = request("initialize", {"protocolVersion": 1}, None)
    async with http(remote, version=version) as client:
        for response in (
            await client.post(remote.url, content=listing, headers=JSON),
            await client.post(remote.url, content=no_request, headers=JSON),
            await client.get(remote.url, headers=EVENTS),
            await client.delete(remote.url),
        ):
            assert response.status_code == 400
            assert "acp-connection-id" in reason(response)


@BOTH
async def test_an_unknown_connection_is_404(remote: RemoteAgent, version: int) -> None:
    listing = request("session/list", {})
    unknown = {CONNECTION: "nobody"}
    async with http(remote, version=version) as client:
        for response in (
            await client.post(remote.url, content=listing, headers=JSON | unknown),
            await client.get(remote.url, headers=EVENTS | unknown),
            await client.delete(remote.url, headers=unknown),
        ):
            assert response.status_code == 404
            assert "no connection has" in reason(response)


async def test_a_websockets_id_is_no_connection_of_http(remote: RemoteAgent) -> None:
    async with websocket_client(remote) as client, http(remote) as second:
        assert client.connection.response is not None
        name = client.connection.response.headers[CONNECTION]
        response = await second.delete(remote.url, headers={CONNECTION: name})
        assert response.status_code == 404
        await client.initialize()


async def test_a_message_of_a_session_without_its_header_is_400(
    remote: RemoteAgent, project: Path
) -> None:
    async with http_client(remote) as client:
        await client.initialize()
        session = await client.new_session(project)
        for body in (
            request("session/prompt", {"sessionId": session, "prompt": []}, 9),
            request("session/cancel", {"sessionId": session}, None),
            request("session/close", {}, 9),
        ):
            response = await client.post_line(body, None)
            assert response.status_code == 400
            assert "acp-session-id is missing" in reason(response)
        response = await client.post_line(
            request("session/close", {"sessionId": session}, 9), "another"
        )
        assert response.status_code == 400
        assert "different sessions" in reason(response)


@BOTH
async def test_a_stream_of_an_unknown_session_is_404(remote: RemoteAgent, version: int) -> None:
    async with http(remote, version=version) as client:
        headers = await connected(client, remote)
        for name in ("sess_unknown", "../../etc/passwd", "x" * 2000):
            response = await client.get(remote.url, headers=EVENTS | headers | {SESSION: name})
            assert response.status_code == 404
            assert "no session" in reason(response)


async def test_a_session_of_another_connection_is_neither_seen_nor_driven(
    remote: RemoteAgent, project: Path
) -> None:
    async with http_client(remote) as owner, http_client(remote) as second:
        await owner.initialize()
        await second.initialize()
        session = await owner.new_session(project)
        with pytest.raises(AnswerError) as refused:
            await second.request(
                "session/prompt",
                {"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]},
            )
        assert refused.value.code == -32002
        await owner.prompt(session, "hi")
        assert owner.text(session)
        assert second.updates(session) == []


@BOTH
async def test_after_delete_the_connection_is_gone_and_its_streams_end(
    remote: RemoteAgent, version: int
) -> None:
    async with http(remote, version=version) as client:
        headers = await connected(client, remote)
        async with client.stream("GET", remote.url, headers=EVENTS | headers) as stream:
            assert (await client.delete(remote.url, headers=headers)).status_code == 202
            async with asyncio.timeout(60):
                assert [line async for line in stream.aiter_lines() if line.strip(":")] == []
        listing = request("session/list", {})
        for response in (
            await client.post(remote.url, content=listing, headers=JSON | headers),
            await client.get(remote.url, headers=EVENTS | headers),
            await client.delete(remote.url, headers=headers),
        ):
            assert response.status_code == 404


@BOTH
async def test_of_two_streams_for_the_same_the_newer_one_is_used_and_the_older_ends(
    remote: RemoteAgent, version: int
) -> None:
    async with http(remote, version=version) as client:
        headers = await connected(client, remote)
        async with (
            client.stream("GET", remote.url, headers=EVENTS | headers) as older,
            client.stream("GET", remote.url, headers=EVENTS | headers) as newer,
        ):
            async with asyncio.timeout(60):
                assert [line async for line in older.aiter_lines() if line.strip(":")] == []
            listing = request("session/list", {}, 7)
            await client.post(remote.url, content=listing, headers=JSON | headers)
            async with asyncio.timeout(60):
                lines = newer.aiter_lines()
                line = await anext(line async for line in lines if line.startswith("data:"))
            assert json.loads(line.removeprefix("data:"))["id"] == 7


@BOTH
async def test_large_messages_are_read_one_after_the_other(
    remote: RemoteAgent, version: int
) -> None:
    large = request("session/list", {"x": "y" * 4_000_000}, 8)
    async with http(remote, version=version) as client:
        headers = await connected(client, remote)
        async with client.stream("GET", remote.url, headers=EVENTS | headers):
            for _ in range(4):
                async with asyncio.timeout(60):
                    response = await client.post(remote.url, content=large, headers=JSON | headers)
                assert response.status_code == 202


@BOTH
@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "OPTIONS"])
async def test_other_methods_are_405(remote: RemoteAgent, version: int, method: str) -> None:
    async with http(remote, version=version) as client:
        response = await client.request(method, remote.url)
        assert response.status_code == 405
        assert response.headers["allow"] == "GET, POST, DELETE"
        assert (await client.post(remote.url, content=INITIALIZE, headers=JSON)).is_success


@BOTH
@pytest.mark.parametrize("path", ["/", "/acp/", "/ACP", "/%61cp"])
async def test_other_paths_are_404(remote: RemoteAgent, version: int, path: str) -> None:
    async with http(remote, version=version) as client:
        base = remote.url.removesuffix("/acp")
        raw = httpx2.URL(base).copy_with(raw_path=path.encode())
        response = await client.post(raw, content=INITIALIZE, headers=JSON)
        assert response.status_code == 404


@BOTH
async def test_an_initialize_that_fails_says_why_in_its_answer(
    remote: RemoteAgent, version: int
) -> None:
    async with http(remote, version=version) as client:
        for asked, code in ((0, -32022), ("1", -32602), (-1, -32602)):
            body = request("initialize", {"protocolVersion": asked})
            response = await client.post(remote.url, content=body, headers=JSON)
            assert response.status_code == 200
            assert response.json()["error"]["code"] == code
        nameless = INITIALIZE.replace(b'"id": 1', b'"id": null')
        response = await client.post(remote.url, content=nameless, headers=JSON)
        assert response.status_code == 400


async def test_initialize_comes_twice_on_one_connection(remote: RemoteAgent) -> None:
    async with http_client(remote) as client:
        first = await client.initialize()
        assert await client.initialize() == first


async def test_an_answer_in_another_session_than_the_question_is_refused_with_400(
    remote: RemoteAgent, project: Path
) -> None:
    async with http_client(remote) as client:
        client.editor.well_behaved = False
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def wait(line: str) -> str:
            await answered
            return ""

        client.editor.dispatch = wait  # type: ignore[method-assign]  # it answers nothing by itself
        await client.initialize()
        session = await client.new_session(project)
        prompt = client.post_prompt(session, "$ touch made.txt")
        question = await client.expect(lambda m: m.get("method") == "session/request_permission")
        option = next(o for o in question["params"]["options"] if o["kind"] == "allow_once")
        outcome = {"outcome": "selected", "optionId": option["optionId"]}
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"outcome": outcome}}
        line = json.dumps(answer).encode()
        for session_header in (None, "another"):
            response = await client.post_line(line, session_header)
            assert response.status_code == 400
            assert "acp-session-id" in reason(response)
        client.oracle.sent(line)
        assert (await client.post_line(line, session)).status_code == 202
        assert (await client.result(prompt))["stopReason"] == "end_turn"
        assert (project / "made.txt").exists()


@BOTH
async def test_headers_that_name_things_once_are_refused_when_they_come_twice(
    remote: RemoteAgent, version: int
) -> None:
    async with http(remote, version=version) as client:
        mine = await connected(client, remote)
        for name, value in (
            (CONNECTION, mine[CONNECTION]),
            (SESSION, "sess_1"),
            ("Content-Type", "application/json"),
            ("Authorization", f"Bearer {remote.token}"),
        ):
            headers = [*(JSON | mine | remote.authorization).items(), (name, value)]
            if name == SESSION:
                headers.append((name, "sess_2"))
            async with httpx2.AsyncClient(
                http1=version == 1, http2=version == 2, trust_env=False, verify=False
            ) as plain:
                response = await plain.post(
                    remote.url, content=request("session/list", {}), headers=headers
                )
            assert response.status_code == 400
            assert name.lower() in reason(response)
