"""A journal on a full disk, read-only, damaged, newer, or gone: said in a line, nothing lost."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support.agent_process import AgentProcess, StartAgent
from tests.support.editor import Editor
from tests.support.hostile import (
    MODEL,
    Json,
    OpenSession,
    assert_goes_on,
    bound_by_permissions,
    key_environ,
    one_line,
    outcomes,
)
from tests.support.model_server import Call, ModelServer, answer
from tests.support.replays import conversation, without_user
from tests.support.warm_parent import shared_parent
from tests.support.wire_client import AnswerError

limits_of_others = pytest.mark.skipif(
    not hasattr(resource, "prlimit"), reason="limits of another process are Linux's"
)


def journal(home: Path) -> Path:
    return home / "acp-agent" / "sessions.db"


async def load(agent: AgentProcess, session: str, cwd: Path) -> list[Json]:
    """Load a session; what the conversation shows without the user's words."""
    before = len(agent.updates(session))
    await agent.request("session/load", {"sessionId": session, "cwd": str(cwd), "mcpServers": []})
    return without_user(conversation(agent.updates(session)[before:]))


def forbid_growth(agent: AgentProcess, size: int | None) -> None:
    """Let no file of the agent's grow beyond `size` bytes, as on a full disk; None lifts it."""
    soft = resource.RLIM_INFINITY if size is None else size
    limits = (soft, resource.RLIM_INFINITY)
    resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE, limits)


@limits_of_others
async def test_a_disk_that_fills_up_in_mid_answer_is_reported_and_loses_nothing_shown(
    agent: StartAgent,
    opened: OpenSession,
    model_server: ModelServer,
    workspace_repo: Path,
    home: Path,
) -> None:
    running, session = await opened()
    await assert_goes_on(running, session, model_server)
    log = journal(home).with_name("sessions.db-wal")
    forbid_growth(running, log.stat().st_size + 100_000)

    model_server.add(answer(*[f"{n} " + "word " * 200 for n in range(1_000)]))
    with pytest.raises(AnswerError) as caught:
        await running.prompt(session, "tell me")
    assert one_line(caught.value.message)
    assert str(journal(home)) in caught.value.message
    assert "check its space" in caught.value.message
    with pytest.raises(AnswerError, match="check its space"):
        await running.prompt(session, "again")  # as long as it is full, each prompt says so
    with pytest.raises(AnswerError, match="check its space"):
        await running.new_session(workspace_repo)

    shown = conversation(running.updates(session))
    forbid_growth(running, None)
    await assert_goes_on(running, session, model_server)  # no restart is needed
    replay = await load(running, session, workspace_repo)
    assert told(replay).startswith(told(shown))
    await running.stop()
    other = await agent(*MODEL, environ=key_environ(model_server))
    await other.initialize()
    assert await load(other, session, workspace_repo) == replay
    await assert_goes_on(other, session, model_server)


def told(updates: list[Json]) -> str:
    """What the agent said, whole."""
    chunks = [u for u in updates if u["sessionUpdate"] == "agent_message_chunk"]
    return "".join(chunk["content"]["text"] for chunk in chunks)


async def test_a_full_disk_is_reported_to_the_model_and_keeps_the_old_file(
    home: Path, unharmed: list[AgentProcess], model_server: ModelServer, workspace_repo: Path
) -> None:
    small = workspace_repo / "small"
    small.mkdir()
    mount = f"mount -t tmpfs -o size=64k tmpfs {small} && echo old > {small}/file.txt"
    command = ("unshare", "-rm", "sh", "-c", f'{mount} && exec "$@"', "sh")
    try:
        subprocess.run([*command, "true"], check=True, capture_output=True, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"a small disk cannot be mounted here: {error}")
    async with await AgentProcess.start(
        *MODEL,
        home=home,
        environ=key_environ(model_server),
        command=(*command, sys.executable, "-m", "acp_agent"),
        editor=Editor(permission="allow_once"),
    ) as agent:
        unharmed.append(agent)
        await agent.initialize()
        session = await agent.new_session(workspace_repo)
        results = await outcomes(
            agent,
            session,
            model_server,
            Call("read", {"path": "small/file.txt"}),
            Call("write", {"path": "small/file.txt", "content": "x" * 70_000}),
            Call("edit", {"path": "small/file.txt", "old": "old", "new": "y" * 70_000}),
            Call("write", {"path": "small/more/new.txt", "content": "x" * 70_000}),
            Call("shell", {"command": "ls small; head -c 70000 /dev/zero > small/zeros"}),
            Call("write", {"path": "small/short.txt", "content": "fits"}),
        )
        inside = Path(f"/proc/{agent.process.pid}/root{small}")
        for text, ended in results[1:4]:
            assert ended["status"] == "failed"
            assert "the disk or the quota is full; free some space and try again" in text
            assert one_line(text)
        assert (inside / "file.txt").read_text() == "old\n"
        assert "No space left" in results[4][0]
        assert [name for name in os.listdir(inside) if "tmp" in name] == []
        await assert_goes_on(agent, session, model_server)


