"""What a process starts with stays, and Python's collector of cycles does not look through it."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_agent.session import start_up
from tests.support.agent_process import environment
from tests.support.open_session import Desk

USUAL = (700, 10, 10)  # Python's own; another test of the process may have raised it

AGENT = """
import gc, os
from acp_agent.cli.serve import serve
from acp_agent.session import start_up
start_up.freeze_objects = lambda: None
gc.callbacks.append(lambda phase, info: os.write(2, b"The collector looked. "))
serve(["--model", "demo/demo"])
"""


ANSWER = """
import os, sys
from acp_agent.cli import serve

answer_first_line = serve.answer_first_line

def answer_and_report(*descriptors):
    opening = answer_first_line(*descriptors)
    slow = {"asyncio", "logging", "msgspec", "pathlib", "subprocess"}
    os.write(2, f"imported: {sorted(slow & set(sys.modules))}".encode())
    return opening

serve.answer_first_line = answer_and_report
serve.serve(["--model", "demo/demo"])
"""


@pytest.fixture(autouse=True)
def _usual_threshold(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin with the usual threshold, and leave this process's collector as it was."""
    before = gc.get_threshold()
    monkeypatch.setattr(start_up, "_DEFAULT_THRESHOLD", USUAL)
    gc.set_threshold(*USUAL)
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_initialize_is_answered_before_anything_slow_is_imported(tmp_path: Path) -> None:
    request = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
    ended = subprocess.run(
        [sys.executable, "-c", ANSWER],
        input=f"{json.dumps(request)}\n".encode(),
        capture_output=True,
        env=environment(tmp_path),
        check=True,
        timeout=60,
    )
    assert json.loads(ended.stdout)["id"] == 0
    assert ended.stderr == b"imported: []"


def test_the_collector_does_not_look_before_a_session_is_open(tmp_path: Path) -> None:
    requests = [
        ("initialize", {"protocolVersion": 1, "clientCapabilities": {}}),
        ("session/new", {"cwd": str(tmp_path), "mcpServers": []}),
    ]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"
        for number, (method, params) in enumerate(requests)
    ]
    done = subprocess.run(
        [sys.executable, "-c", AGENT],
        input="".join(lines),
        env=environment(tmp_path / "home"),
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert '"sessionId"' in done.stdout
    assert done.stderr == ""


def test_later_turns_check_for_new_files() -> None:
    start_up.raise_gc_threshold()
    made_before: list[list[int]] = [[] for _ in range(3)]
    start_up.freeze_objects()
    assert gc.get_threshold() == USUAL
    assert not any(one is made_before for one in gc.get_objects())
    made_since: list[object] = []
    assert any(one is made_since for one in gc.get_objects())


def test_the_next_prepared_session_has_the_changes_made_since() -> None:
    start_up.raise_gc_threshold()
    start_up.freeze_objects()
    made_since: list[object] = []
    start_up.freeze_objects()
    assert any(one is made_since for one in gc.get_objects())


async def test_start_up_is_over_when_the_first_session_is_closed_before_it_was_ready(
    desk: Desk,
) -> None:
    start_up.raise_gc_threshold()
    desk.session.opened([])
    await asyncio.sleep(0)
    await desk.session.close()
    assert gc.get_threshold() == USUAL


async def test_start_up_is_over_when_the_first_prompt_could_run(desk: Desk) -> None:
    start_up.raise_gc_threshold()
    assert gc.get_threshold() != USUAL
    desk.session.opened([])
    async with asyncio.timeout(60):
        while desk.session.core.background:
            await asyncio.sleep(0)
    assert gc.get_threshold() == USUAL
