"""An agent that is nothing but the protocol package: what the tests send real bytes to.

Its prompts are commands: `say TEXT`, `flood COUNT SIZE`, `hang`, `hang politely`, `crash`, `ask`,
`slow TEXT`, `print`. It says on standard error when a handler starts.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable

from protocol.transports.claim import claim_stdio

IN_FD, OUT_FD = claim_stdio()

from msgspec import Raw  # noqa: E402 - the streams are claimed first

from protocol.jsonrpc.connection import Connection  # noqa: E402
from protocol.jsonrpc.handlers import (  # noqa: E402
    Call,
    Reply,
    Surface,
)
from protocol.jsonrpc.messages import INVALID_REQUEST, RpcError  # noqa: E402
from protocol.transports.stdio import StdioTransport  # noqa: E402
from protocol.v1 import methods, types as t  # noqa: E402

Command = Callable[[str, str, Call], Awaitable[t.PromptResponse]]

# A child that counts the pipes it inherited beyond its standard streams.
CHILD = """
import os, stat
print('a stray child', flush=True)
assert os.read(0, 1) == b'', 'standard input is not the null device'
pipes = 0
for descriptor in range(3, 64):
    try:
        pipes += stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except OSError:
        pass
os._exit(pipes)
"""


class Peer:
    def __init__(self, limit: int) -> None:
        self.initialized = False
        self.stops: dict[str, asyncio.Event] = {}
        self.connection = Connection(
            StdioTransport(IN_FD, OUT_FD, limit=limit),
            Surface(
                methods.AGENT_METHODS,
                {
                    "initialize": self.initialize,
                    "session/new": self.new_session,
                    "session/prompt": self.prompt,
                    "session/cancel": self.cancel,
                },
                merge=self.merge,
                batches="--batches" in sys.argv,
                map_error=lambda error: (
                    RpcError(-32002, str(error)) if isinstance(error, LookupError) else None
                ),
            ),
            admit=self.admit,
        )

    def admit(self, method: str, params: Raw) -> None:
        self.initialized = self.initialized or method == "initialize"
        if not self.initialized:
            raise RpcError(INVALID_REQUEST, "send initialize first")

    def merge(self, method: str, before: object, after: object) -> object | None:
        if not isinstance(before, t.SessionNotification) or "--merge" not in sys.argv:
            return None
        assert isinstance(after, t.SessionNotification)
        if before.session_id != after.session_id:
            return None
        old, new = before.update, after.update
        if isinstance(old, t.AgentMessageChunk) and isinstance(new, t.AgentMessageChunk):
            assert isinstance(old.content, t.TextContent)
            assert isinstance(new.content, t.TextContent)
            if len(old.content.text) < 16 * 1024:
                return chunk(before.session_id, old.content.text + new.content.text)
        return None

    async def initialize(self, params: t.InitializeRequest, call: Call) -> t.InitializeResponse:
        return t.InitializeResponse(
            protocol_version=min(params.protocol_version, 1),
            agent_info=t.Implementation(name="peer", version="0"),
        )

    async def new_session(self, params: t.NewSessionRequest, call: Call) -> Reply:
        self.stops["s"] = asyncio.Event()
        return Reply(t.NewSessionResponse(session_id="s"), then=lambda: self.say("s", "welcome"))

    def say(self, session: str, text: str) -> None:
        self.connection.notify(methods.SESSION_UPDATE, chunk(session, text))

    def cancel(self, params: t.CancelNotification) -> None:
        if params.session_id == "raise":
            raise RuntimeError("a notification that fails")
        self.stops[params.session_id].set()

    async def prompt(self, params: t.PromptRequest, call: Call) -> t.PromptResponse:
        block = params.prompt[0]
        assert isinstance(block, t.TextContent)
        print("start", block.text[:60], file=sys.stderr, flush=True)
        command, _, rest = block.text.partition(" ")
        answering: Command = getattr(self, f"do_{command}")
        return await answering(params.session_id, rest, call)

    async def do_say(self, session: str, text: str, call: Call) -> t.PromptResponse:
        self.say(session, text)
        return t.PromptResponse(stop_reason="end_turn")

    async def do_slow(self, session: str, text: str, call: Call) -> t.PromptResponse:
        for letter in text:
            await asyncio.sleep(0.001)
            self.say(session, letter)
        return t.PromptResponse(stop_reason="end_turn")

    async def do_flood(self, session: str, text: str, call: Call) -> t.PromptResponse:
        count, size = map(int, text.split())
        for number in range(count):
            self.say(session, f"{number:0{size}d}")
            await self.connection.drain()
        return t.PromptResponse(stop_reason="end_turn")

    async def do_hang(self, session: str, text: str, call: Call) -> t.PromptResponse:
        if text != "politely":
            await asyncio.Event().wait()
        stop = self.stops.setdefault(session, asyncio.Event())
        call.on_cancel(stop.set)
        await stop.wait()
        return t.PromptResponse(stop_reason="cancelled")

    async def do_crash(self, session: str, text: str, call: Call) -> t.PromptResponse:
        if text == "lookup":
            raise KeyError("no\nsuch\nthing")
        raise RuntimeError(f"secret detail\nTraceback {__file__}")

    async def do_surrogate(self, session: str, text: str, call: Call) -> t.PromptResponse:
        self.say(session, "a\ud800b")
        return t.PromptResponse(stop_reason="end_turn")

    async def do_print(self, session: str, text: str, call: Call) -> t.PromptResponse:
        print("a stray print")
        os.write(1, b"a stray write\n")
        logging.getLogger().warning("a stray log line")
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            CHILD,
            close_fds=False,
        )
        leaked = await child.wait()
        self.say(session, f"leaked {leaked}")
        return t.PromptResponse(stop_reason="end_turn")

    async def do_ask(self, session: str, text: str, call: Call) -> t.PromptResponse:
        request = t.RequestPermissionRequest(
            session_id=session,
            tool_call=t.ToolCallUpdate(tool_call_id="c"),
            options=[t.PermissionOption(option_id="y", name="Yes", kind="allow_once")],
        )
        timeout = float(text) if text else None
        try:
            answer = await self.connection.request(
                methods.REQUEST_PERMISSION, request, timeout=timeout
            )
        except (RpcError, TimeoutError, ConnectionError) as error:
            self.say(session, f"{type(error).__name__}: {error}")
        else:
            self.say(session, repr(answer.outcome))
        return t.PromptResponse(stop_reason="end_turn")


def chunk(session: str, text: str) -> t.SessionNotification:
    update = t.AgentMessageChunk(content=t.TextContent(text=text))
    return t.SessionNotification(session_id=session, update=update)


async def main() -> None:
    limit = next((int(a.partition("=")[2]) for a in sys.argv if a.startswith("--limit=")), None)
    peer = Peer(limit or 32 * 1024 * 1024)
    await peer.connection.run()


if __name__ == "__main__":
    asyncio.run(main())