async def test_a_read_only_store_is_readable_and_reported_until_it_is_writable(
    home: Path, unharmed: list[AgentProcess], model_server: ModelServer, workspace_repo: Path
) -> None:
    command = (*bound_by_permissions(), sys.executable, "-m", "acp_agent")
    environ = key_environ(model_server)
    async with await AgentProcess.start(
        *MODEL, home=home, environ=environ, launch=shared_parent().start
    ) as first:
        unharmed.append(first)
        await first.initialize()
        session = await first.new_session(workspace_repo)
        await assert_goes_on(first, session, model_server)

    folder = home / "acp-agent"
    modes = {path: path.stat().st_mode for path in (*folder.iterdir(), folder)}
    for path in modes:
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        async with await AgentProcess.start(
            *MODEL, home=home, environ=environ, command=command
        ) as agent:
            unharmed.append(agent)
            await agent.initialize()
            listed = await agent.request("session/list", {})
            assert [one["sessionId"] for one in listed["sessions"]] == [session]
            for ask in (
                agent.new_session(workspace_repo),
                load(agent, session, workspace_repo),
                agent.request("session/delete", {"sessionId": session}),
            ):
                with pytest.raises(AnswerError) as caught:
                    await ask
                assert one_line(caught.value.message)
                assert str(folder) in caught.value.message
                assert "permissions" in caught.value.message
            for path, mode in modes.items():
                path.chmod(mode)
            assert told(await load(agent, session, workspace_repo)) == "Still here."
            await assert_goes_on(agent, session, model_server)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def scribble(path: Path) -> None:
    """Damage the journal's pages but not its head."""
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)


def make_newer(path: Path) -> None:
    """Let a later version have written it."""
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 9999")
    database.close()


def make_folder(path: Path) -> None:
    """Put a folder where the journal was."""
    path.unlink()
    path.mkdir()


DAMAGES: Mapping[str, Callable[[Path], object]] = {
    "no journal": lambda path: path.write_bytes(b"these are not the bytes of a journal" * 200),
    "pages": scribble,
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:5_000]),
    "newer": make_newer,
    "a folder": make_folder,
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_an_unusable_store_is_reported_and_left_alone_and_can_be_fixed_without_a_restart(
    agent: StartAgent,
    opened: OpenSession,
    unharmed: list[AgentProcess],
    model_server: ModelServer,
    workspace_repo: Path,
    home: Path,
    damage: str,
) -> None:
    first, session = await opened()
    await assert_goes_on(first, session, model_server)
    await first.stop()
    path = journal(home)
    good = path.read_bytes()
    DAMAGES[damage](path)
    before = path.read_bytes() if path.is_file() else None

    running = await agent(*MODEL, environ=key_environ(model_server))
    unharmed.append(running)
    await running.initialize()
    messages = []
    for method, params in (
        ("session/new", {"cwd": str(workspace_repo), "mcpServers": []}),
        ("session/list", {}),
        ("session/load", {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}),
    ):
        answered = await running.answer(running.post(method, params))
        if "error" in answered:
            messages.append(answered["error"]["message"])
    assert len(messages) >= (1 if damage == "pages" else 3)  # sound pages can still be read
    for message in messages:
        assert one_line(message)
        assert str(path) in message, message
    if damage == "newer":
        assert "newer version" in messages[0]
    assert (path.read_bytes() if path.is_file() else None) == before

    for leftover in home.glob("acp-agent/sessions.db*"):
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    path.write_bytes(good)
    if damage == "pages":  # an open database may not be exchanged under a process
        await running.stop()
        running = await agent(*MODEL, environ=key_environ(model_server))
        await running.initialize()
    assert told(await load(running, session, workspace_repo)) == "Still here."
    await assert_goes_on(running, session, model_server)


async def test_a_store_deleted_during_use_is_reported_and_new_sessions_work(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path, home: Path
) -> None:
    agent, session = await opened()
    await assert_goes_on(agent, session, model_server)
    for path in home.glob("acp-agent/sessions.db*"):
        path.unlink()
    with pytest.raises(AnswerError) as caught:
        await agent.prompt(session, "are you there?")
    assert one_line(caught.value.message)
    assert "moved or deleted" in caught.value.message
    other = await agent.new_session(workspace_repo)
    await assert_goes_on(agent, other, model_server)


async def test_a_home_that_is_no_folder_is_reported_by_name(
    agent: StartAgent, unharmed: list[AgentProcess], home: Path, workspace_repo: Path
) -> None:
    (home / "acp-agent").write_text("in the way")
    running = await agent("--model", "demo/demo")
    unharmed.append(running)
    await running.initialize()
    with pytest.raises(AnswerError) as caught:
        await running.new_session(workspace_repo)
    assert one_line(caught.value.message)
    assert str(home / "acp-agent") in caught.value.message
    (home / "acp-agent").unlink()
    assert await running.prompt(await running.new_session(workspace_repo), "hello")


async def test_a_session_that_another_agent_has_open_is_refused_and_free_afterwards(
    agent: StartAgent, opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    first, session = await opened()
    await assert_goes_on(first, session, model_server)
    second = await agent(*MODEL, environ=key_environ(model_server))
    await second.initialize()
    with pytest.raises(AnswerError) as caught:
        await load(second, session, workspace_repo)
    assert one_line(caught.value.message)
    assert caught.value.code == -32600
    await first.request("session/close", {"sessionId": session})
    assert told(await load(second, session, workspace_repo)) == "Still here."
    await assert_goes_on(second, session, model_server)
