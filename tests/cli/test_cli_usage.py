"""`acp-agent usage`: what requests to models took."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import re
import sqlite3
import struct
import subprocess
import termios
from contextlib import closing, suppress
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from acp_agent.cli.usage import Bar, text_bars
from acp_agent.events import (
    AnyEvent,
    ChildWorked,
    ModelAnswered,
    PermissionAsked,
    PermissionDecided,
    SessionStarted,
    Usage,
)
from acp_agent.ids import CallId, SessionId, new_message_id, new_session_id
from acp_agent.session.store.store import Store
from tests.cli.cli_process import acp_agent, environment
from tests.support.warm_parent import shared_parent

HOUR = 3_600_000
NOON = int(datetime.now().astimezone().replace(hour=12, minute=0).timestamp() * 1000)
DAY = 24 * HOUR


def took(model: str = "openai/gpt-5", cost: float | None = 0.5, **usage: int) -> ModelAnswered:
    counts = {"input": 1_000, "output": 100} | usage
    return ModelAnswered(message=new_message_id(), model=model, usage=Usage(**counts), cost=cost)


def keep(home: Path, at: int, *events: AnyEvent, cwd: str = "/srv/one") -> SessionId:
    """A session of a moment in which requests took this."""

    async def write() -> SessionId:
        store = await Store.open(home / "agent" / "sessions.db", clock=lambda: at)
        session = new_session_id()
        await store.create(session, [SessionStarted(cwd=cwd), *events])
        await store.close()
        return session

    return asyncio.run(write())


def table(home: Path, *arguments: str) -> dict[str, list[str]]:
    """The table's rows by their names."""
    done = acp_agent(home, "usage", *arguments)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.split("\n\n")[0].splitlines()
    return {row.split()[0]: row.split()[1:] for row in rows}


