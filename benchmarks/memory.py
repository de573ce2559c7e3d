"""Memory of the process, and what one more session adds."""

from __future__ import annotations

import tempfile
import time

from benchmarks.agent import Agent
from benchmarks.provider import Provider
from benchmarks.table import Row, row

SESSIONS = 50


def rows() -> list[Row]:
    """Memory after session/new and after turns, and one more session."""
    fresh: list[float] = []
    worked: list[float] = []
    more: list[float] = []
    times: list[float] = []
    with Provider(deltas=2_000) as provider, tempfile.TemporaryDirectory() as cwd:
        for _ in range(3):
            with Agent("--model", "openai/gpt-5", extra=provider.environment()) as agent:
                agent.initialize()
                session = agent.new_session(cwd)
                fresh.append(agent.pss())
                for _ in range(3):
                    agent.answer(agent.prompt(session))
                worked.append(agent.pss())
                before = agent.pss()
                began = time.perf_counter()
                for _ in range(SESSIONS):
                    agent.new_session(cwd)
                times.append((time.perf_counter() - began) * 1e3 / SESSIONS)
                more.append((agent.pss() - before) / SESSIONS)
    return [
        row("memory (PSS) after session/new", "MB", fresh, plus=40),
        row("memory (PSS) after turns, one SDK", "MB", worked, plus=90),
        row("one more session: memory", "MB", more, plus=0.3),
        row("one more session: time", "ms", times, plus=5),
    ]
