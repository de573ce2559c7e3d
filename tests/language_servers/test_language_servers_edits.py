"""The problems that an edit causes come back with it."""

from __future__ import annotations

import asyncio
import sysconfig
from pathlib import Path
from typing import cast

import pytest

from acp_agent.content import ContentPart, TextBlock
from acp_agent.events import NoticeShown, ToolEnded
from acp_agent.language_servers import diagnostics, edit_checks, service
from acp_agent.language_servers.service import LanguageServers
from acp_agent.session.turns.parts import TurnTools
from tests.language_servers.conftest import scripted_server, until_reported
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.open_session import Desk, open_desk


async def ready(desk: Desk, name: str) -> None:
    """Let the servers of a file start, and wait until they know its problems."""
    tools = cast("TurnTools", (await desk.session.resources.for_turn()).tools)
    path = (desk.folder / name).resolve()
    tools.edit_checks.record_read(path)
    async with asyncio.timeout(60):
        while not _is_known(tools.edit_checks.servers, path):
            await asyncio.sleep(0.01)


def _is_known(servers: LanguageServers | None, path: Path) -> bool:
    if servers is None or servers._tasks:
        return False
    running = [server.running for server in servers.servers_for(path)]
    return bool(running) and None not in running


def edit(old: str, new: str, path: str = "a.txt") -> Call:
    return Call("edit", {"path": path, "old": old, "new": new})


async def test_the_problems_of_a_server_that_never_pauses_come_with_the_edit(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = scripted_server("push", "restless")
    async with open_desk(tmp_path, model_server, config=config) as desk:
        (desk.folder / "a.txt").write_text("one\n")
        await ready(desk, "a.txt")
        model_server.add(
            answer(Call("read", {"path": "a.txt"})),
            answer(Call("edit", {"path": "a.txt", "old": "one", "new": "new BAD"})),
            answer("Done."),
        )
        await desk.say("Go.")
        assert "a.txt:1:5: error: new is bad" in desk.results()[-1]


@pytest.mark.parametrize("ways", [("pull",), ("push",), ("push", "ranges")])
async def test_an_edit_reports_new_problems_and_not_old_ones(
    tmp_path: Path, model_server: ModelServer, ways: tuple[str, ...]
) -> None:
    async with open_desk(tmp_path, model_server, config=scripted_server(*ways)) as desk:
        (desk.folder / "a.txt").write_text("one\nold BAD\ntwo\n")
        await ready(desk, "a.txt")
        model_server.add(
            answer(Call("read", {"path": "a.txt"})),
            answer(edit("one\n", "zero\none\n"), edit("two", "new BAD")),
            answer("Done."),
        )
        await desk.say("Go.")
        first, last = desk.results()[-2:]
    assert "bad" not in first
    assert last.endswith(
        "New problems after this edit:\na.txt:4:5: error: new is bad [scripted bad]"
    )
    reported = desk.editor.of(ToolEnded)[-1].content
    assert reported is not None
    part = reported[-1]
    assert isinstance(part, ContentPart)
    assert isinstance(part.content, TextBlock)
    assert "new is bad" in part.content.text


async def test_old_problems_that_a_busy_server_reports_after_an_edit_are_not_new(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnostics, "_MAX_PUSH_TIMEOUT", 0.2)
    async with open_desk(tmp_path, model_server, config=scripted_server("push", "busy")) as desk:
        (desk.folder / "a.txt").write_text("one\nold BAD\ntwo\n")
        await ready(desk, "a.txt")
        model_server.add(
            answer(edit("one\n", "zero\none\n"), edit("two", "new BAD")),
            answer(edit("zero\n", "")),
            answer(edit("one\n", "one BAD\n")),
            answer("Done."),
        )
        await desk.say("Go.")
        problems = [
            result.partition("New problems after this edit:\n")[2] for result in desk.results()
        ]
    assert problems == [
        "",
        "a.txt:4:5: error: new is bad [scripted bad]",
        "",
        "a.txt:1:5: error: one is bad [scripted bad]",
    ]


async def test_errors_in_other_files_are_reported(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=scripted_server("project")) as desk:
        (desk.folder / "a.txt").write_text("one\n")
        await ready(desk, "a.txt")
        model_server.add(answer(edit("one", "new BAD")), answer("Done."))
        await desk.say("Go.")
        result = desk.results()[-1]
    assert "\na.txt:1:5: error: new is bad" in result
    assert "\nother.txt:1:5: error: new is bad" in result


async def test_a_changed_file_does_not_wait_for_a_check_of_the_project_that_takes_too_long(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = scripted_server("project", "unanswered=workspace/diagnostic")
    async with open_desk(tmp_path, model_server, config=config) as desk:
        (desk.folder / "a.txt").write_text("one\n")
        monkeypatch.setattr(service, "_WORKSPACE_SECONDS", 0.1)
        await ready(desk, "a.txt")
        monkeypatch.setattr(service, "_WORKSPACE_SECONDS", 60.0)
        model_server.add(answer(edit("one", "new BAD")), answer("Done."))
        await desk.say("Go.")
        assert "a.txt:1:5: error: new is bad" in desk.results()[-1]


async def test_a_slow_server_delays_nothing_and_reports_with_a_later_request(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = tmp_path / "hold"
    async with open_desk(tmp_path, model_server, config=scripted_server(f"hold={hold}")) as desk:
        (desk.folder / "a.txt").write_text("one\n")
        await ready(desk, "a.txt")
        hold.touch()
        for limit in ("MAX_WAIT", "_MAX_OTHERS_WAIT"):
            monkeypatch.setattr(edit_checks, limit, 0.1)
        stall = Stall()
        model_server.add(
            answer(edit("one", "new BAD")),
            answer(stall, Call("shell", {"command": "true"})),
            answer("Done."),
        )
        turn = await desk.begin("Go.")
        await model_server.arrived(2)
        hold.unlink()
        await until_reported(desk, "a.txt", "new is bad")
        stall.release()
        await turn.result()
        assert "bad" not in desk.results(-1)[0]
        assert desk.words()[-1].startswith("[New problems after the last edits:\na.txt:1:5: error")
        assert any(server.for_model for server in desk.editor.of(NoticeShown))


async def test_ruff_reports_with_an_edit(tmp_path: Path, model_server: ModelServer) -> None:
    path = f"{sysconfig.get_path('scripts')}:/usr/bin:/bin"
    config = 'mode = "full"\n'
    async with open_desk(tmp_path, model_server, config=config, environ={"PATH": path}) as desk:
        (desk.folder / "a.py").write_text("x = 1\n")
        await ready(desk, "a.py")
        model_server.add(answer(edit("x = 1", "import os", "a.py")), answer("Done."))
        await desk.say("Go.")
        assert "a.py:1:8: warning: `os` imported but unused" in desk.results()[-1]


async def test_a_file_that_a_command_broke_is_reported_with_the_next_request(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async with open_desk(tmp_path, model_server, config=scripted_server()) as desk:
        (desk.folder / "a.txt").write_text("one\n")
        await ready(desk, "a.txt")
        stall = Stall()
        model_server.add(
            answer(edit("one", "two")),
            answer(Call("shell", {"command": "echo new BAD >> a.txt"})),
            answer(stall, Call("shell", {"command": "true"})),
            answer("Done."),
        )
        turn = await desk.begin("Go.")
        await until_reported(desk, "a.txt", "new is bad")
        stall.release()
        await turn.result()
        assert any("a.txt:2:5: error: new is bad" in text for text in desk.words())
