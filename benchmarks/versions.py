"""Version 2 of the protocol against version 1: the same work, taken in turn."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable

from benchmarks.agent import Agent, Json
from benchmarks.provider import Provider
from benchmarks.table import Row, pairs, row

ROUNDS = 21
WARM_ROUNDS = 151  # of turns, which are over soon and differ most
VERSION_1 = "version 1"
GOAL = 1.10  # times as long, at most
IDLE = b'"state":"idle"'
CHUNK = b"agent_message_chunk"


class AgentV2(Agent):
    """An agent that speaks version 2; what differs in it is how a turn ends."""

    def initialize(self, capabilities: Json | None = None) -> None:
        """The first request."""
        info = {"name": "benchmark", "version": "1"}
        params = {"protocolVersion": 2, "info": info, "capabilities": capabilities or {}}
        self.answer(self.post("initialize", params))

    def new_session(self, cwd: str) -> str:
        """A session; its id."""
        session: str = self.answer(self.post("session/new", {"cwd": cwd}))["sessionId"]
        return session


def ended(agent: Agent, request: int) -> None:
    """Read up to the end of the work that a prompt began."""
    if isinstance(agent, AgentV2):
        agent.until(IDLE)
    else:
        agent.answer(request)


def rows() -> list[Row]:
    """From the start to the first answers, and turns of a warm agent."""
    return [*_start(), *_turns()]


def _row(name: str, found: tuple[list[float], list[float]]) -> Row:
    return row(name, "ms", found[0], VERSION_1, found[1], times=GOAL)


def _start() -> list[Row]:
    def to_initialize(kind: type[Agent]) -> float:
        with kind("--model", "demo/demo") as agent:
            agent.initialize()
            return agent.since_spawn()

    def to_session(kind: type[Agent]) -> float:
        with kind("--model", "demo/demo") as agent, tempfile.TemporaryDirectory() as cwd:
            agent.initialize()
            agent.new_session(cwd)
            return agent.since_spawn()

    with Provider(deltas=20) as provider:

        def to_first_chunk(kind: type[Agent]) -> float:
            with (
                kind("--model", "openai/gpt-5", extra=provider.environment()) as agent,
                tempfile.TemporaryDirectory() as cwd,
            ):
                agent.initialize()
                agent.prompt(agent.new_session(cwd))
                agent.until(CHUNK)
                return agent.since_spawn()

        return [
            _row("v2: spawn → initialize", _both(to_initialize)),
            _row("v2: spawn → session/new", _both(to_session)),
            _row("v2: spawn → first chunk", _both(to_first_chunk, 9)),
        ]


def _both(
    measure: Callable[[type[Agent]], float], rounds: int = ROUNDS
) -> tuple[list[float], list[float]]:
    return pairs(lambda: measure(AgentV2), lambda: measure(Agent), rounds)


class _Warm:
    """An agent of each version with a session."""

    def __init__(self, one: Agent, two: Agent, cwd: str) -> None:
        self._sessions: dict[Agent, str] = {}
        for agent in (one, two):
            agent.initialize()
            self._sessions[agent] = agent.new_session(cwd)

    def turn(self, agent: Agent, then: Callable[[], None] = lambda: None) -> float:
        """Milliseconds of a turn; `then` is called at its first chunk."""
        began = time.perf_counter()
        request = agent.prompt(self._sessions[agent])
        agent.until(CHUNK)
        then()
        ended(agent, request)
        return (time.perf_counter() - began) * 1e3

    def first_chunk(self, agent: Agent) -> float:
        """Milliseconds to the first chunk of a turn, which is then seen through."""
        found: list[float] = []
        began = time.perf_counter()
        self.turn(agent, lambda: found.append((time.perf_counter() - began) * 1e3))
        return found[0]

    def cancel(self, agent: Agent) -> float:
        """Milliseconds from a cancel in mid-answer to the end."""
        found: list[float] = []

        def stop() -> None:
            found.append(time.perf_counter())
            params = {"sessionId": self._sessions[agent]}
            agent.write({"jsonrpc": "2.0", "method": "session/cancel", "params": params})

        self.turn(agent, stop)
        return (time.perf_counter() - found[0]) * 1e3


def _warm(
    deltas: int, measure: Callable[[_Warm, Agent], float], rounds: int = ROUNDS
) -> tuple[list[float], list[float]]:
    with (
        Provider(deltas=deltas) as provider,
        tempfile.TemporaryDirectory() as cwd,
        Agent("--model", "openai/gpt-5", extra=provider.environment()) as one,
        AgentV2("--model", "openai/gpt-5", extra=provider.environment()) as two,
    ):
        warm = _Warm(one, two, cwd)
        for agent in (one, two):
            measure(warm, agent)  # the first one imports
        return pairs(lambda: measure(warm, two), lambda: measure(warm, one), rounds)


def _turns() -> list[Row]:
    return [
        _row("v2: warm prompt → first chunk", _warm(5, _Warm.first_chunk, WARM_ROUNDS)),
        _row("v2: warm short turn → idle", _warm(5, _Warm.turn, WARM_ROUNDS)),
        _row("v2: 2,000 deltas", _warm(2_000, _Warm.turn)),
        _row("v2: cancel in full stream → idle", _warm(200_000, _Warm.cancel, ROUNDS)),
    ]
