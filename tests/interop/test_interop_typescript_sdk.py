"""The official TypeScript SDK's client drives whole turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.interop.seen_updates import of, text
from tests.support.agent_process import environment
from tests.support.model_server import ModelServer, Stall, answer
from tests.support.node import run_node
from tests.support.relay import judge, relay_command
from tests.support.warm_parent import shared_parent

ROOT = str(Path(__file__).resolve().parents[2])
DEMO = ("--model", "demo/demo")


async def drive(
    home: Path,
    cwd: Path,
    *steps: dict[str, Any],
    flags: tuple[str, ...] = DEMO,
    press: str = "allow_once",
    environ: dict[str, str] | None = None,
) -> dict[str, Any]:
    """What the client saw; the agent's lines have been judged."""
    records = home / "record"
    command = relay_command(records, [*shared_parent().command(), *flags])
    variables = environment(home, environ) | {"PYTHONPATH": ROOT}
    task = {
        "command": command[0],
        "arguments": command[1:],
        "env": variables,
        "cwd": str(cwd),
        "press": press,
        "steps": steps,
    }
    status, out, err = await run_node("sdk_client.mjs", json.dumps(task), environ=variables)
    assert status == 0, err
    if not any("load" in step for step in steps):
        judge(records)
    seen = json.loads(out)
    assert seen["exit"] == 0
    assert isinstance(seen, dict)
    return seen


async def test_an_edit_is_confirmed_and_applied_through_the_client(
    home: Path, workspace_repo: Path
) -> None:
    seen = await drive(
        home, workspace_repo, {"prompt": "replace Hello with Goodbye in greeting.py"}
    )
    assert seen["initialized"]["protocolVersion"] == 1
    assert seen["stops"] == ["end_turn"]
    assert len(seen["asked"]) == 1
    assert seen["written"] == [str(workspace_repo / "greeting.py")]
    assert "Goodbye" in (workspace_repo / "greeting.py").read_text()
    assert of(seen["updates"], "tool_call_update")[-1]["status"] == "completed"


async def test_a_refused_command_does_not_run(home: Path, workspace_repo: Path) -> None:
    seen = await drive(home, workspace_repo, {"prompt": "$ touch made.txt"}, press="reject_once")
    assert seen["stops"] == ["end_turn"]
    assert len(seen["asked"]) == 1
    assert not (workspace_repo / "made.txt").exists()


async def test_a_cancel_ends_a_running_command_and_the_session_continues(
    home: Path, workspace_repo: Path
) -> None:
    seen = await drive(
        home,
        workspace_repo,
        {"prompt": "$ touch begun.txt; sleep 60", "cancelWhen": "in_progress"},
        {"prompt": "read README.md"},
    )
    assert seen["stops"] == ["cancelled", "end_turn"]
    assert "# Sample" in text(seen["updates"])


async def test_a_cancel_ends_a_streaming_answer(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.add(answer("The first words ", Stall(), "never come."), answer("Hello again."))
    seen = await drive(
        home,
        workspace_repo,
        {"prompt": "Talk.", "cancelWhen": "first words"},
        {"prompt": "Hello?"},
        flags=(),
        environ=model_server.environ("anthropic"),
    )
    assert seen["stops"] == ["cancelled", "end_turn"]
    assert text(seen["updates"]) == "The first words Hello again."


async def test_a_loaded_session_replays_the_live_updates(home: Path, workspace_repo: Path) -> None:
    seen = await drive(
        home, workspace_repo, {"prompt": "read README.md and greeting.py"}, {"load": True}
    )
    live, replayed = seen["updates"], seen["replayed"]
    assert text(replayed) == text(live)
    assert of(replayed, "tool_call") == of(live, "tool_call")
    assert len(of(live, "tool_call")) == 2
