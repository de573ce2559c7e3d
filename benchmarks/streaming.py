"""Turns of a warm agent against the bare socket."""

from __future__ import annotations

import tempfile
import time

from benchmarks.agent import Agent
from benchmarks.provider import Provider
from benchmarks.table import Row, pairs, row

ROUNDS = 31
RAW = "raw socket"


def rows() -> list[Row]:
    """First chunk, short turn, 2,000 pieces, cancel."""
    return [*_short(), _long(), *_cancel()]


def _short() -> list[Row]:
    with Provider(deltas=5) as provider, tempfile.TemporaryDirectory() as cwd:
        with Agent("--model", "openai/gpt-5", extra=provider.environment()) as agent:
            agent.initialize()
            session = agent.new_session(cwd)
            agent.answer(agent.prompt(session))  # warm
            firsts: list[float] = []

            def turn() -> float:
                began = time.perf_counter()
                request = agent.prompt(session)
                agent.until(b"agent_message_chunk")
                firsts.append((time.perf_counter() - began) * 1e3)
                agent.answer(request)
                return (time.perf_counter() - began) * 1e3

            raw_firsts: list[float] = []

            def raw() -> float:
                timing = provider.raw()
                raw_firsts.append(timing.first)
                return timing.end

            turns, raws = pairs(turn, raw, ROUNDS)
    return [
        row("warm prompt → first chunk", "ms", firsts, RAW, raw_firsts, times=1, plus=5),
        row("warm short turn → response", "ms", turns, RAW, raws, plus=10),
    ]


def _long() -> Row:
    with Provider(deltas=2_000) as provider, tempfile.TemporaryDirectory() as cwd:
        with Agent("--model", "openai/gpt-5", extra=provider.environment()) as agent:
            agent.initialize()
            session = agent.new_session(cwd)
            agent.answer(agent.prompt(session))  # warm

            def turn() -> float:
                began = time.perf_counter()
                agent.answer(agent.prompt(session))
                return (time.perf_counter() - began) * 1e3

            turns, raws = pairs(turn, lambda: provider.raw().end, ROUNDS)
    return row("2,000 deltas", "ms", turns, RAW, raws, times=3)


def _cancel() -> list[Row]:
    with Provider(deltas=200_000) as provider, tempfile.TemporaryDirectory() as cwd:
        with Agent("--model", "openai/gpt-5", extra=provider.environment()) as agent:
            agent.initialize()
            session = agent.new_session(cwd)
            times: list[float] = []
            for _ in range(7):
                request = agent.prompt(session)
                agent.until(b"agent_message_chunk")
                began = time.perf_counter()
                agent.write(
                    {
                        "jsonrpc": "2.0",
                        "method": "session/cancel",
                        "params": {"sessionId": session},
                    }
                )
                agent.answer(request)
                times.append((time.perf_counter() - began) * 1e3)
    return [row("cancel in full stream → response", "ms", times, plus=10)]
