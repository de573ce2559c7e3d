"""A second agent as a program that works for the first, as clients of all kinds see it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.server.children_client import ClientOf, Kind, question_title
from tests.server.proxy_chain import PROXY_CHAIN
from tests.server.server_session import EDIT
from tests.support.agent_process import config_file
from tests.support.model_server import Call, ModelServer, answer
from tests.support.warm_parent import shared_parent

ROOT = str(Path(__file__).resolve().parents[2])
TITLE = "other: Change it"
TASK = Call("task", {"agent": "other", "title": "Change it", "task": "Greet otherwise."})


def configure(home: Path, folder: Path, command: Sequence[str]) -> None:
    """Let a second agent, with a home of its own, be one that tasks are given to."""
    second = home / "second"
    second.mkdir()
    trusted = f'trusted_folders = ["{folder}"]\n'
    (second / "config.toml").write_text(trusted)
    environ = {"PYTHONPATH": os.pathsep.join([ROOT, *sys.path]), "ACP_AGENT_HOME": str(second)}
    arguments = json.dumps([*command[1:], "--model", "openai/gpt-5"])
    values = ", ".join(f"{name} = {json.dumps(value)}" for name, value in environ.items())
    config_file(
        home,
        f'{trusted}[agents.other]\ncommand = "{command[0]}"\n'
        f'args = {arguments}\nenv = {{ {values} }}\nenv_vars = ["OPENAI_API_KEY"]\n',
    )


@pytest.mark.parametrize(
    ("kind", "command"),
    [("v1", ()), ("v1 with subagents", PROXY_CHAIN)],
    ids=["a client without subagents", "one with subagents, and a chain of proxies"],
)
async def test_a_second_agent_changes_a_file_by_the_first_ones_client(
    make_client: ClientOf,
    model_server: ModelServer,
    workspace_repo: Path,
    home: Path,
    kind: Kind,
    command: Sequence[str],
) -> None:
    configure(home, workspace_repo, command or shared_parent().command())
    model_server.add(answer(TASK))
    model_server.add(answer("I will change it.", EDIT), answer("It greets otherwise."))
    model_server.add(answer("Done."))
    client = await make_client(kind)
    assert await client.say() == "end_turn"
    start, change = client.wire.editor.asked
    assert question_title(start) == TITLE
    assert "other: Edit greeting.py" in question_title(change)
    assert "Good day" in (workspace_repo / "greeting.py").read_text() + str(
        client.wire.editor.writes
    )
    card = client.cards(client.session)[TITLE]
    assert card["status"] == "completed"
    assert "It greets otherwise." in str(card["content"])
    live = client.told()
    if client.knows_children:
        child = client.child()
        assert "I will change it." in str(live[child])
        assert "Edit greeting.py" in str(client.cards(child))
    else:
        assert "Edit greeting.py" in str(card["content"])
    await client.wire.stop()
    second_client = await make_client(kind, new=False)
    await second_client.reopen(client.session)
    assert [*second_client.told()] == [*live]
