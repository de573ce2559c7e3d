"""Requests to the model: the size of the first one, and the stable prefix."""

from __future__ import annotations

import itertools
import json
import tempfile
from pathlib import Path

from benchmarks.agent import Agent
from benchmarks.table import Row, row
from tests.support.model_server import Call, ModelServer, answer, model_server_in_thread

TURNS = 10
APIS = ("openai", "openai_responses", "anthropic", "gemini")
LARGEST = 12.0  # KB of the first request of a session in an empty project


def rows() -> list[Row]:
    """Bytes of the first request, and the share of each that the next one begins with."""
    with model_server_in_thread() as server, tempfile.TemporaryDirectory() as cwd:
        (Path(cwd) / "a.py").write_text("x = 1\n")
        _script(server)
        with tempfile.TemporaryDirectory() as home:
            session = _turns(server, home, cwd, None, TURNS // 2)
            _turns(server, home, cwd, session, TURNS // 2)  # a restart in between
        bodies = [request.body for request in server.requests]
    shares = [
        100.0 * _common(_messages(before), _messages(after)) / len(_messages(before))
        for before, after in itertools.pairwise(bodies)
    ]
    return [
        *(
            row(f"first request in an empty project, {api}", "KB", [first(api) / 1e3], plus=LARGEST)
            for api in APIS
        ),
        row("prefix lost from request to request", "%", [100.0 - share for share in shares]),
    ]


def first(api: str, settings: str = "") -> int:
    """Bytes of the first request over an API, with all tools and the prompt "hello".

    Args:
        api: the API.
        settings: the first lines of the configuration file.
    """
    with (
        model_server_in_thread() as server,
        tempfile.TemporaryDirectory() as home,
        tempfile.TemporaryDirectory() as cwd,
    ):
        server.otherwise = answer("Hello.")
        config = f'{settings}[providers.mine]\napi = "{api}"\nbase_url = "{server.url}/v1"\n'
        (Path(home) / "config.toml").write_text(config)
        with Agent("--model", "mine/some-model", home=home) as agent:
            agent.initialize()
            agent.answer(agent.prompt(agent.new_session(cwd), "hello"))
        return len(server.requests[0].body)


def _script(server: ModelServer) -> None:
    for number in range(TURNS):
        server.add(
            answer(f"Looking {number}. ", Call("read", {"path": "a.py"})), answer(f"Done {number}.")
        )


def _turns(server: ModelServer, home: str, cwd: str, session: str | None, count: int) -> str:
    with Agent("--model", "openai/gpt-5", home=home, extra=server.environ("openai")) as agent:
        agent.initialize()
        if session is None:
            session = agent.new_session(cwd)
        else:
            load = {"sessionId": session, "cwd": cwd, "mcpServers": []}
            agent.answer(agent.post("session/load", load))
        for number in range(count):
            agent.answer(agent.prompt(session, f"turn {number}"))
    return session


def _messages(body: bytes) -> bytes:
    """The bytes that a provider caches by: tools, then messages, without the closing bracket."""
    request = json.loads(body)
    sent = json.dumps([request["tools"], request["messages"]], separators=(",", ":"))
    return sent[:-2].encode()


def _common(one: bytes, other: bytes) -> int:
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return index
    return min(len(one), len(other))
