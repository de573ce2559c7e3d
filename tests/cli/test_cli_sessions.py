"""`acp-agent sessions`: conversations listed, shown and deleted."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from acp_agent.content import DiffPart, TextBlock, text_part
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    ModelAnswered,
    NoticeShown,
    PlanChanged,
    PlanEntry,
    SessionStarted,
    TitleChanged,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    ToolStarted,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    UsageReported,
    UserMessage,
)
from acp_agent.ids import SessionId, new_call_id, new_message_id, new_session_id, new_turn_id
from acp_agent.session.store.store import Store
from acp_agent.workspace.checkpoints import prune
from acp_agent.workspace.checkpoints.base import Deadline, Rules
from acp_agent.workspace.checkpoints.folders import FolderCheckpoints
from tests.cli.cli_process import acp_agent, environment
from tests.support import child_work
from tests.support.warm_parent import shared_parent


def conversation() -> list[AnyEvent]:
    """A turn with everything that a transcript shows."""
    turn, first, second = new_turn_id(), new_message_id(), new_message_id()
    edit, command = new_call_id(), new_call_id()
    return [
        TurnStarted(turn=turn),
        UserMessage(message=new_message_id(), content=(TextBlock(text="Mend the\ngreeting."),)),
        TitleChanged(title="Mend the greeting"),
        AgentThought(message=first, text="I should look"),
        AgentThought(message=first, text=" first."),
        AgentText(message=first, text="I mend"),
        UsageReported(used=1, size=2),
        AgentText(message=first, text=" it."),
        ToolCalled(
            call=edit, message=first, name="edit", arguments="{}", title="Edit greet.py",
            kind="edit",
            content=(DiffPart(path="/w/greet.py", old_text="a\nhello\n", new_text="a\nHello\n"),),
        ),
        ToolStarted(call=edit),
        ToolEnded(call=edit, result="done"),
        ToolCalled(call=command, message=first, name="shell", arguments="{}", title="npm test"),
        ToolStarted(call=command),
        ToolOutput(call=command, text="".join(f"line {n}\n" for n in range(25))),
        ToolOutput(call=command, text="\x1b[2Jevil\n"),
        ToolEnded(call=command, failed=True, exit_code=3),
        PlanChanged(
            entries=(PlanEntry(content="Look", status="completed"), PlanEntry(content="Go"))
        ),
        NoticeShown(severity="warning", title="Slow", description="again in 2 s"),
        ModelAnswered(message=first, model="demo/demo"),
        AgentText(message=second, text="Mended."),
        TurnEnded(turn=turn, stop_reason="max_tokens"),
        TurnStarted(turn=new_turn_id()),
        UserMessage(message=new_message_id(), content=(TextBlock(text="And now?"),)),
        TurnEnded(turn=turn, error="the provider answered HTTP 500"),
        TurnInterrupted(turn=turn, message=second),
    ]  # fmt: skip


EXPECTED_OUTPUT = """
> Mend the
> greeting.

I mend it.

* Edit greet.py
  | @@ -1,2 +1,2 @@
  |  a
  | -hello
  | +Hello

