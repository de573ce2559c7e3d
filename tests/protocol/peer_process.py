"""The peer of `peer.py` as a child process, spoken to in raw bytes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60.0  # seconds that any single wait may take


class PeerProcess:
    """A running peer; `lines` keeps every line that it wrote."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[bytes] = []
        self._ids = 100

    async def send(self, *lines: bytes | dict[str, Any]) -> None:
        """Write lines, all in one piece."""
        assert self.process.stdin is not None
        data = b"".join(
            line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines
        )
        self.process.stdin.write(data)
        await asyncio.wait_for(self.process.stdin.drain(), LIMIT)

    async def receive(self) -> dict[str, Any]:
        """The next line, which has to be a message."""
        message: dict[str, Any] = json.loads(await self.receive_line())
        assert message["jsonrpc"] == "2.0"
        return message

    async def receive_line(self) -> bytes:
        """The next line as it was written."""
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), LIMIT)
        assert line.endswith(b"\n"), f"the peer ended; it wrote {line!r}"
        self.lines.append(line)
        return line

    async def stderr_line(self) -> str:
        """The next line of the log."""
        assert self.process.stderr is not None
        return (await asyncio.wait_for(self.process.stderr.readline(), LIMIT)).decode()

    async def started(self, text: str) -> None:
        """Wait until the handler of the prompt `text` has begun."""
        while await self.stderr_line() != f"start {text}\n":
            pass

    async def ask(self, line: bytes | dict[str, Any]) -> dict[str, Any]:
        """Send one line and return the next message."""
        await self.send(line)
        return await self.receive()

    async def initialize(self) -> None:
        """Begin the connection."""
        answer = await self.ask(request("initialize", {"protocolVersion": 1}, 0))
        assert answer["result"]["protocolVersion"] == 1

    async def end(self) -> int:
        """Close standard input and return the exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await asyncio.wait_for(self.process.wait(), LIMIT)


def request(method: str, params: object, request_id: object = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def notification(method: str, params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def cancel_request(request_id: object) -> dict[str, Any]:
    return notification("$/cancel_request", {"requestId": request_id})


def prompt(text: str, request_id: object = 1, session: str = "s") -> dict[str, Any]:
    blocks = [{"type": "text", "text": text}]
    return request("session/prompt", {"sessionId": session, "prompt": blocks}, request_id)


def text_of(message: dict[str, Any]) -> str:
    """The text of an agent_message_chunk."""
    text: str = message["params"]["update"]["content"]["text"]
    return text


@asynccontextmanager
async def running_peer(*arguments: str, **options: Any) -> AsyncIterator[PeerProcess]:
    """Start a peer, and end it whatever happens."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-W",
        "error",
        str(Path(__file__).with_name("peer.py")),
        *arguments,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
        **{
            "limit": 256 * 1024 * 1024,
            "stdin": asyncio.subprocess.PIPE,
            "stdout": asyncio.subprocess.PIPE,
            "stderr": asyncio.subprocess.PIPE,
            **options,
        },
    )
    try:
        yield PeerProcess(process)
    finally:
        # With its children, which could otherwise hold its pipes open for ever.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.wait_for(process.wait(), LIMIT)
        # The pipes' transports close on the loop's next pass, not with the process.
        process._transport.close()  # type: ignore[attr-defined]  # no public way to close them
