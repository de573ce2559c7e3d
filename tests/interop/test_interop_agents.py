"""Agents that others made work for a session of ours, each with a scripted model.

`make test-peers` installs them from npm, 700 MB; `make test` runs those that are installed.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.model_server import Call, ModelServer, Reply, Request, answer
from tests.support.npm_packages import FOLDER
from tests.support.open_session import Desk, open_desk

AGENTS: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "agents" / "agents.toml").read_text())
PROGRAMS = FOLDER / "agents" / "node_modules" / ".bin"
TASK = Call("task", {"agent": "other", "title": "Fix it", "task": "Greet otherwise."})


def filled(value: Any, words: Mapping[str, str]) -> Any:
    """A value with what stands in braces filled in, wherever it is."""
    if isinstance(value, dict):
        return {filled(key, words): filled(one, words) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, words) for one in value]
    if isinstance(value, str):
        for name, word in words.items():
            value = value.replace(f"{{{name}}}", word)
    return value


def config(agent: Mapping[str, Any]) -> str:
    values = ", ".join(f"{name} = {json.dumps(value)}" for name, value in agent["env"].items())
    return (
        f'[agents.other]\ncommand = "{agent["command"]}"\ntimeout = 60\n'
        f'mode = "{agent.get("mode", "")}"\n'
        f"args = {json.dumps(agent.get('args', []))}\nenv = {{ {values} }}\n"
    )


@pytest.mark.parametrize("name", AGENTS)
async def test_it_changes_a_file_once_the_user_agrees(
    tmp_path: Path, model_server: ModelServer, name: str
) -> None:
    file = tmp_path / "project" / "greeting.txt"
    home = tmp_path / "peer"
    words = {
        "home": str(home), "url": model_server.url, "bin": str(PROGRAMS), "file": str(file),
    }  # fmt: skip
    agent = filled(AGENTS[name], words)
    if not Path(agent["command"]).exists():
        pytest.skip("not installed: make test-peers")
    for path, text in agent["files"].items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    home.mkdir(exist_ok=True)
    file.parent.mkdir()
    file.write_text("Hello, world\n")
    calls = [
        Call(one["name"], one["arguments"], f"call_{n}") for n, one in enumerate(agent["calls"])
    ]

    def reply(request: Request) -> Reply:
        if request.json.get("model") == "gpt-5":
            ended = any(one["role"] == "tool" for one in request.json["messages"])
            return answer("Done.") if ended else answer(TASK)
        if not request.json.get("tools"):
            return answer("A title")
        return answer(calls.pop(0)) if calls else answer("It is fixed.")

    model_server.otherwise = reply
    environ = {"PATH": os.environ["PATH"]}
    async with open_desk(tmp_path, model_server, config=config(agent), environ=environ) as desk:
        await _works(desk, agent["asked"])
    assert file.read_text() == "Goodbye, world\n"


async def _works(desk: Desk, asked: str) -> None:
    turn = await desk.begin("Go")
    assert await turn.result() == "end_turn"
    assert "It is fixed." in desk.results()[0]
    start, change = desk.editor.asked
    assert start.title == "other: Fix it"
    assert change.title.startswith("other: ")
    assert asked in change.title