* npm test - exit status 3
"""


async def fill(home: Path, *sessions: Sequence[AnyEvent], cwd: str = "/w") -> list[SessionId]:
    store = await Store.open(home / "agent" / "sessions.db")
    ids = []
    try:
        for events in sessions:
            ids.append(new_session_id())
            await store.create(ids[-1], [SessionStarted(cwd=cwd), *events])
    finally:
        await store.close()
    return ids


async def run(home: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(acp_agent, home, "sessions", *arguments, stdin=stdin)


LIST_THEM = "; list sessions with `acp-agent sessions list`"


async def test_looking_makes_no_store(tmp_path: Path) -> None:
    ran = await run(tmp_path, "list")
    assert (ran.returncode, ran.stdout) == (
        0,
        "There are no sessions yet; start one with `acp-agent chat` or in your editor.\n",
    )
    assert (await run(tmp_path, "list", "--json")).stdout.strip() == "[]"
    for arguments in (["show", "latest"], ["export", "sess_1"], ["delete", "sess_1", "--yes"]):
        ran = await run(tmp_path, *arguments)
        assert ran.returncode == 1
        assert ran.stderr == (
            "acp-agent: there are no sessions yet; start one with `acp-agent chat` or in your "
            "editor\n"
        )
    assert not (tmp_path / "agent").exists()


async def test_a_folder_without_sessions_says_where_the_others_are(tmp_path: Path) -> None:
    await fill(tmp_path, conversation())
    ran = await run(tmp_path, "list", "--cwd", "/elsewhere")
    assert ran.stdout == "/elsewhere has no sessions; list those of all folders without --cwd\n"


async def test_sessions_are_listed_newest_first_without_the_empty_ones(tmp_path: Path) -> None:
    ids = await fill(tmp_path, conversation(), [], [TurnStarted(turn=new_turn_id())])
    listed = json.loads((await run(tmp_path, "list", "--json")).stdout)
    assert [entry["id"] for entry in listed] == [ids[2], ids[0]]
    assert listed[1]["title"] == "Mend the greeting"
    assert listed[1]["updated_at"].endswith("+00:00")
    lines = (await run(tmp_path, "list")).stdout.splitlines()
    assert lines[0].split() == ["ID", "LAST", "USED", "TURNS", "TITLE"]
    assert lines[1].startswith(ids[2])
    assert lines[1].endswith("(untitled, in /w)")
    assert len((await run(tmp_path, "list", "--all")).stdout.splitlines()) == 4
    assert len((await run(tmp_path, "list", "--limit", "1")).stdout.splitlines()) == 2


async def test_sessions_are_listed_by_folder_also_a_relative_one(tmp_path: Path) -> None:
    turn = [TurnStarted(turn=new_turn_id())]
    await fill(tmp_path, turn)
    ids = await fill(tmp_path, turn, cwd=str(tmp_path / "here"))
    listed = json.loads((await run(tmp_path, "list", "--json", "--cwd", "here")).stdout)
    assert [entry["id"] for entry in listed] == ids


async def test_a_conversation_is_shown_as_messages_in_order(tmp_path: Path) -> None:
    (name,) = await fill(tmp_path, conversation())
    ran = await run(tmp_path, "show", name)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"Mend the greeting\n{name}, /w, ")
    assert EXPECTED_OUTPUT in ran.stdout
    assert "  | line 19\n  | ... 6 more lines\n" in ran.stdout
    assert "- Plan:\n- [x] Look\n- [ ] Go\n" in ran.stdout
    assert "- Slow: again in 2 s\n" in ran.stdout
    assert "\nMended.\n" in ran.stdout
    assert "- (the turn ended: max_tokens)\n" in ran.stdout
    assert "! the provider answered HTTP 500\n" in ran.stdout
    assert "- (the agent was interrupted here)\n" in ran.stdout
    assert "I should look" not in ran.stdout
    thoughtful = await run(tmp_path, "show", "latest", "--thoughts")
    assert "\n~ I should look first.\n" in thoughtful.stdout


async def test_the_work_of_a_subagent_is_indented_below_its_call(tmp_path: Path) -> None:
    (name,) = await fill(tmp_path, list(child_work.whole()))
    output = (await run(tmp_path, "show", name)).stdout
    call = f"* {child_work.TITLE}\n\n    + Subagent: {child_work.TITLE}\n\n    > Find it\n"
    assert call in output
    assert "\n    It is\n\n    * Done\n\n    - Allowed by you\n\n    there.\n" in output


async def test_the_output_of_a_tool_cannot_control_the_users_terminal(tmp_path: Path) -> None:
    call, message = new_call_id(), new_message_id()
    (name,) = await fill(
        tmp_path,
        [
            TurnStarted(turn=new_turn_id()),
            AgentText(message=message, text="\x1b]0;title\x07"),
            ToolCalled(call=call, message=message, name="x", arguments="{}", title="\x1b[2J"),
            ToolEnded(call=call, content=(text_part("\x9b2J"),)),
        ],
    )
    ran = await run(tmp_path, "show", name)
    assert not {"\x1b", "\x07", "\x9b"} & set(ran.stdout)
    assert r"\x1b]0;title\x07" in ran.stdout
    assert r"\x9b2J" in ran.stdout


async def test_events_as_json_are_the_journal_line_by_line(tmp_path: Path) -> None:
    events = conversation()
    (name,) = await fill(tmp_path, events)
    lines = (await run(tmp_path, "show", name, "--json")).stdout.splitlines()
    read = [json.loads(line) for line in lines]
    assert [entry["seq"] for entry in read] == list(range(1, len(read) + 1))
    assert read[0]["event"] == {"event": "session_started", "cwd": "/w"}
    assert "".join(e["event"]["text"] for e in read if e["event"]["event"] == "agent_text") == (
        "I mend it.Mended."
    )


async def test_deleting_requires_a_confirmation(tmp_path: Path) -> None:
    first, second = await fill(tmp_path, conversation(), conversation())
    ran = await run(tmp_path, "delete", first)
    assert ran.returncode == 1
    assert "--yes" in ran.stderr
    assert len(json.loads((await run(tmp_path, "list", "--json")).stdout)) == 2
    ran = await run(tmp_path, "delete", "--yes", first)
    assert (ran.returncode, ran.stdout) == (0, f"Deleted {first}.\n")
    left = json.loads((await run(tmp_path, "list", "--json")).stdout)
    assert [entry["id"] for entry in left] == [second]
    ran = await run(tmp_path, "delete", "--yes", first)
    assert (ran.returncode, ran.stderr) == (
        1,
        f"acp-agent: session not found: {first}{LIST_THEM}\n",
    )


async def test_deleting_removes_the_files_of_that_session_only(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "agent"
    project.mkdir()
    first, second = await fill(tmp_path, conversation(), conversation())
    for name, text in ((first, "only the first"), (second, "of both")):
        (project / "both").write_text("of both")
        (project / "own").write_text(text)
        checkpoints = FolderCheckpoints(home / "checkpoints", name, [project], Rules())
        checkpoints.save("ckpt_1", Deadline(30))
        (home / "outputs" / name).mkdir(parents=True)
        (home / "outputs" / name / "long.txt").write_text("a long result")
    assert (await run(tmp_path, "delete", "--yes", first)).returncode == 0
    assert prune.sessions_with_checkpoints(home / "checkpoints") == {second}
    assert [folder.name for folder in (home / "outputs").iterdir()] == [second]
    objects = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch"],
        cwd=next((home / "checkpoints").glob("*.git")), capture_output=True, check=True,
    ).stdout  # fmt: skip
    assert b"of both" in objects
    assert b"only the first" not in objects


async def test_a_session_that_an_agent_writes_is_not_deleted(tmp_path: Path) -> None:
    (name,) = await fill(tmp_path, conversation())
    store = await Store.open(tmp_path / "agent" / "sessions.db")
    lease = store.lease(name)
    try:
        ran = await run(tmp_path, "delete", "--yes", name)
    finally:
        lease.release()
        await store.close()
    assert ran.returncode == 1
    assert "open in another process" in ran.stderr
    assert len(json.loads((await run(tmp_path, "list", "--json")).stdout)) == 1


async def test_a_damaged_store_is_reported_in_one_line_and_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "agent" / "sessions.db"
    file.parent.mkdir()
    file.write_bytes(b"no database at all" * 100)
    ran = await run(tmp_path, "list")
    assert ran.returncode == 1
    assert str(file) in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert file.read_bytes() == b"no database at all" * 100


@pytest.mark.parametrize("command", [("list",), ("show", "latest")])
async def test_every_line_fits_a_terminal_of_80_columns(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    (name,) = await fill(tmp_path, conversation())
    master_fd, slave_fd = pty.openpty()
    child = subprocess.Popen(
        [*shared_parent().command(), "sessions", *command],
        stdin=slave_fd, stdout=slave_fd, stderr=slave_fd,
        env=environment(tmp_path, {"COLUMNS": "80", "TERM": "dumb"}),
    )  # fmt: skip
    os.close(slave_fd)
    output = b""
    while True:
        try:
            piece = await asyncio.to_thread(os.read, master_fd, 65536)
        except OSError:
            break
        if not piece:
            break
        output += piece
    os.close(master_fd)
    assert child.wait(30) == 0
    lines = output.decode().splitlines()
    assert max(len(line) for line in lines) <= 80
    assert any(name in line for line in lines)


async def test_a_session_is_exported_as_lines_or_text_without_the_keys(tmp_path: Path) -> None:
    key = "sk-kept-0123456789abcdef-kept"
    turn = new_turn_id()
    message = UserMessage(message=new_message_id(), content=(TextBlock(text=f"Use {key}"),))
    (session,) = await fill(
        tmp_path, [*conversation(), TurnStarted(turn=turn), message, TurnEnded(turn=turn)]
    )
    (tmp_path / "agent" / "secrets.json").write_text(json.dumps({"keys": {"openai": key}}))
    (tmp_path / "agent" / "secrets.json").chmod(0o600)
    ran = await run(tmp_path, "export", session)
    assert ran.returncode == 0, ran.stderr
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert lines[0]["session"]["id"] == session
    assert lines[1]["event"]["event"] == "session_started"
    text = (await run(tmp_path, "export", "latest", "--format", "md")).stdout
    assert text.startswith("# Mend the greeting\n")
    assert "## User\n\nMend the\ngreeting.\n" in text
    assert "\x1b" not in text
    for exported in (ran.stdout, text):
        assert key not in exported
        assert "Use [secret]" in exported


async def test_an_export_to_a_file_is_for_its_owner_and_never_over_another(tmp_path: Path) -> None:
    (session,) = await fill(tmp_path, conversation())
    file = tmp_path / "out.md"
    arguments = ("export", session, "--format", "md", "--output", str(file))
    assert (await run(tmp_path, *arguments)).returncode == 0
    assert file.stat().st_mode & 0o777 == 0o600
    before = file.read_text()
    assert before.startswith("# Mend the greeting\n")
    ran = await run(tmp_path, *arguments)
    assert ran.returncode == 1
    assert "File exists" in ran.stderr
    assert file.read_text() == before
    ran = await run(tmp_path, "export", "sess_none")
    assert (ran.returncode, ran.stderr) == (
        1,
        f"acp-agent: session not found: sess_none{LIST_THEM}\n",
    )
