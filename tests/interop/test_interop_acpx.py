"""acpx, a command-line client from npm, runs one-shot turns."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from tests.support.agent_process import environment
from tests.support.node import acpx, run_node
from tests.support.relay import judge, relay_command

ROOT = str(Path(__file__).resolve().parents[2])


async def run_acpx(
    home: Path, cwd: Path, *flags: str, prompt: str, interrupt_when: Path | None = None
) -> tuple[int, list[Any]]:
    """The exit status of `acpx exec`, and the messages that it printed."""
    program, script = acpx()
    record = home / "record"
    agent = relay_command(record, [sys.executable, "-m", "acp_agent", "--model", "demo/demo"])
    status, out, err = await run_node(
        script,
        "--agent",
        shlex.join(agent),
        "--cwd",
        str(cwd),
        "--format",
        "json",
        "--json-strict",
        "--timeout",
        "40",
        *flags,
        "exec",
        prompt,
        environ=environment(home) | {"PYTHONPATH": ROOT},
        node_path=program,
        interrupt_when=None if interrupt_when is None else interrupt_when.exists,
    )
    judge(record)
    assert out, err
    return status, [json.loads(line) for line in out.splitlines() if line.strip()]


def stops(messages: list[Any]) -> list[str]:
    return [
        message["result"]["stopReason"]
        for message in messages
        if isinstance(message.get("result"), dict) and "stopReason" in message["result"]
    ]


async def test_an_approved_edit_is_made(home: Path, workspace_repo: Path) -> None:
    status, messages = await run_acpx(
        home, workspace_repo, "--approve-all", prompt="replace Hello with Goodbye in greeting.py"
    )
    assert status == 0
    assert stops(messages) == ["end_turn"]
    assert "Goodbye" in (workspace_repo / "greeting.py").read_text()


async def test_a_denied_command_does_not_run(home: Path, workspace_repo: Path) -> None:
    _, messages = await run_acpx(home, workspace_repo, "--deny-all", prompt="$ touch made.txt")
    assert len(stops(messages)) == 1
    assert not (workspace_repo / "made.txt").exists()


async def test_an_interrupt_cancels_the_turn(home: Path, workspace_repo: Path) -> None:
    begun = workspace_repo / "begun.txt"
    _, messages = await run_acpx(
        home,
        workspace_repo,
        "--approve-all",
        prompt="$ touch begun.txt; sleep 60",
        interrupt_when=begun,
    )
    assert "session/cancel" in (home / "record").read_text()
    assert stops(messages) == stops(judge(home / "record")) == ["cancelled"]
