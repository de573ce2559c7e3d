"""Files that are not what a tool hopes for: each gets one clear line, and the turn goes on."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from tests.support.agent_process import AgentProcess
from tests.support.editor import Editor
from tests.support.hostile import (
    MODEL,
    OpenSession,
    assert_goes_on,
    bound_by_permissions,
    key_environ,
    one_line,
    outcomes,
)
from tests.support.model_server import Call, ModelServer, answer
from tests.support.process_memory import peak_memory
from tests.support.wire_client import content_text

HUGE = 1 << 30

# A call, and words that its refusal has to hold: what was wrong, and what to do where that helps.
REFUSED: list[tuple[Call, list[str]]] = [
    (Call("read", {"path": "binary.bin"}), ["binary.bin is a binary file", "`shell`"]),
    (Call("read", {"path": "broken.png"}), ["broken.png", "no PNG, JPEG, GIF or WebP"]),
    (Call("read", {"path": "huge.txt"}), ["huge.txt is too large", "1,073,741,824", "grep"]),
    (Call("read", {"path": "huge.png"}), ["huge.png is too large", "1,073,741,824"]),
    (Call("read", {"path": "pipe"}), ["pipe is not a regular file"]),
    (Call("read", {"path": "loop"}), ["loop", "symbolic link"]),
    (Call("read", {"path": "gone.py"}), ["no such file: gone.py"]),
    (Call("read", {"path": "greting.py"}), ["no such file", "did you mean greeting.py?"]),
    (Call("read", {"path": "README.md/x"}), ["no such file: README.md/x"]),
    (Call("read", {"path": "a" * 300}), ["too long", "shorter"]),
    (Call("edit", {"path": "folder.py", "old": "a", "new": "b"}), ["folder.py is a folder"]),
    (Call("edit", {"path": "huge.txt", "old": "a", "new": "b"}), ["huge.txt is too large"]),
    (Call("edit", {"path": "binary.bin", "old": "a", "new": "b"}), ["binary.bin is a binary"]),
    (Call("edit", {"path": "gone.py", "old": "a", "new": "b"}), ["no such file: gone.py"]),
    (Call("write", {"path": "folder.py", "content": "x"}), ["folder.py is a folder"]),
    (Call("write", {"path": "binary.bin", "content": "x"}), ["binary.bin is a binary"]),
    (Call("write", {"path": "huge.txt", "content": "x"}), ["huge.txt is too large"]),
    (Call("write", {"path": "pipe", "content": "x"}), ["pipe is not a regular file"]),
    (Call("write", {"path": "README.md/x", "content": "x"}), ["README.md/x", "in its way"]),
    (Call("list", {"path": "README.md"}), ["README.md is a file", "`read`"]),
    (Call("list", {"path": "gone"}), ["no folder gone"]),
    (Call("grep", {"pattern": "x", "path": "gone"}), ["no gone"]),
    (
        Call("grep", {"pattern": "(unclosed"}),
        ["missing closing parenthesis", "correct the pattern"],
    ),
    (Call("glob", {"pattern": "[unclosed"}), ["unclosed character class", "correct the pattern"]),
]


def prepare(repo: Path) -> None:
    """Make every odd file that the tests name."""
    (repo / "folder.py").mkdir()
    (repo / "binary.bin").write_bytes(bytes(range(256)) * 20)
    (repo / "broken.png").write_bytes(b"\x89PNG but not really")
    for name in ("huge.txt", "huge.png"):
        with (repo / name).open("wb") as file:
            file.truncate(HUGE)  # sparse: it takes no space
    os.mkfifo(repo / "pipe")
    (repo / "loop").symlink_to("loop")


async def test_unusable_files_are_reported_to_model_and_user_and_the_turn_continues(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    prepare(workspace_repo)
    agent, session = await opened(editor=Editor(permission="allow_once"))
    results = await outcomes(agent, session, model_server, *(call for call, _ in REFUSED))
    for (call, words), (told, ended) in zip(REFUSED, results, strict=True):
        assert one_line(told), call
        assert ended["status"] == "failed", call
        for text in words:
            assert text in told, call
        assert words[0] in content_text(ended), call  # what to do is for the model
    # Nobody is asked about what cannot be done, where that can be known beforehand.
    asked = [request["toolCall"]["title"] for request in agent.editor.asked]
    assert set(asked) <= {"Create README.md/x"}
    assert (workspace_repo / "binary.bin").read_bytes() == bytes(range(256)) * 20
    assert (workspace_repo / "huge.txt").stat().st_size == HUGE
    assert peak_memory(agent.process.pid) < 300 << 20
    await assert_goes_on(agent, session, model_server)


async def test_a_search_next_to_a_huge_file_finds_everything_else_in_little_memory(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    prepare(workspace_repo)
    agent, session = await opened()
    (grep, _), (glob, _), (listed, _) = await outcomes(
        agent,
        session,
        model_server,
        Call("grep", {"pattern": "def greet"}),
        Call("glob", {"pattern": "*.txt"}),
        Call("list", {}),
    )
    assert "greeting.py" in grep
    assert "huge.txt" in glob
    assert "pipe" in listed
    assert peak_memory(agent.process.pid) < 300 << 20


async def test_links_to_unreadable_files_are_reported_and_the_prompt_continues(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    prepare(workspace_repo)
    agent, session = await opened()
    uris = [(workspace_repo / name).as_uri() for name in ("folder.py", "huge.txt", "pipe", "gone")]
    uris += ["file:///etc/passwd", "file://", "file://[", "http://x/y", "", "file:///%00", "\0"]
    links = [{"type": "resource_link", "name": "a link", "uri": uri} for uri in uris]
    model_server.add(answer("I see."))
    assert (await agent.prompt(session, "look", *links))["stopReason"] == "end_turn"
    body = str(model_server.requests[-1].json["messages"])
    assert body.count("was not attached") >= 5
    assert "root:" not in body
    assert peak_memory(agent.process.pid) < 300 << 20
    await assert_goes_on(agent, session, model_server)


async def test_a_file_that_is_no_utf8_is_neither_read_nor_edited_and_the_byte_is_named(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    path = workspace_repo / "mixed.txt"
    before = "na\xefve\n".encode("latin-1") + b"plain\n"
    path.write_bytes(before)
    agent, session = await opened()
    results = await outcomes(
        agent,
        session,
        model_server,
        Call("read", {"path": "mixed.txt"}),
        Call("edit", {"path": "mixed.txt", "old": "plain", "new": "changed"}),
    )
    for told, ended in results:
        assert "mixed.txt is not valid UTF-8 (byte 0xef in line 1)" in told
        assert one_line(told)
        assert ended["status"] == "failed"
    assert len(results) == 2
    assert path.read_bytes() == before
    await assert_goes_on(agent, session, model_server)


async def test_actions_that_permissions_forbid_are_reported_and_others_continue(
    home: Path,
    unharmed: list[AgentProcess],
    model_server: ModelServer,
    workspace_repo: Path,
) -> None:
    (workspace_repo / "greeting.py").chmod(0)
    (workspace_repo / "README.md").chmod(0o400)
    (workspace_repo / "src").chmod(0)
    try:
        async with await AgentProcess.start(
            *MODEL,
            home=home,
            environ=key_environ(model_server),
            command=(*bound_by_permissions(), sys.executable, "-m", "acp_agent"),
        ) as agent:
            unharmed.append(agent)
            await agent.initialize()
            session = await agent.new_session(workspace_repo)
            results = await outcomes(
                agent,
                session,
                model_server,
                Call("read", {"path": "greeting.py"}),
                Call("read", {"path": "README.md"}),
                Call("edit", {"path": "README.md", "old": "Sample", "new": "Changed"}),
                Call("read", {"path": "src/app.py"}),
                Call("list", {"path": "src"}),
            )
            told = [text for text, _ in results]
            assert [ended["status"] for _, ended in results] == [
                "failed",
                "completed",
                "failed",
                "failed",
                "failed",
            ]
            assert "greeting.py cannot be read: permission denied" in told[0]
            assert "README.md cannot be written: it is read-only" in told[2]
            assert all(one_line(text) for text in (told[0], *told[2:]))
            await assert_goes_on(agent, session, model_server)
    finally:
        (workspace_repo / "src").chmod(0o755)
    assert "Sample" in (workspace_repo / "README.md").read_text()


async def test_a_folder_that_vanished_in_mid_session_is_named_and_the_session_can_be_loaded_again(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    agent, session = await opened(editor=Editor(permission="allow_once"))
    await outcomes(agent, session, model_server, Call("read", {"path": "greeting.py"}))
    kept = workspace_repo.with_name("kept")
    workspace_repo.rename(kept)

    calls = [
        Call("read", {"path": "greeting.py"}),
        Call("edit", {"path": "greeting.py", "old": "Hello", "new": "Bye"}),
        Call("list", {}),
        Call("grep", {"pattern": "x"}),
        Call("glob", {"pattern": "*"}),
        Call("shell", {"command": "touch here"}),
    ]
    results = await outcomes(agent, session, model_server, *calls)
    for call, (told, ended) in zip(calls, results, strict=True):
        assert ended["status"] == "failed", (call, told)
        assert one_line(told), call
    assert str(workspace_repo) in results[-1][0]
    assert not workspace_repo.exists()
    await assert_goes_on(agent, session, model_server)

    load = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    refused = (await agent.answer(agent.post("session/load", load)))["error"]
    assert refused["code"] == -32602
    assert refused["message"] == f"cwd: there is no folder {str(workspace_repo)!r}"
    shutil.move(kept, workspace_repo)
    await agent.request("session/load", load)
    results = await outcomes(agent, session, model_server, calls[0])
    assert results[0][1]["status"] == "completed"


async def test_a_folder_that_is_missing_or_no_folder_starts_no_session(
    opened: OpenSession, workspace_repo: Path
) -> None:
    agent, _ = await opened()
    for cwd in (
        str(workspace_repo / "gone"),
        str(workspace_repo / "README.md"),
        "relative/path",
        "",
        "~",
        f"{workspace_repo}\0",
        "/" + "x" * 5000,
        f"{workspace_repo}/\ud800",
    ):
        asked = agent.post("session/new", {"cwd": cwd, "mcpServers": []})
        error = (await agent.answer(asked))["error"]
        assert error["code"] == -32602, cwd
        assert error["message"].startswith("cwd: "), cwd
        assert error["data"] == {"field": "cwd"}, cwd
    assert (await agent.request("session/list", {}))["sessions"] == []


async def test_the_agents_own_working_folder_may_vanish(
    home: Path,
    unharmed: list[AgentProcess],
    model_server: ModelServer,
    workspace_repo: Path,
    tmp_path: Path,
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    async with await AgentProcess.start(
        *MODEL, home=home, environ=key_environ(model_server), cwd=own
    ) as agent:
        unharmed.append(agent)
        await agent.initialize()
        own.rmdir()
        session = await agent.new_session(workspace_repo)
        results = await outcomes(
            agent, session, model_server, Call("shell", {"command": "pwd; cat greeting.py"})
        )
        assert str(workspace_repo) in results[0][0]
        await assert_goes_on(agent, session, model_server)