def on_terminal(home: Path, columns: int, *arguments: str) -> str:
    """What the command writes to a terminal of so many columns, without its colours."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [*shared_parent().command(), *arguments]
    extra = {"TERM": "dumb"}
    with subprocess.Popen(
        command, stdin=end, stdout=end, stderr=end, env=environment(home, extra), cwd=home
    ):
        os.close(end)
        output = b""
        with suppress(OSError):  # Linux's word for its end
            while piece := os.read(terminal, 65_536):
                output += piece
    os.close(terminal)
    return re.sub(r"\x1b\[[0-9;]*m", "", output.decode()).replace("\r\n", "\n")


def test_each_day_is_summed_up_with_its_cost_and_cached_tokens(tmp_path: Path) -> None:
    keep(tmp_path, NOON, took(cache_read=500), took())
    keep(tmp_path, NOON - DAY, took(reasoning=40))
    today = datetime.now().astimezone().date()
    rows = table(tmp_path)
    assert rows["DAY"] == [
        "REQUESTS",
        "INPUT",
        "CACHED",
        "OUTPUT",
        "REASONING",
        "COST",
        "(USD)",
    ]
    assert rows[today.isoformat()] == ["2", "2,000", "25%", "200", "0", "1.0000"]
    assert rows[(today - timedelta(days=1)).isoformat()][4:] == ["40", "0.5000"]
    assert rows["all"] == ["3", "3,000", "17%", "300", "40", "1.5000"]


def test_cached_tokens_never_exceed_all_tokens(tmp_path: Path) -> None:
    keep(tmp_path, NOON, took(cache_read=9_000))
    assert table(tmp_path)["all"][2] == "100%"


def test_models_and_projects_are_listed_by_descending_cost(tmp_path: Path) -> None:
    keep(tmp_path, NOON, took(cost=0.1), took("anthropic/claude-x", cost=3.0), cwd="/srv/one")
    keep(tmp_path, NOON, took(cost=9.0), cwd=str(tmp_path / "two"))
    assert list(table(tmp_path, "--by", "model"))[1:3] == ["openai/gpt-5", "anthropic/claude-x"]
    assert list(table(tmp_path, "--by", "project"))[1:3] == ["~/two", "/srv/one"]


def test_days_before_the_requested_range_are_left_out(tmp_path: Path) -> None:
    keep(tmp_path, NOON - 3 * DAY, took())
    keep(tmp_path, NOON - 2 * DAY, took())
    assert table(tmp_path, "--days", "3")["all"][0] == "1"


def test_requests_without_a_known_price_are_marked(tmp_path: Path) -> None:
    keep(tmp_path, NOON, took("mine/own", cost=None), took())
    done = acp_agent(tmp_path, "usage", "--by", "model")
    assert "+?: 1 requests have no known price" in done.stdout
    assert next(row.split()[-1] for row in done.stdout.splitlines() if "mine/own" in row) == "?"


def test_the_mark_of_an_unknown_price_is_explained_as_it_appears_in_the_table(
    tmp_path: Path,
) -> None:
    keep(tmp_path, NOON, took(model="mine/one", cost=None))
    output = acp_agent(tmp_path, "usage", "--by", "model").stdout
    assert "\n?: 1 requests have no known price" in output
    assert "+?" not in output
    keep(tmp_path, NOON, took(cost=1.0))
    bars = acp_agent(tmp_path, "usage", "--by", "model").stdout
    assert "\n+?: 1 requests have no known price" in bars
    (bar,) = [line for line in bars.splitlines() if line.startswith("mine/one") and "│" in line]
    assert bar.split("│")[1].strip() == "?"


def test_a_price_that_was_not_stored_is_the_current_price(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "config.toml").write_text(
        '[models."mine/own"]\nprice = { input = 1.0, output = 10.0 }\n'
    )
    keep(tmp_path, NOON, took("mine/own", cost=None))
    assert table(tmp_path, "--by", "model")["mine/own"][-1] == "0.0020"


def test_json_has_every_number_and_the_currency(tmp_path: Path) -> None:
    keep(tmp_path, NOON, took(cache_read=400, cache_write=10, reasoning=5))
    report = json.loads(acp_agent(tmp_path, "usage", "--by", "model", "--json").stdout)
    assert report["currency"] == "USD"
    assert report["rows"] == [
        {
            "name": "openai/gpt-5",
            "requests": 1,
            "input_tokens": 1_000,
            "cached_read_tokens": 400,
            "cached_write_tokens": 10,
            "output_tokens": 100,
            "thought_tokens": 5,
            "cost": 0.5,
            "unpriced_requests": 0,
        }
    ]


def test_questions_are_counted_from_the_same_day(tmp_path: Path) -> None:
    home = tmp_path
    decided = PermissionDecided(call=CallId("c"), allowed=True, by="user", known=True)
    child = ChildWorked(
        session=SessionId("s"),
        call=CallId("t"),
        did=PermissionDecided(call=CallId("d"), allowed=True, by="mode", known=True),
    )
    question = PermissionAsked(call=CallId("c"), options=())
    keep(home, NOON - 5 * DAY, took(), question, decided)
    keep(home, NOON, took(), question, decided, child)
    few, more = (
        json.loads(acp_agent(home, "usage", "--json", "--days", days).stdout)["questions"]
        for days in ("2", "9")
    )
    assert (few["asked"], few["allowed"], few["avoided_by_mode"]) == (1, 1, 1)
    assert (more["asked"], more["allowed"], more["avoided_by_mode"]) == (2, 2, 1)
    assert "\nQuestions: 2 asked (2 allowed" in acp_agent(home, "usage").stdout


def test_the_bars_fit_eighty_columns_and_have_days_without_requests(tmp_path: Path) -> None:
    keep(tmp_path, NOON - 2 * DAY, took(cost=1.0))
    keep(tmp_path, NOON, took(cost=123_456.0))
    done = acp_agent(tmp_path, "usage")
    bars = [line for line in done.stdout.splitlines() if "│" in line]
    assert len(bars) == 3
    assert max(map(len, bars)) == 80
    assert [line.count("█") > 0 for line in bars] == [False, False, True]
    assert "\x1b" not in done.stdout


def test_the_bars_are_ascii_where_the_terminal_has_no_other_characters(tmp_path: Path) -> None:
    keep(tmp_path, NOON - DAY, took(cost=1.0))
    keep(tmp_path, NOON, took(cost=2.0))
    done = acp_agent(tmp_path, "usage", environ={"PYTHONIOENCODING": "ascii"})
    first, second = [line for line in done.stdout.splitlines() if " |" in line]
    assert first.endswith("# $1.0000")
    assert second.count("#") == 2 * first.count("#")
    assert len(second) == 80
    assert "\\u" not in done.stdout


def test_a_narrow_terminal_keeps_the_label_of_each_number(tmp_path: Path) -> None:
    keep(tmp_path, NOON, took(cost=53_083.5), took("anthropic/claude-x", cost=1.0))
    lines = on_terminal(tmp_path, 40, "usage", "--by", "model").splitlines()
    assert max(map(len, lines)) <= 40
    heading, first, second, *_ = lines
    assert heading.split() == ["MODEL", "COST", "(USD)"]
    assert first.split() == ["openai/gpt-5", "53,083.5000"]
    assert second.split() == ["anthropic/claude-x", "1.0000"]
    assert sum("│" in line for line in lines) == 2
    wide = on_terminal(tmp_path, 100, "usage", "--by", "model").splitlines()
    assert "REASONING" in wide[0]


def test_long_names_leave_room_for_bars_in_a_narrow_terminal() -> None:
    bars = [Bar("openrouter/anthropic/claude-sonnet-5", 2.0, "$53,083.5000"), Bar("b", 1.0, "$1")]
    first, second = text_bars(bars, columns=40)
    assert len(first) == 40
    assert "sonnet-5 │" in first
    assert first.count("█") == 2 * second.count("█") > 0


def test_only_a_cost_of_zero_is_shown_as_zero(tmp_path: Path) -> None:
    keep(tmp_path, NOON, took(cost=3e-7))
    assert table(tmp_path)["all"][-1] == "0.0000003"
    assert json.loads(acp_agent(tmp_path, "usage", "--json").stdout)["total"]["cost"] == 3e-7


def test_future_days_are_shown_after_the_clock_was_set_back(tmp_path: Path) -> None:
    keep(tmp_path, NOON, took(cost=1.0))
    keep(tmp_path, NOON + 2 * DAY, took(cost=2.0))
    done = acp_agent(tmp_path, "usage")
    bars = [line for line in done.stdout.splitlines() if "│" in line]
    assert [line.split()[-1] for line in bars] == ["$1.0000", "$0.0000", "$2.0000"]


@pytest.mark.parametrize("damage", ["cost = 9e999", "at = 9223372036854775807", "cost = 'x'"])
def test_a_damaged_row_does_not_hide_the_others(damage: str, tmp_path: Path) -> None:
    keep(tmp_path, NOON, took(), took(), took())
    with closing(sqlite3.connect(tmp_path / "agent" / "sessions.db")) as database:
        database.execute(f"UPDATE usage SET {damage} WHERE rowid = 1")
        database.commit()
    for arguments in ((), ("--by", "model"), ("--json",)):
        done = acp_agent(tmp_path, "usage", *arguments)
        assert (done.returncode, done.stderr) == (0, "")
    assert table(tmp_path)["all"][-2:] in (["0", "1.0000"], ["1.0000", "+?"])


def test_no_file_is_created_without_a_session(tmp_path: Path) -> None:
    done = acp_agent(tmp_path, "usage")
    assert "No model was used since" in done.stdout
    assert not (tmp_path / "agent" / "sessions.db").exists()


@pytest.mark.parametrize("days", ["0", "-1", "many", "99999"])
def test_a_wrong_number_of_days_is_refused(days: str, tmp_path: Path) -> None:
    done = acp_agent(tmp_path, "usage", "--days", days)
    assert done.returncode == 2
    assert done.stderr.endswith("error: argument --days: a number from 1 to 3,660\n")


def test_ten_thousand_requests_are_summed_up_while_a_session_runs(tmp_path: Path) -> None:
    async def use() -> str:
        store = await Store.open(tmp_path / "agent" / "sessions.db")
        session = new_session_id()
        await store.create(session, [SessionStarted(cwd="/work"), *[took() for _ in range(10_000)]])
        # The store stays open, as in a running agent.
        done = await asyncio.to_thread(acp_agent, tmp_path, "usage", "--by", "model", "--json")
        await store.close()
        return done.stdout

    assert json.loads(asyncio.run(use()))["total"]["requests"] == 10_000
