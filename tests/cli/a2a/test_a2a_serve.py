"""`acp-agent a2a serve`, used with the client of the `a2a-sdk` package and with plain HTTP."""

from __future__ import annotations

import asyncio
import base64
import re
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.helpers import get_artifact_text, new_text_message
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    Role,
    SendMessageRequest,
    Task,
    TaskState,
)

from tests.support.agent_process import environment
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.warm_parent import shared_parent

TOKEN = "a-token-of-this-test"
Json = dict[str, Any]


class Served:
    """A server, and a client that knows its token."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, http: httpx.AsyncClient):
        self.process = process
        self.url = url
        self.http = http
        self.states: list[str] = []  # of the task that was sent last, each once
        self.said: list[str] = []  # with them
        self._client: Client | None = None

    async def client(self) -> Client:
        if self._client is None:
            card = await A2ACardResolver(self.http, self.url).get_agent_card()
            config = ClientConfig(httpx_client=self.http, streaming=True)
            self._client = ClientFactory(config).create(card)
        return self._client

    async def send(self, text: str, **where: str) -> Task:
        """Send a message, and return the task once it ends or waits."""
        client = await self.client()
        message = new_text_message(text=text, role=Role.ROLE_USER, **where)
        self.states.clear()
        self.said.clear()
        task = where.get("task_id", "")
        async for event in client.send_message(SendMessageRequest(message=message)):
            if event.HasField("task"):
                task = event.task.id
            if event.HasField("status_update"):
                state = TaskState.Name(event.status_update.status.state)
                self.states += [state] if state not in self.states[-1:] else []
                self.said += [part.text for part in event.status_update.status.message.parts]
        return await client.get_task(GetTaskRequest(id=task))

    async def call(self, method: str, params: Any, **headers: str) -> Json:
        """The answer to a request as it is written."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        all_headers = {"A2A-Version": "1.0", **headers}
        answered: Json = (
            await self.http.post(f"{self.url}/a2a", json=body, headers=all_headers)
        ).json()
        return answered


Serve = Callable[[], Any]


