"""Recording a session, replaying it, and what is said of an agent that behaves differently."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from acp_agent.agent import turn
from acp_agent.errors import InvalidInputError
from acp_agent.replay.confinement import RefusedError, confined
from acp_agent.replay.record import read_record
from acp_agent.replay.replay import replay
from acp_agent.tools.edit import EditTool
from tests.cli.cli_process import acp_agent
from tests.replay.recorded_sessions import SCENES, Scene, recorded
from tests.support.model_server import Call, answer

RECORDS = Path(__file__).parent / "records"
EDIT = RECORDS / "edit.jsonl"
Json = dict[str, Any]


def lines(path: Path) -> list[Json]:
    """The lines of a record."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def changed(tmp_path: Path, change: Callable[[list[Json]], None]) -> Path:
    """A record like the one of an edit, with a change."""
    record = lines(EDIT)
    change(record)
    path = tmp_path / "record.jsonl"
    path.write_text("\n".join(map(json.dumps, record)) + "\n")
    return path


def test_a_session_is_recorded_and_replayed_on_the_command_line_with_its_tools(
    tmp_path: Path,
) -> None:
    path = recorded("refused", tmp_path)
    done = acp_agent(tmp_path, "replay", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "replays as recorded: 3 turns, 7 requests" in done.stdout
    record = lines(path)
    assert {"read", "edit", "shell"} <= {tool["name"] for tool in record[0]["tools"]}
    assert str(tmp_path) not in path.read_text()
    for tool in record[0]["tools"]:
        if tool["name"] == "edit":
            tool["description"] += " It was once different."
    path.unlink()
    path.write_text("\n".join(map(json.dumps, record)))
    done = acp_agent(tmp_path, "replay", str(path), "--json")
    assert done.returncode == 1
    (difference,) = json.loads(done.stdout)["differences"]
    assert (difference["turn"], difference["request"]) == (1, 1)
    assert difference["field"] == "tools.edit.description"
    assert "\n-" in difference["diff"]
    assert "\n+" in difference["diff"]


def test_a_session_that_ran_in_the_sandbox_is_replayed_without_a_warning(tmp_path: Path) -> None:
    def confine(record: list[Json]) -> None:
        record[0]["confined"] = True
        record[0].get("settings", {}).pop("sandbox", None)

    done = acp_agent(tmp_path, "replay", str(changed(tmp_path, confine)))
    assert done.stderr == ""


def test_remembered_answers_of_earlier_sessions_decide_in_a_replay(tmp_path: Path) -> None:
    record = read_record(recorded("remembered_answers", tmp_path))
    answers = {(grant.kind, grant.pattern, grant.allow) for grant in record.head.grants}
    assert answers == {
        ("edit", "<folder>", True),
        ("command", "make a", True),
        ("command", "make b", True),
        ("command", "cargo build", False),
    }
    assert replay(record).differences == ()
    without = replace(record, head=replace(record.head, grants=()))
    assert "permission_asked" in replay(without).differences[0].diff


def test_settings_and_messages_of_commands_are_replayed(tmp_path: Path) -> None:
    assert replay(read_record(recorded("commands_of_the_agent", tmp_path))).differences == ()


def test_another_result_of_a_tool_is_reported_with_its_turn_and_its_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    title = EditTool.title
    monkeypatch.setattr(EditTool, "title", lambda self, params: title(self, params) + " now")
    (first, *_) = replay(read_record(EDIT)).differences
    assert (first.turn, first.field) == (1, "tool_called.title")
    assert "-Edit greeting.py\n+Edit greeting.py now" in first.diff


def test_a_loop_that_ends_too_early_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def end(*_: object) -> str:
        return "end_turn"

    monkeypatch.setattr(turn, "check_loops", end)
    differences = replay(read_record(EDIT)).differences
    assert (differences[0].turn, differences[0].field) == (1, "model_asked")
    assert "turn_ended" in differences[0].diff


SECRETS = {
    "OPENAI_API_KEY": "sk-proj-" + "Vq3hX9bT7mK2" * 3,
    "ANTHROPIC_API_KEY": "plain-words-that-nobody-would-take-for-a-key",
}
GITHUB = "ghp_" + "aB3dE6gH9jK2mN5p" * 2 + "qRst"


def test_no_secret_of_a_session_is_in_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = SECRETS["ANTHROPIC_API_KEY"]
    spellings = [key, base64.b64encode(key.encode()).decode(), GITHUB, SECRETS["OPENAI_API_KEY"]]

    async def tell(at: Scene) -> None:
        text_with_secrets = " and ".join(spellings)
        at.server.add(
            answer(
                f"You said {text_with_secrets}.",
                Call("shell", {"command": f"echo '{text_with_secrets}' >&2"}),
            ),
            answer(Call("write", {"path": "a.env", "content": f"A={text_with_secrets}\n"})),
            answer(Call("nothing", {key: {GITHUB: text_with_secrets}})),
            answer("Done."),
        )
        await at.say(f"Use {text_with_secrets}.")

    monkeypatch.setitem(SCENES, "tell", tell)
    path = recorded("tell", tmp_path, environ=SECRETS)
    text = path.read_text("utf-8")
    assert "[secret]" in text
    assert [spelling for spelling in spellings if spelling in text] == []
    assert replay(read_record(path)).turns == 1


def test_a_key_known_by_its_format_alone_is_removed_in_every_encoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = GITHUB.encode()
    spellings = [base64.b64encode(key).decode(), key.hex(), GITHUB[::-1]]

    async def tell(at: Scene) -> None:
        at.server.add(answer(f"Not {' or '.join(spellings)}."))
        await at.say(f"My key\n{GITHUB}\nis also {' and '.join(spellings)}.")

    monkeypatch.setitem(SCENES, "tell", tell)
    text = recorded("tell", tmp_path).read_text("utf-8")
    assert [spelling for spelling in (GITHUB, *spellings) if spelling in text] == []


def outside(record: list[Json]) -> None:
    """The files of calls lie outside of the folder."""
    for line in record:
        for part in line.get("event", {}).get("content") or ():
            if part.get("type") == "diff":
                part["path"] = part["path"].replace("<folder>", "/etc/../tmp/acp-agent-outside")
    record[0]["files"] = {"/tmp/acp-agent-outside/a.md": "x", "<data>/../../../outside": "x"}


def commands(record: list[Json]) -> None:
    """The project brings programs along."""
    server = {"mcpServers": {"bad": {"command": "touch", "args": ["/tmp/acp-agent-outside"]}}}
    record[0]["files"] = {"<folder>/.mcp.json": json.dumps(server)}


HOSTILE: dict[str, Callable[[list[Json]], None]] = {"outside": outside, "commands": commands}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_record_changes_nothing_outside(name: str, tmp_path: Path) -> None:
    replay(read_record(changed(tmp_path, HOSTILE[name])))
    assert not Path("/tmp/acp-agent-outside").exists()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["record.jsonl"]


@pytest.mark.parametrize(
    ("act", "ending"),
    [
        (lambda path: subprocess.run(["true"], check=True), "subprocess.Popen"),
        (lambda path: socket.create_connection(("127.0.0.1", 9)), "socket."),
        (lambda path: (path / "a.txt").write_text("x"), "a.txt"),
        (lambda path: (path / "b").mkdir(), "b"),
        (lambda path: path.rename(path.with_name("c")), "c"),
    ],
    ids=["a program", "a connection", "a file", "a folder", "a rename"],
)
def test_a_replay_cannot_start_connect_or_write_elsewhere(
    act: Callable[[Path], object], ending: str, tmp_path: Path
) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "other"
    inside.mkdir()
    outside.mkdir()
    with confined(inside), pytest.raises(RefusedError) as refused:
        act(outside)
    assert ending in str(refused.value)
    (outside / "after.txt").write_text("it is over")


HEAD = b'{"format": "acp-agent record", "version": 1}\n'
WILD = b'{"event": {"event": "config_changed", "option": "mode", "value": "wild"}}\n'
DAMAGED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is not a record"),
    "no record": (HEAD.replace(b"record", b"session"), "is not a record"),
    "newer": (HEAD.replace(b"1", b"9"), "has version 9"),
    "cut": (EDIT.read_bytes()[:-100], "the record is damaged"),
    "no event": (HEAD + b'{"event": {"event": "surprise"}}\n', "the record is damaged"),
    "deep": (HEAD + b"[" * 100_000, "the record is damaged"),
    "settings": (HEAD.replace(b"}", b', "settings": {"providers": {}}}'), "not allowed"),
    "mode": (HEAD + WILD, "settings are wrong"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_the_error_for_a_damaged_record_says_what_is_wrong(name: str, tmp_path: Path) -> None:
    content, why = DAMAGED[name]
    path = tmp_path / "record.jsonl"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=why):
        replay(read_record(path))


def test_a_record_that_ends_in_a_turn_is_replayed_to_its_end(tmp_path: Path) -> None:
    path = changed(tmp_path, lambda record: record.__delitem__(slice(20, None)))
    differences = replay(read_record(path)).differences
    assert {difference.turn for difference in differences} == {1}
