"""An MCP server behind HTTP that answers as a test says, also against the specification."""

from __future__ import annotations

import json
import uuid
from typing import Any

from tests.extensions.mcp_web import WebServer

Json = dict[str, Any]
Headers = dict[str, str]
TOOL = {"name": "count", "inputSchema": {"type": "object"}}


class RawServer(WebServer):
    """A server with one tool, which counts its calls; a subclass overrides what it answers.

    `requests` has the method, the path and the JSON-RPC method of every request.
    """

    def __init__(self) -> None:
        super().__init__("http", None)
        self.calls = 0
        self.sessions: set[str] = set()

    def build(self) -> None:
        """There is nothing to build."""

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            for _ in range(2):  # start and end
                event = await receive()
                await send({"type": f"{event['type']}.complete"})
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        parsed: Json = json.loads(body) if body else {}
        self.requests.append(
            headers
            | {
                ":method": scope["method"],
                ":path": scope["path"],
                ":rpc": parsed.get("method", ""),
            }
        )
        await self.handle(scope["method"], scope["path"], headers, parsed, send)

    async def handle(
        self, method: str, path: str, headers: Headers, message: Json, send: Any
    ) -> None:
        """Answer a request."""
        del path
        if method != "POST":
            await reply(send, 405)
        elif message["method"] == "initialize":
            session = uuid.uuid4().hex
            self.sessions.add(session)
            await reply(send, 200, self.result(message), {"mcp-session-id": session})
        elif headers.get("mcp-session-id") not in self.sessions:
            await self.refuse_session(send)
        elif "id" not in message:
            await reply(send, 202)
        elif message["method"] == "tools/call":
            await self.call(message, send)
        else:
            await reply(send, 200, self.result(message))

    async def refuse_session(self, send: Any) -> None:
        """Answer a request of an unknown session."""
        await reply(send, 404)

    async def call(self, message: Json, send: Any) -> None:
        """Answer a call of the tool."""
        await reply(send, 200, self.result(message))

    def result(self, message: Json) -> Json:
        """The response to a request of a client of the older versions."""
        match message["method"]:
            case "initialize":
                result: Json = {
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "raw", "version": "1"},
                }
            case "tools/list":
                result = {"tools": [TOOL]}
            case "tools/call":
                self.calls += 1
                result = {"content": [{"type": "text", "text": f"call {self.calls}"}]}
            case _:
                error = {"code": -32601, "message": "Method not found"}
                return {"jsonrpc": "2.0", "id": message["id"], "error": error}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}


async def reply(
    send: Any, status: int, value: Json | None = None, headers: Headers | None = None
) -> None:
    """Send a whole response, in JSON if there is a value."""
    fields = {"content-type": "application/json" if value is not None else "text/plain"}
    encoded = [(key.encode(), text.encode()) for key, text in (fields | (headers or {})).items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    body = b"" if value is None else json.dumps(value).encode()
    await send({"type": "http.response.body", "body": body})


async def start_events(send: Any) -> None:
    """Start a stream of server-sent events."""
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def send_event(send: Any, data: str, **fields: str) -> None:
    """Send one event, and keep the stream open."""
    lines = [f"{name}: {value}" for name, value in {**fields, "data": data}.items()]
    body = ("\n".join(lines) + "\n\n").encode()
    await send({"type": "http.response.body", "body": body, "more_body": True})