@pytest.fixture
def serve(home: Path, workspace_repo: Path, model_server: ModelServer) -> Serve:
    """Starts servers of a project."""
    variables = {**model_server.environ(), "ACP_AGENT_LISTEN_TOKEN": TOKEN}

    @asynccontextmanager
    async def started() -> AsyncIterator[Served]:
        process = await asyncio.create_subprocess_exec(
            *(*shared_parent().command(), "a2a", "serve", "--model", "openai/gpt-5"),
            env=environment(home, variables),
            cwd=workspace_repo,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        line = (await process.stderr.readline()).decode()
        match = re.search(r"(http://127\.0\.0\.1:\d+)/a2a", line)
        assert match, line + (await process.stderr.read()).decode()
        try:
            async with httpx.AsyncClient(
                headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60
            ) as http:
                yield Served(process, match[1], http)
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(process.wait(), 60)

    return started


def write(name: str) -> Call:
    return Call("write", {"path": name, "content": "made\n"})


def task_text(task: Task) -> str:
    return "".join(get_artifact_text(artifact, "") for artifact in task.artifacts)


async def test_a_task_waits_for_the_answer_and_its_context_is_a_session(
    serve: Serve, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.add(
        answer("I make ", "it.", write("one.txt")),
        answer("Made one."),
        answer(write("two.txt")),
        answer("Not two."),
    )
    async with serve() as served:
        task = await served.send("make one")
        assert served.states[-1] == "TASK_STATE_INPUT_REQUIRED"
        assert "one.txt" in served.said[-1]
        assert not (workspace_repo / "one.txt").exists()
        unclear = await served.send("hm", task_id=task.id, context_id=task.context_id)
        assert unclear.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        done = await served.send("Allow.", task_id=task.id, context_id=task.context_id)
        assert done.status.state == TaskState.TASK_STATE_COMPLETED
        assert task_text(done) == "I make it.\n\nMade one."
        assert (workspace_repo / "one.txt").read_text() == "made\n"

        second = await served.send("make two", context_id=task.context_id)
        assert second.id != task.id
        second = await served.send("no", task_id=second.id, context_id=second.context_id)
        assert second.status.state == TaskState.TASK_STATE_COMPLETED
        assert not (workspace_repo / "two.txt").exists()
        assert b"Made one." in model_server.requests[-1].body, "it is the same session"


async def test_a_task_is_cancelled_wherever_it_is(
    serve: Serve, workspace_repo: Path, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer(write("one.txt")), answer("Begun", stall, "never"))
    async with serve() as served:
        client = await served.client()
        waiting = await served.send("make one")
        ended = await client.cancel_task(CancelTaskRequest(id=waiting.id))
        assert ended.status.state == TaskState.TASK_STATE_CANCELED
        assert not (workspace_repo / "one.txt").exists()
        running = asyncio.create_task(served.send("tell me"))
        await stall.reached.wait()
        (listed,) = (await served.call("ListTasks", {"status": "TASK_STATE_WORKING"}))["result"][
            "tasks"
        ]
        await client.cancel_task(CancelTaskRequest(id=listed["id"]))
        task = await running
        assert task.status.state == TaskState.TASK_STATE_CANCELED
        repeated = await served.call("CancelTask", {"id": task.id})
        assert repeated["error"]["code"] == -32002, "it cannot be cancelled any more"


async def test_after_a_kill_tasks_have_failed_and_their_session_continues(
    serve: Serve, model_server: ModelServer
) -> None:
    model_server.add(answer("First."), answer(write("one.txt")), answer("Second."))
    async with serve() as served:
        first = await served.send("begin")
        waiting = await served.send("make one", context_id=first.context_id)
        served.process.kill()
        await served.process.wait()
    async with serve() as served:
        lost = await (await served.client()).get_task(GetTaskRequest(id=waiting.id))
        assert lost.status.state == TaskState.TASK_STATE_FAILED
        stored = await (await served.client()).get_task(GetTaskRequest(id=first.id))
        assert (stored.status.state, task_text(stored)) == (
            TaskState.TASK_STATE_COMPLETED,
            "First.",
        )
        task = await served.send("go on", context_id=first.context_id)
        assert task_text(task) == "Second."
        assert b"First." in model_server.requests[-1].body


async def test_clients_of_version_0_3_are_served(serve: Serve, model_server: ModelServer) -> None:
    model_server.add(answer("Hello."))
    message = {
        "kind": "message",
        "role": "user",
        "messageId": "m1",
        "parts": [{"kind": "text", "text": "hi"}],
    }
    async with serve() as served:
        answered = await served.call("message/send", {"message": message}, **{"A2A-Version": "0.3"})
        task = answered["result"]
        assert (task["kind"], task["status"]["state"]) == ("task", "completed")
        assert task["artifacts"][0]["parts"][0]["text"] == "Hello."


async def test_every_kind_of_part_reaches_the_model_or_is_refused(
    serve: Serve, model_server: ModelServer
) -> None:
    model_server.add(answer("Seen."))
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(64)).decode()

    def message(*parts: Json, **more: Any) -> Json:
        content = {"messageId": "m1", "role": "ROLE_USER", "parts": list(parts), **more}
        return {"message": content}

    async with serve() as served:
        accepted = message(
            {"text": "look"},
            {"data": {"key": "a value"}},
            {"url": "https://example.com/a.txt", "filename": "a.txt"},
            {"raw": base64.b64encode(b"some notes").decode(), "mediaType": "text/plain"},
            {"raw": picture, "mediaType": "image/png"},
        )
        result = (await served.call("SendMessage", accepted))["result"]["task"]
        assert result["status"]["state"] == "TASK_STATE_COMPLETED"
        body = model_server.requests[-1].body
        for piece in (b"look", b"a value", b"https://example.com/a.txt", b"some notes"):
            assert piece in body
        assert picture.encode() in body
        binary = message({"raw": base64.b64encode(b"\xff\xfe").decode(), "mediaType": "audio/wav"})
        assert (await served.call("SendMessage", binary))["error"]["code"] == -32005
        outside = message({"text": "x"}, metadata={"folder": "/"})
        refused = (await served.call("SendMessage", outside))["error"]
        assert refused["code"] == -32602
        assert "is not served" in refused["message"]
        full = message({"text": "x"}, metadata={"mode": "full"})
        assert (await served.call("SendMessage", full))["error"]["code"] == -32602


async def test_the_card_is_public_and_nothing_else_is(serve: Serve) -> None:
    async with serve() as served, httpx.AsyncClient() as stranger:

        async def status(method: str, path: str, **more: Any) -> int:
            return (await stranger.request(method, f"{served.url}{path}", **more)).status_code

        card = "/.well-known/agent-card.json"
        assert await status("GET", card) == 200
        assert await status("GET", card, headers={"Host": "evil.example"}) == 400
        assert await status("POST", "/a2a", json={}) == 401
        wrong = {"Authorization": "Bearer wrong"}
        assert await status("POST", "/a2a", json={}, headers=wrong) == 401
        authorized = {"Authorization": f"Bearer {TOKEN}"}
        oversized = b" " * (17 * 1024 * 1024)
        assert await status("POST", "/a2a", content=oversized, headers=authorized) == 413
        answered = await served.http.post(f"{served.url}/a2a", content=b"{nonsense")
        assert answered.json()["error"]["code"] == -32700
        assert (await served.call("NoSuchMethod", {}))["error"]["code"] == -32601
        assert (await served.call("GetTask", {"id": "none"}))["error"]["code"] == -32001
        assert (await served.call("SendMessage", {"message": 1}))["error"]["code"] == -32602


async def test_the_same_folder_is_not_served_twice(serve: Serve) -> None:
    async with serve():
        with pytest.raises(AssertionError, match="another server offers"):
            async with serve():
                pass
