"""A chain of a conductor, a proxy that passes everything on, and the agent at its end.

    running = await AgentProcess.start(*MODEL, home=home, command=PROXY_CHAIN)

To its client it looks like the agent: `python -m tests.server.proxy_chain ARGUMENT…` starts
`python -m acp_agent ARGUMENT…` and carries each message over two hops, as the RFD "Agent Extensions
via ACP Proxies" says: client, conductor, proxy, conductor, agent, and back. `SEEN`, an environment
variable, names a file that gets a line `hop method` for every request and notification.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
Answer = Callable[[Json], None]
PROXY_CHAIN = (sys.executable, "-m", "tests.server.proxy_chain")
LIMIT = 1 << 26


class Hop:
    """One end of a connection: it asks and tells, and hands on what it is asked and told.

    Answers are handed on in the order in which they come among the other messages.
    """

    def __init__(self, name: str, send: Callable[[Json], None]) -> None:
        self.name = name
        self.asked: Callable[[str, Json | None, Answer], None]
        self.told: Callable[[str, Json | None], None]
        self._send = send
        self._waiting: dict[int, Answer] = {}

    def ask(self, method: str, params: Json | None, then: Answer) -> None:
        """Send a request; `then` gets its result or error."""
        number = len(self._waiting)
        self._waiting[number] = then
        self._send(_message(method, params) | {"id": number})

    def tell(self, method: str, params: Json | None) -> None:
        """Send a notification."""
        self._send(_message(method, params))

    def receive(self, message: Json) -> None:
        """Take a message from the other end."""
        if "method" not in message:
            self._waiting[message["id"]]({k: message[k] for k in message.keys() & _OUTCOMES})
            return
        method, params = message["method"], message.get("params")
        _note(self.name, method)
        if "id" not in message:
            self.told(method, params)
            return
        answered = {"jsonrpc": "2.0", "id": message["id"]}
        self.asked(method, params, lambda outcome: self._send(answered | outcome))


_OUTCOMES = {"result", "error"}


def _message(method: str, params: Json | None) -> Json:
    message: Json = {"jsonrpc": "2.0", "method": method}
    return message if params is None else message | {"params": params}


def _note(hop: str, method: str) -> None:
    path = os.environ.get("SEEN")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{hop} {method}\n")


def _wrapped(method: str, params: Json | None) -> Json:
    return {"method": method} if params is None else {"method": method, "params": params}


def conduct(client: Hop, proxy: Hop, agent: Hop) -> None:
    """Route what comes from each of the three."""

    def ask_proxy(method: str, params: Json | None, then: Answer) -> None:
        proxy.ask("proxy/initialize" if method == "initialize" else method, params, then)

    def ask_for_proxy(method: str, params: Json | None, then: Answer) -> None:
        if method == "proxy/successor":
            assert params is not None
            agent.ask(params["method"], params.get("params"), then)
        else:
            client.ask(method, params, then)

    def tell_for_proxy(method: str, params: Json | None) -> None:
        if method == "proxy/successor":
            assert params is not None
            agent.tell(params["method"], params.get("params"))
        else:
            client.tell(method, params)

    client.asked, client.told = ask_proxy, proxy.tell
    proxy.asked, proxy.told = ask_for_proxy, tell_for_proxy
    agent.asked = lambda method, params, then: proxy.ask(
        "proxy/successor", _wrapped(method, params), then
    )
    agent.told = lambda method, params: proxy.tell("proxy/successor", _wrapped(method, params))


def pass_on(conductor: Hop) -> None:
    """A proxy that changes nothing."""

    def asked(method: str, params: Json | None, then: Answer) -> None:
        if method == "proxy/successor":
            assert params is not None
            conductor.ask(params["method"], params.get("params"), then)
        else:
            inner = "initialize" if method == "proxy/initialize" else method
            conductor.ask("proxy/successor", _wrapped(inner, params), then)

    def told(method: str, params: Json | None) -> None:
        if method == "proxy/successor":
            assert params is not None
            conductor.tell(params["method"], params.get("params"))
        else:
            conductor.tell("proxy/successor", _wrapped(method, params))

    conductor.asked, conductor.told = asked, told


async def main(arguments: list[str]) -> int:
    """Run the chain until the client leaves."""
    agent_process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "acp_agent",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LIMIT,
    )
    assert agent_process.stdin is not None
    assert agent_process.stdout is not None
    to_agent, to_proxy = agent_process.stdin, _later()
    agent = Hop("agent", lambda message: to_agent.write(_line(message)))
    client = Hop("client", lambda message: _write(1, _line(message)))
    proxy = Hop("proxy", lambda message: to_proxy(conductor, message))
    conductor = Hop("conductor", lambda message: to_proxy(proxy, message))
    conduct(client, proxy, agent)
    pass_on(conductor)
    stdin = asyncio.StreamReader(limit=LIMIT)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    reading = asyncio.create_task(_read(agent_process.stdout, agent))
    await _read(stdin, client)
    to_agent.close()
    await reading
    return await agent_process.wait()


def _later() -> Callable[[Hop, Json], None]:
    """Hands messages from one end in this process to the other, in their order."""
    loop = asyncio.get_running_loop()

    def hand(hop: Hop, message: Json) -> None:
        loop.call_soon(hop.receive, json.loads(json.dumps(message)))

    return hand


def _line(message: Json) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


async def _read(reader: asyncio.StreamReader, hop: Hop) -> None:
    while line := await reader.readline():
        hop.receive(json.loads(line))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
