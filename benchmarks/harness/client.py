"""A client that runs many sessions of one agent at the same time."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from msgspec import Struct, field

from benchmarks.agent import COMMAND, clean_environment

Json = dict[str, Any]
_LINE = 64 * 1024 * 1024  # bytes
_ENDED: Json = {"error": {"message": "the agent ended"}}


class Session(Struct, kw_only=True):
    """What a client sees of a session, and how it answers.

    `calls` has the last status of each call, in the order in which they were made.
    """

    decision: str
    calls: dict[str, str] = field(default_factory=dict)
    text: str = ""
    asked: int = 0

    def begin_paragraph(self) -> None:
        """Separate the text from what follows, as an editor does around anything else."""
        if self.text and not self.text.endswith("\n"):
            self.text += "\n"


class Client:
    """A running agent that reaches the models at an address."""

    def __init__(self, config: str, environ: Mapping[str, str]) -> None:
        self._config = config
        self._environ = environ
        self._home = tempfile.TemporaryDirectory()
        self._next = 0
        self._has_ended = False
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self.sessions: dict[str, Session] = {}

    async def __aenter__(self) -> Self:
        """Start the agent."""
        (Path(self._home.name) / "config.toml").write_text(self._config)
        self._process = await asyncio.create_subprocess_exec(
            COMMAND,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=clean_environment(self._home.name, self._environ),
            limit=_LINE,
        )
        self._reader = asyncio.create_task(self._read())
        await self.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close its stdin, which ends it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), 10)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._reader
        self._home.cleanup()

    async def request(self, method: str, params: Json) -> Json:
        """Send a request; return its result, or what was wrong as `{"error": …}`."""
        self._next += 1
        if self._has_ended:
            return _ENDED
        waiting = self._waiting[self._next] = asyncio.get_running_loop().create_future()
        self._write({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        found: Json = await waiting
        return found

    async def open(self, cwd: Path, *, mode: str, decision: str, servers: list[Json]) -> str:
        """Open a session; return its id."""
        created = await self.request("session/new", {"cwd": str(cwd), "mcpServers": servers})
        if "sessionId" not in created:
            raise RuntimeError(f"the agent did not open a session: {created}")
        session: str = created["sessionId"]
        self.sessions[session] = Session(decision=decision)
        if mode != "full":  # the configuration's
            await self.request("session/set_mode", {"sessionId": session, "modeId": mode})
        return session

    def _write(self, message: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _read(self) -> None:
        assert self._process.stdout is not None
        with suppress(ValueError):  # what an agent writes that is not JSON ends it too
            while line := await self._process.stdout.readline():
                message = json.loads(line)
                if "method" in message:
                    self._take(message)
                elif (waiting := self._waiting.pop(message["id"], None)) and not waiting.done():
                    waiting.set_result(message.get("result", {"error": message.get("error")}))
        self._has_ended = True
        for left in self._waiting.values():
            if not left.done():
                left.set_result(_ENDED)

    def _take(self, message: Json) -> None:
        params = message["params"]
        session = self.sessions.get(params.get("sessionId", ""))
        if message["method"] == "session/update" and session is not None:
            _update(session, params["update"])
        elif message["method"] == "session/request_permission" and session is not None:
            session.asked += 1
            wanted = session.decision
            chosen = next(one for one in params["options"] if one["kind"] == f"{wanted}_once")
            outcome = {"outcome": "selected", "optionId": chosen["optionId"]}
            self._write({"jsonrpc": "2.0", "id": message["id"], "result": {"outcome": outcome}})
        elif "id" in message:
            error = {"code": -32601, "message": "not offered"}
            self._write({"jsonrpc": "2.0", "id": message["id"], "error": error})


def _update(session: Session, update: Json) -> None:
    match update["sessionUpdate"]:
        case "agent_message_chunk":
            session.text += update["content"].get("text", "")
        case "agent_thought_chunk" | "plan":
            session.begin_paragraph()
        case "tool_call" | "tool_call_update":
            session.begin_paragraph()
            before = session.calls.get(update["toolCallId"], "pending")
            session.calls[update["toolCallId"]] = update.get("status") or before
        case _:
            pass
