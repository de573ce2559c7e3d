"""What earlier versions saved opens in this one: a journal, each kind of event, a configuration.

The files in `earlier_versions/` were written by the version of their date and are never changed.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import msgspec
import pytest

from acp_agent.session.store.event_codec import decode_event, encode_event
from acp_agent.session.store.records import UnknownEvent
from tests.cli.cli_process import acp_agent
from tests.support.agent_process import StartAgent
from tests.support.framing import Json
from tests.support.model_server import ModelServer, answer
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2

SAVED = Path(__file__).parent / "earlier_versions"
SESSION = "sess_01a205cef46a7000945ed07a6a21221c"
MODEL = ("--model", "openai/gpt-5")


@pytest.fixture
def project(home: Path, tmp_path: Path) -> Path:
    """The folder of the saved session, whose journal is in the data folder of `home`."""
    folder = tmp_path / "project"
    folder.mkdir()
    saved = (SAVED / "2026-11.sql").read_text("utf-8").replace("/project", str(folder))
    data = home / "acp-agent"
    data.mkdir(mode=0o700)
    with sqlite3.connect(data / "sessions.db") as database:
        database.executescript(saved)
    database.close()
    return folder


async def test_a_session_of_an_earlier_version_is_replayed_and_continues(
    agent: StartAgent, model_server: ModelServer, project: Path
) -> None:
    running = await agent(*MODEL, environ=model_server.environ("openai"))
    await running.initialize()
    load: Json = {"sessionId": SESSION, "cwd": str(project), "mcpServers": []}
    await running.request("session/load", load)
    shown = [shape(update) for update in running.updates(SESSION)]
    expected = json.loads((SAVED / "2026-11-replay.json").read_text("utf-8"))
    assert [line for line in shown if line] == expected
    model_server.add(answer("Fourth answer."))
    assert (await running.prompt(SESSION, "and now?"))["stopReason"] == "end_turn"
    asked = model_server.requests[0].body
    assert "once more" in asked.decode()
    assert "Third answer." in asked.decode()


async def test_a_session_saved_by_an_earlier_version_is_replayed_over_version_2(
    agent: StartAgent, model_server: ModelServer, project: Path
) -> None:
    running = await agent(*MODEL, editor=EditorV2(), environ=model_server.environ("openai"))
    client = V2Client(running)
    await client.initialize()
    view = await client.resume(SESSION, project, replay=True)
    assert "All done ✓ 好." in view.text()
    assert "Third answer." in view.text()
    assert {call["status"] for call in view.calls.values()} == {"completed", "failed"}


def test_every_kind_of_event_of_an_earlier_version_is_read_and_written_unchanged() -> None:
    for line in (SAVED / "2026-11-events.jsonl").read_bytes().splitlines():
        event = decode_event(line)
        assert not isinstance(event, UnknownEvent), line
        assert msgspec.json.decode(encode_event(event)) == msgspec.json.decode(line)


def test_a_configuration_written_for_an_earlier_version_is_still_used(home: Path) -> None:
    folder = home / "agent"
    folder.mkdir()
    (folder / "config.toml").write_bytes((SAVED / "2026-11-config.toml").read_bytes())
    shown = acp_agent(home, "config", "show")
    assert shown.returncode == 0, shown.stderr
    for setting in (
        'model = "openai/gpt-5.2"',
        'api_key_env = "COMPANY_MODELS_KEY"',
        "day_cost = 20.0",
        'fallback_models = ["anthropic/claude-sonnet-5-5"]',
        'titles = "prompt"',
        "stall_timeout = 120.0",
        "context_window = 262144",
        "threshold = 0.5",
    ):
        assert setting in shown.stdout


def shape(update: Json) -> list[str]:
    """What must not change of an update: its kind, what it belongs to, its state."""
    kind = update["sessionUpdate"]
    if kind in {"available_commands_update", "config_option_update", "current_mode_update"}:
        return []
    names = (update.get(key) or "" for key in ("messageId", "toolCallId", "kind", "status"))
    return [kind, *names]
