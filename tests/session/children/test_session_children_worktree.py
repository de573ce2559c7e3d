"""Agents that work in git worktrees of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from acp_agent.events import NoticeShown
from acp_agent.sandbox.sandbox import Unavailable, find_backend
from tests.session.agent_and_skill import TASK, write_agent
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.open_session import Desk, open_desk, presses

ISOLATED = "isolation: worktree"
WRITE = Call("write", {"path": "new.txt", "content": "4712\n"})


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@b.example")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def commit_file(folder: Path) -> None:
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "port.txt").write_text("4711\n")
    git(folder, "add", "port.txt")
    git(folder, "commit", "--quiet", "--message=one")


@pytest.fixture
def repository(desk: Desk) -> Desk:
    """A session in a repository with a committed file, and an agent with a worktree."""
    commit_file(desk.folder)
    write_agent(desk.folder, ISOLATED)
    return desk


def worktrees(folder: Path) -> list[Path]:
    return sorted((folder / ".claude" / "worktrees").glob("agent-*"))


async def test_an_agents_changes_stay_in_its_worktree_which_the_result_names(
    repository: Desk, model_server: ModelServer
) -> None:
    commit = Call(
        "shell", {"command": "git add -A && git -c user.name=A -c user.email=a commit -qm two"}
    )
    model_server.add(
        answer(TASK), answer(WRITE), answer(commit), answer("Changed."), answer("Done.")
    )
    await repository.say("Change the port.")
    (worktree,) = worktrees(repository.folder)
    assert not (repository.folder / "new.txt").exists()
    assert (worktree / "new.txt").read_text() == "4712\n"
    branch = f"worktree-{worktree.name}"
    assert git(repository.folder, "log", "--format=%s", branch) == "two\none\n"
    result = model_server.requests[-1].json["messages"][-1]["content"]
    assert str(worktree) in result
    assert branch in result
    prompt = model_server.requests[1].json["messages"][0]["content"]
    assert f"Working folder: {worktree}" in prompt
    assert git(repository.folder, "status", "--porcelain", ".claude") == ""


async def test_a_worktree_without_changes_is_removed_with_its_branch(
    repository: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(TASK), answer(Call("read", {"path": "port.txt"})), answer("4711."))
    model_server.add(answer("It is 4711."))
    await repository.say("Which port?")
    assert "4711" in str(model_server.requests[2].json["messages"][-1])
    assert worktrees(repository.folder) == []
    assert git(repository.folder, "branch", "--format=%(refname:short)") == "main\n"
    assert len(git(repository.folder, "worktree", "list").splitlines()) == 1
    assert "worktree" not in model_server.requests[-1].json["messages"][-1]["content"]


async def test_an_agent_with_a_worktree_changes_no_file_of_the_working_folder(
    repository: Desk, model_server: ModelServer
) -> None:
    outside = Call("write", {"path": str(repository.folder / "port.txt"), "content": "0\n"})
    model_server.add(answer(TASK), answer(outside), answer("Refused."), answer("Done."))
    await repository.say("Change the port.")
    assert (repository.folder / "port.txt").read_text() == "4711\n"
    assert "outside" in str(model_server.requests[2].json["messages"][-1])
    assert worktrees(repository.folder) == []


async def test_the_rules_of_the_project_apply_in_an_agents_worktree(
    repository: Desk, model_server: ModelServer
) -> None:
    settings = repository.folder / ".claude" / "settings.local.json"
    settings.parent.mkdir()
    settings.write_text('{"permissions": {"deny": ["Edit(new.txt)"]}}')
    model_server.add(answer(TASK), answer(WRITE), answer("Refused."), answer("Done."))
    await repository.say("Change the port.")
    assert "settings.local.json" in str(model_server.requests[2].json["messages"][-1])
    assert not repository.editor.asked


async def test_what_the_user_always_allows_in_the_project_is_allowed_in_a_worktree(
    repository: Desk, model_server: ModelServer
) -> None:
    touch = Call("shell", {"command": "touch made.txt"})
    repository.editor.decide = presses("allow_always")
    model_server.add(answer(touch), answer("Done."))
    await repository.say("Make a file.")
    assert len(repository.editor.asked) == 1
    model_server.add(answer(TASK), answer(touch), answer("Made."), answer("Done."))
    await repository.say("Make one there, too.")
    assert len(repository.editor.asked) == 1
    (worktree,) = worktrees(repository.folder)
    assert (worktree / "made.txt").exists()


async def test_hooks_of_the_project_see_the_worktree_as_the_folder_of_its_agent(
    repository: Desk, model_server: ModelServer
) -> None:
    settings = repository.folder / ".claude" / "settings.json"
    settings.parent.mkdir()
    command = "cat >> $CLAUDE_PROJECT_DIR/seen.txt; (echo; pwd) >> $CLAUDE_PROJECT_DIR/seen.txt"
    settings.write_text(
        '{"hooks": {"PostToolUse": [{"matcher": "Write", "hooks": '
        f'[{{"type": "command", "command": "{command}"}}]}}]}}}}'
    )
    model_server.add(answer(TASK), answer(WRITE), answer("Changed."), answer("Done."))
    await repository.say("Change the port.")
    (worktree,) = worktrees(repository.folder)
    seen = (repository.folder / "seen.txt").read_text()
    assert f'"cwd":"{worktree}"' in seen
    assert f'"file_path":"{worktree}/new.txt"' in seen
    assert seen.splitlines()[-1] == str(worktree)


async def test_without_a_commit_the_agent_is_not_started_and_the_model_learns_why(
    desk: Desk, model_server: ModelServer
) -> None:
    write_agent(desk.folder, ISOLATED)
    for reason in ("in no repository", "commit something first"):
        model_server.add(answer(TASK), answer("Not done."))
        await desk.say("Change the port.")
        assert reason in model_server.requests[-1].json["messages"][-1]["content"]
        git(desk.folder, "init", "--quiet")
    assert worktrees(desk.folder) == []


async def test_a_repository_whose_settings_name_programs_gets_no_worktree(
    repository: Desk, model_server: ModelServer
) -> None:
    git(repository.folder, "config", "filter.x.smudge", f"touch {repository.folder}/ran")
    (repository.folder / ".git" / "info" / "attributes").write_text("* filter=x\n")
    model_server.add(answer(TASK), answer("Not done."))
    await repository.say("Change the port.")
    assert "programs" in model_server.requests[-1].json["messages"][-1]["content"]
    assert not (repository.folder / "ran").exists()
    assert worktrees(repository.folder) == []


async def test_changes_of_a_cancelled_agent_are_kept_and_the_user_is_told_where(
    repository: Desk, model_server: ModelServer
) -> None:
    model_server.add(answer(TASK), answer(WRITE), answer("Half", Stall()))
    turn = await repository.begin("Change the port.")
    await model_server.arrived(3)
    assert await repository.cancel(turn) == "cancelled"
    (worktree,) = worktrees(repository.folder)
    assert (worktree / "new.txt").read_text() == "4712\n"
    told = [notice.description or "" for notice in repository.editor.of(NoticeShown)]
    assert any(str(worktree) in text for text in told)


async def test_an_agent_that_continues_finds_its_worktree_again(
    repository: Desk, model_server: ModelServer
) -> None:
    again = Call("task", {"agent": "#1", "title": "More", "task": "Which port is it now?"})
    model_server.add(answer(TASK), answer(WRITE), answer("Changed."), answer("Done."))
    await repository.say("Change the port.")
    model_server.add(answer(again), answer(Call("read", {"path": "new.txt"})), answer("4712."))
    model_server.add(answer("Done."))
    await repository.say("Ask it.")
    assert "4712" in str(model_server.requests[6].json["messages"][-1])
    assert len(worktrees(repository.folder)) == 1


async def test_in_a_subfolder_of_a_repository_the_agent_works_in_the_same_subfolder(
    tmp_path: Path, model_server: ModelServer
) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("a\n")
    git(tmp_path, "add", "project")
    git(tmp_path, "commit", "--quiet", "--message=one")
    async with open_desk(tmp_path, model_server) as desk:
        write_agent(desk.folder, ISOLATED)
        model_server.add(answer(TASK), answer(WRITE), answer("Changed."), answer("Done."))
        await desk.say("Change the port.")
        (worktree,) = worktrees(desk.folder)
        assert (worktree / "project" / "new.txt").exists()


@pytest.mark.skipif(
    isinstance(find_backend(os.environ.get("PATH")), Unavailable), reason="there is no sandbox"
)
async def test_commands_of_an_agent_write_only_in_its_worktree_and_in_the_git_data(
    tmp_path: Path, model_server: ModelServer
) -> None:
    write = Call(
        "shell", {"command": "touch here ../../../there; git add here; git status --short"}
    )
    async with open_desk(tmp_path, model_server, environ={"ACP_AGENT_SANDBOX": "true"}) as desk:
        commit_file(desk.folder)
        write_agent(desk.folder, ISOLATED)
        model_server.add(answer(TASK), answer(write), answer("Done."), answer("Done."))
        await desk.say("Make files.")
        (worktree,) = worktrees(desk.folder)
        assert (worktree / "here").exists()
        assert not (desk.folder / "there").exists()
        assert "A  here" in str(model_server.requests[2].json["messages"][-1])
