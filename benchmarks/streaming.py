"""Turns of a warm agent against the bare socket."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time

from benchmarks.agent import Agent
from benchmarks.provider import Provider
from benchmarks.table import Row, pairs, row

ROUNDS = 31
RAW = "raw socket"
FILES = {"fs": {"readTextFile": True, "writeTextFile": True}}
HISTORY = (10, 100, 1_000, 3_000)  # turns


def rows() -> list[Row]:
    """First chunk, short turn, a turn after many, 2,000 pieces, cancel."""
    return [*_short(), *_after_many(), _long(), *_cancel()]


def _short() -> list[Row]:
    """In a git repository, whose files the editor offers."""
    with Provider(deltas=5) as provider, tempfile.TemporaryDirectory() as cwd:
        subprocess.run(["git", "init", "-q", cwd], check=True)
        with Agent("--model", "openai/gpt-5", extra=provider.environment()) as agent:
            agent.initialize(FILES)
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
        row("warm prompt → first chunk", "ms", firsts, RAW, raw_firsts, times=1, plus=2),
        row("warm short turn → response", "ms", turns, RAW, raws, plus=10),
    ]


def _after_many() -> list[Row]:
    """A turn of a session that has had so many, against a request as long."""
    found: list[Row] = []
    with Provider(deltas=5) as provider, tempfile.TemporaryDirectory() as cwd:
        with Agent("--model", "openai/gpt-5", extra=provider.environment()) as agent:
            agent.initialize()
            session = agent.new_session(cwd)

            def turn() -> float:
                began = time.perf_counter()
                agent.answer(agent.prompt(session))
                return (time.perf_counter() - began) * 1e3

            had = 0
            for count in HISTORY:
                while had < count:
                    turn()
                    had += 1
                messages = [
                    {"role": role, "content": "hi"} for role in ("user", "assistant")
                ] * count
                body = json.dumps({"model": "any", "stream": True, "messages": messages}).encode()

                def raw(body: bytes = body) -> float:
                    return provider.raw(body).end

                turns, raws = pairs(turn, raw, ROUNDS)
                had += ROUNDS
                found.append(
                    row(f"… after {count:,} turns", "ms", turns, RAW, raws, times=1, plus=10)
                )
    return found


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
