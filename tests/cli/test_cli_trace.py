"""The trace of the wire."""

from __future__ import annotations

import json
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from acp_agent.cli.logs import Background
from acp_agent.cli.trace import STRING_LIMIT, Trace
from acp_agent.errors import ConfigError
from acp_agent.workspace.scrub import scrub

KEY = "a-key-of-no-known-form-0123456789"


def scrub_known(text: str) -> str:
    return scrub(text, [KEY])


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_both_directions_are_recorded_in_order_with_their_times(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    trace = Trace(path, scrub_known)
    before = time.time()
    for number in range(500):
        trace("in" if number % 2 else "out", b'{"jsonrpc":"2.0","id":%d}\n' % number)
    trace.close()
    recorded = records(path)
    assert [entry["msg"] for entry in recorded] == [{"jsonrpc": "2.0", "id": n} for n in range(500)]
    assert [entry["dir"] for entry in recorded] == ["out", "in"] * 250
    times = [entry["t"] for entry in recorded]
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= time.time()


def test_the_file_is_readable_only_by_its_owner_even_if_it_existed(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"old":1}\n')
    path.chmod(0o644)
    trace = Trace(path, scrub_known)
    trace("in", b"{}")
    trace.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.get("old") for entry in records(path)] == [1, None]


# What an editor or the agent may send, with a secret in every place that can hold one.
MESSAGES = [
    {"params": {"mcpServers": [{"name": "x", "env": [{"name": "ODD", "value": "hunter2"}]}]}},
    {"params": {"mcpServers": [{"headers": [{"name": "X-Mine", "value": "hunter2"}]}]}},
    {"params": {"env": {"ODD": "hunter2"}, "headers": {"authorization": "hunter2"}}},
    {"params": {"_meta": {"api_key": "hunter2", "apiKey": "hunter2", "x-api-key": "hunter2"}}},
    {"result": {"token": "hunter2", "nested": {"access_token": {"a": ["hunter2"]}}}},
    {"params": {"password": "hunter2", "Authorization": "Bearer hunter2", "secret": 4711}},
    {"params": {"prompt": [{"type": "text", "text": f"my key is {KEY}, keep it"}]}},
    {"params": {"text": "AKIAIOSFODNN7EXAMPLE and sk-ant-api03-" + "A" * 95}},
]


@pytest.mark.parametrize("message", MESSAGES, ids=range(len(MESSAGES)))
def test_no_secret_is_recorded(tmp_path: Path, message: dict[str, object]) -> None:
    path = tmp_path / "trace.jsonl"
    trace = Trace(path, scrub_known)
    trace("in", json.dumps(message).encode())
    trace.close()
    text = json.dumps(records(path)[0]["msg"])  # without the time, whose digits may be any
    for secret in ("hunter2", "4711", KEY, "AKIAIOSFODNN7EXAMPLE", "AAAAAAAA"):
        assert secret not in text
    assert "[secret]" in text


def test_values_that_only_sound_secret_are_recorded(tmp_path: Path) -> None:
    message = {
        "usage": {"inputTokens": 12, "max_tokens": 5},
        "sessionId": "sess_019ab",
        "env": [{"name": "PATH", "value": ""}],
        "token": None,
        "title": "Read token.py",
    }
    path = tmp_path / "trace.jsonl"
    trace = Trace(path, scrub_known)
    trace("out", json.dumps(message).encode())
    trace.close()
    assert records(path)[0]["msg"] == message


@pytest.mark.parametrize("line", [b"no json", b'{"a":', b"\xff\xfe", b"[" * 5_000, b""])
def test_lines_that_are_no_json_are_recorded_as_text(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "trace.jsonl"
    trace = Trace(path, scrub_known)
    trace("in", line)
    trace("in", b'{"next":1}')
    trace.close()
    first, second = records(path)
    assert first["raw"] == line.decode("utf-8", "replace")
    assert second["msg"] == {"next": 1}


def test_a_long_text_is_shortened_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    trace = Trace(path, scrub_known)
    trace("in", json.dumps({"data": "x" * (STRING_LIMIT + 7), "token": "y"}).encode())
    trace.close()
    data = records(path)[0]["msg"]["data"]
    assert data == "x" * STRING_LIMIT + "... (7 more characters)"


def test_a_secret_on_the_cut_leaves_no_half(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    trace = Trace(path, scrub_known)
    text = "x" * (STRING_LIMIT - 10) + KEY + "y" * 50
    trace("in", json.dumps({"data": text}).encode())
    trace.close()
    assert KEY[:10] not in path.read_text()


def test_a_full_trace_says_that_messages_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    trace = Trace(path, scrub_known, limit_bytes=2_000)
    for number in range(1_000):
        trace("in", b'{"id":%d}' % number)
    trace.close()
    recorded = records(path)
    assert path.stat().st_size <= 2_100
    assert [entry["msg"]["id"] for entry in recorded[:-1]] == list(range(len(recorded) - 1))
    assert "full" in recorded[-1]["note"]


@pytest.mark.parametrize("kind", ["folder", "pipe", "missing folder", "device"])
def test_an_invalid_trace_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    import os

    path = tmp_path / "trace"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/null")
    else:
        path = tmp_path / "none" / "trace"
    mode = path.stat().st_mode if path.exists() else None
    with pytest.raises(ConfigError, match="cannot write the trace"):
        Trace(path, scrub_known)
    assert (path.stat().st_mode if path.exists() else None) == mode


def test_a_slow_disk_delays_nothing_and_dropped_messages_are_counted() -> None:
    release, is_consuming = threading.Event(), threading.Event()
    consumed: list[int] = []
    lost: list[int] = []

    def write(items: list[int]) -> None:
        is_consuming.set()
        release.wait(100)
        consumed.extend(items)

    queue: Background[int] = Background("test", write, lost.append, limit_bytes=50)
    queue.put(0, 10)
    assert is_consuming.wait(30)
    started = time.monotonic()
    for number in range(1, 11):
        queue.put(number, 10)
    assert time.monotonic() - started < 50
    assert not queue.flush(0.01)
    release.set()
    assert queue.flush(30)
    queue.close(30)
    assert consumed == [0, 1, 2, 3, 4, 5]
    assert lost == [5]


def test_a_message_over_the_limit_is_written_if_nothing_waits() -> None:
    consumed: list[int] = []
    queue: Background[int] = Background("test", consumed.extend, lambda _: None, limit_bytes=5)
    queue.put(1, 1_000)
    queue.close(30)
    queue.put(2, 1)
    assert consumed == [1]
