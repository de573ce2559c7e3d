"""`acp-agent view`: a session as a page, and where it is put."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from acp_agent.content import TextBlock
from acp_agent.events import AnyEvent, SessionStarted, TitleChanged, TurnStarted, UserMessage
from acp_agent.ids import SessionId, new_message_id, new_session_id, new_turn_id
from acp_agent.platform.posix import has_browser
from acp_agent.session.store.store import Store
from tests.cli.cli_process import acp_agent


def turn(words: str) -> list[AnyEvent]:
    return [
        TurnStarted(turn=new_turn_id()),
        UserMessage(message=new_message_id(), content=(TextBlock(text=words),)),
        TitleChanged(title=words),
    ]


async def fill(home: Path, words: str, cwd: Path) -> SessionId:
    name = new_session_id()
    store = await Store.open(home / "agent" / "sessions.db")
    try:
        await store.create(name, [SessionStarted(cwd=str(cwd)), *turn(words)])
    finally:
        await store.close()
    return name


async def run(
    home: Path, *arguments: str, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(acp_agent, home, *arguments, environ=environ)


async def test_the_page_is_readable_only_by_its_owner_and_deleted_with_the_session(
    tmp_path: Path,
) -> None:
    name = await fill(tmp_path, "Mend it", tmp_path)
    ran = await run(tmp_path, "view", name)
    path = tmp_path / "agent" / "outputs" / name / "view.html"
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"Wrote session {name} to {path}.\n", "")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "<h1><bdi>Mend it</bdi></h1>" in path.read_text("utf-8")
    path.write_text("an older one")
    await run(tmp_path, "view", name)
    assert "Mend it" in path.read_text("utf-8")
    await run(tmp_path, "sessions", "delete", "--yes", name)
    assert not path.exists()


async def test_without_a_name_the_last_session_of_the_folder_is_shown(tmp_path: Path) -> None:
    first = await fill(tmp_path, "Here", tmp_path)  # where the command is run
    await fill(tmp_path, "Elsewhere", Path("/elsewhere"))
    page = tmp_path / "page.html"
    ran = await run(tmp_path, "view", "--output", str(page))
    assert ran.stdout == f"Wrote session {first} to {page}.\n"
    latest = await run(tmp_path, "view", "latest", "--output", str(tmp_path / "latest.html"))
    assert latest.returncode == 0
    assert "Elsewhere" in (tmp_path / "latest.html").read_text("utf-8")


async def test_no_file_is_ever_overwritten(tmp_path: Path) -> None:
    name = await fill(tmp_path, "Mend it", tmp_path)
    page = tmp_path / "page.html"
    page.write_text("mine")
    for command in (["view", name], ["sessions", "export", name, "--format", "html"]):
        ran = await run(tmp_path, *command, "--output", str(page))
        assert (ran.returncode, ran.stderr) == (
            1,
            f"acp-agent: cannot write {page} (File exists)\n",
        )
    assert page.read_text() == "mine"


async def test_a_missing_session_is_a_clear_error(tmp_path: Path) -> None:
    ran = await run(tmp_path, "view", "sess_none")
    assert (ran.returncode, ran.stderr) == (
        1,
        "acp-agent: there are no sessions yet; start one with `acp-agent chat` or in your editor\n",
    )
    assert not (tmp_path / "agent").exists()  # looking made no store
    await fill(tmp_path, "Elsewhere", Path("/elsewhere"))
    for arguments, words in (
        (
            ["sess_none"],
            "session not found: sess_none; list sessions with `acp-agent sessions list`",
        ),
        (
            [],
            (
                "this folder has no sessions yet; give an ID from `acp-agent sessions list`, "
                "or 'latest'"
            ),
        ),
    ):
        ran = await run(tmp_path, "view", *arguments)
        assert (ran.returncode, ran.stderr) == (1, f"acp-agent: {words}\n")


async def test_a_damaged_session_is_shown_with_a_note_and_a_newer_journal_not_at_all(
    tmp_path: Path,
) -> None:
    name, second = (
        await fill(tmp_path, "Mend it", tmp_path),
        await fill(tmp_path, "Sound", tmp_path),
    )
    journal, page = tmp_path / "agent" / "sessions.db", tmp_path / "page.html"
    command = ("view", "--output", str(page))
    with contextlib.closing(sqlite3.connect(journal)) as store, store:
        changed = store.execute(
            "UPDATE events SET body = substr(body, 1, 20) WHERE body LIKE '%Mend it%'"
        )
        assert changed.rowcount
    damaged = journal.read_bytes()
    ran = await run(tmp_path, *command, name)
    assert ran.returncode == 0, ran.stderr
    assert "a part of the conversation is missing" in page.read_text()
    page.unlink()
    assert (await run(tmp_path, *command, second)).returncode == 0  # what is sound can be looked at
    page.unlink()
    assert journal.read_bytes() == damaged
    with contextlib.closing(sqlite3.connect(journal)) as store:
        store.execute("PRAGMA user_version = 999")
    ran = await run(tmp_path, *command, second)
    assert ran.returncode == 1
    assert "acp-agent: a newer version of acp-agent wrote the journal" in ran.stderr
    assert not page.exists()


async def test_a_session_that_an_agent_is_writing_is_shown_up_to_its_last_event(
    tmp_path: Path,
) -> None:
    name = await fill(tmp_path, "Begin", tmp_path)
    store = await Store.open(tmp_path / "agent" / "sessions.db")
    lease = store.lease(name)
    try:
        ran = await run(tmp_path, "sessions", "export", name, "--format", "html")
    finally:
        lease.release()
        await store.close()
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Running" in ran.stdout


async def test_the_export_is_the_same_page_without_the_users_keys(tmp_path: Path) -> None:
    key = "a-key-of-no-known-form"
    name = await fill(tmp_path, f"My key is {key}", tmp_path)
    environ = {"OPENAI_API_KEY": key}
    ran = await run(tmp_path, "sessions", "export", name, "--format", "html", environ=environ)
    assert ran.stdout.startswith("<!doctype html>\n")
    assert "My key is [secret]" in ran.stdout
    assert key not in ran.stdout


async def test_the_page_is_in_the_language_of_the_user(tmp_path: Path) -> None:
    name = await fill(tmp_path, "Mend it", tmp_path)
    environ = {"ACP_AGENT_LANGUAGE": "zh"}
    ran = await run(tmp_path, "sessions", "export", name, "--format", "html", environ=environ)
    assert '<html lang="zh-Hans">' in ran.stdout
    assert "第 1 轮" in ran.stdout


async def test_the_browser_is_opened_on_request(tmp_path: Path) -> None:
    name = await fill(tmp_path, "Mend it", tmp_path)
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}\n')
    browser.chmod(0o700)
    environ = {"BROWSER": f"{browser} %s"}
    await run(tmp_path, "view", name, environ=environ)  # nobody at a terminal
    await run(tmp_path, "view", name, "--no-open", environ=environ)
    assert not opened.exists()
    ran = await run(tmp_path, "view", name, "--open", environ=environ)
    assert ran.returncode == 0, ran.stderr
    path = tmp_path / "agent" / "outputs" / name / "view.html"
    assert opened.read_text() == path.as_uri()
    ran = await run(tmp_path, "view", name, "--open", environ={"BROWSER": "/bin/false"})
    assert ran.stderr == "acp-agent: could not open a browser\n"
    assert str(path) in ran.stdout


@pytest.mark.parametrize(
    ("environ", "platform", "available"),
    [
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "linux", False),
        ({}, "darwin", True),
        ({"SSH_CONNECTION": "1 2"}, "darwin", False),
        ({"SSH_CONNECTION": "1 2", "DISPLAY": ":10"}, "linux", True),
        ({"SSH_CONNECTION": "1 2", "BROWSER": "lynx"}, "linux", True),
    ],
)
def test_a_browser_is_available_where_a_window_can_be_shown(
    environ: Mapping[str, str], platform: str, available: bool
) -> None:
    assert has_browser(environ, platform) is available
