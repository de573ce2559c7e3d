"""The first prompt of a session, some time after `session/new`, and requests in the meantime."""

from __future__ import annotations

import tempfile
import time

from benchmarks.agent import Agent
from benchmarks.provider import Provider
from benchmarks.table import Row, pairs, row

ROUNDS = 7
RAW = "raw socket"
IDLE = "a second later"
_PREPARING = 0.25  # seconds after session/new in which the agent prepares the first prompt


def rows() -> list[Row]:
    """First chunks after 0, 0.3 and 1 s, and the requests in between."""
    with Provider(deltas=20) as provider:
        found = [
            _first_chunk(provider, wait, plus) for wait, plus in ((0.0, 300), (0.3, 100), (1.0, 20))
        ]
        return [*found, _requests(provider)]


def _first_chunk(provider: Provider, wait: float, plus: float) -> Row:
    def ours() -> float:
        with (
            Agent("--model", "openai/gpt-5", extra=provider.environment()) as agent,
            tempfile.TemporaryDirectory() as cwd,
        ):
            agent.initialize()
            session = agent.new_session(cwd)
            time.sleep(wait)
            began = time.perf_counter()
            agent.prompt(session)
            agent.until(b"agent_message_chunk")
            return (time.perf_counter() - began) * 1e3

    values, floors = pairs(ours, lambda: provider.raw().first, ROUNDS)
    name = f"prompt {wait:g} s after session/new → first chunk"
    return row(name, "ms", values, RAW, floors, times=1, plus=plus)


def _requests(provider: Provider) -> Row:
    """What answers take longer while the first prompt is prepared."""
    values: list[float] = []
    floors: list[float] = []
    for _ in range(ROUNDS):
        with (
            Agent("--model", "openai/gpt-5", extra=provider.environment()) as agent,
            tempfile.TemporaryDirectory() as cwd,
        ):
            agent.initialize()
            session = agent.new_session(cwd)

            def ask(agent: Agent = agent, session: str = session) -> float:
                time.sleep(0.004)
                began = time.perf_counter()
                mode = {"sessionId": session, "modeId": "ask"}
                agent.answer(agent.post("session/set_mode", mode))
                return (time.perf_counter() - began) * 1e3

            began = time.perf_counter()
            during: list[float] = []
            while time.perf_counter() - began < _PREPARING:
                during.append(ask())
            time.sleep(1)
            values += during
            floors += [ask() for _ in during]
    name = "session/set_mode while the first prompt is prepared"
    return row(name, "ms", values, IDLE, floors, times=1, plus=5)
