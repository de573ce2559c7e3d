"""From the spawn of the process to its first answers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time

from benchmarks.agent import Agent, clean_environment
from benchmarks.provider import Provider
from benchmarks.table import Row, pairs, row

ROUNDS = 15
BARE = "python -c ''"


def bare_interpreter() -> float:
    """Milliseconds that the interpreter takes to do nothing."""
    with tempfile.TemporaryDirectory() as home:
        environment = clean_environment(home)
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", ""], check=True, env=environment)
        return (time.perf_counter() - began) * 1e3


def to_initialize() -> float:
    """Milliseconds to the response of `initialize`."""
    with Agent("--model", "demo/demo") as agent:
        agent.initialize()
        return agent.since_spawn()


def to_session() -> float:
    """Milliseconds to the response of `session/new`."""
    with Agent("--model", "demo/demo") as agent, tempfile.TemporaryDirectory() as cwd:
        agent.initialize()
        agent.new_session(cwd)
        return agent.since_spawn()


def rows() -> list[Row]:
    """The start-up rows."""
    initialize = pairs(to_initialize, bare_interpreter, ROUNDS)
    session = pairs(to_session, bare_interpreter, ROUNDS)
    with Provider(deltas=20) as provider:

        def to_first_chunk() -> float:
            with (
                Agent("--model", "openai/gpt-5", extra=provider.environment()) as agent,
                tempfile.TemporaryDirectory() as cwd,
            ):
                agent.initialize()
                agent.prompt(agent.new_session(cwd))
                agent.until(b"agent_message_chunk")
                return agent.since_spawn()

        chunk = pairs(to_first_chunk, bare_interpreter, 7)
    return [
        row("spawn → initialize", "ms", initialize[0], BARE, initialize[1], times=2.5),
        row("spawn → session/new", "ms", session[0], BARE, session[1], times=8),
        row("spawn → first chunk", "ms", chunk[0], BARE, chunk[1], times=40),
    ]
