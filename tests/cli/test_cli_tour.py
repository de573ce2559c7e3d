"""`acp-agent tour`, what `make run` does: the real command with the real server."""

from __future__ import annotations

import asyncio
import json
import re
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

from tests.support.agent_process import environment
from tests.support.model_server import Call, ModelServer, answer
from tests.support.warm_parent import shared_parent


async def tour(home: Path, cwd: Path, *arguments: str, **variables: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(*shared_parent().command(), "tour", *arguments),
        cwd=cwd,
        env=environment(home, variables),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_the_tour_without_a_key_uses_the_demo_and_names_the_next_step(
    home: Path, tmp_path: Path
) -> None:
    status, out, err = await tour(home, tmp_path)
    assert (status, err) == (0, "")
    for text in (
        "No model is configured, so the built-in offline demo model answers",
        "I am the demo model",  # streamed text
        "  [>] Look around",  # the plan, and how it goes on
        "  [x] Sum up",
        "* Read greeting.py",
        '-    return f"Hello {name}"',  # the edit's diff
        '+    return f"Hello, {name}!"',
        "? Permission: Edit greeting.py",
        "The tour allows its own edits and commands without asking.",
        "    -> Allowed by acp-agent tour",
        "| Ran 2 tests in",  # the command's output
        "| OK",
        " tokens",  # usage
        "stop reason: end_turn",
    ):
        assert text in out, f"the tour does not show {text!r}:\n{out}"
    login, run, readme = out.splitlines()[-3:]
    assert login.endswith("acp-agent login`.")
    assert run.endswith('acp-agent run "your task", in one of your projects.')
    assert readme == "Next: README.md has the settings for your editor."


async def test_the_tour_leaves_no_files_behind(home: Path, tmp_path: Path) -> None:
    _, out, _ = await tour(home, tmp_path, TMPDIR=str(tmp_path))
    match = re.search(r"The sample project is (\S+); it is deleted", out)
    assert match is not None
    assert not Path(match[1]).exists()
    assert [path.name for path in tmp_path.glob("acp-agent-*")] == []


async def test_with_a_key_the_configured_model_gives_the_tour(
    home: Path, tmp_path: Path, model_server: ModelServer
) -> None:
    change = {"path": "greeting.py", "old": "Hello {name}", "new": "Hello, {name}!"}
    model_server.add(
        answer("I read it.", Call("read", {"path": "greeting.py"})),
        answer("I mend it.", Call("edit", change)),
        answer(Call("shell", {"command": "touch made-by-a-model.txt"})),
        answer("It greets with a comma now."),
    )
    status, out, _ = await tour(home, tmp_path, **model_server.environ())
    assert status == 0
    assert "demo model" not in out
    assert "It greets with a comma now." in out
    assert '+    return f"Hello, {name}!"' in out
    result = json.dumps(model_server.requests[3].json["messages"][-1])
    assert "refused" in result, "a command that nobody allowed ran"
    assert out.count("-> Allowed by acp-agent tour") == 1
    assert "acp-agent login" not in out


async def test_a_prompt_of_the_user_runs_in_the_current_folder(
    home: Path, workspace_repo: Path
) -> None:
    status, out, _ = await tour(home, workspace_repo, "--prompt", "read README.md")
    assert status == 0
    assert "> read README.md" in out
    assert "# Sample" in out
    assert "The sample project" not in out
    assert "Next: " in out


async def test_the_tour_leaves_only_the_session_of_the_users_prompt(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    model_server.add(answer("That was the tour."), answer("Hello."))
    await tour(home, workspace_repo, **model_server.environ())
    _, out, _ = await tour(home, workspace_repo, "--prompt", "hello", **model_server.environ())
    process = await asyncio.create_subprocess_exec(
        *(*shared_parent().command(), "sessions", "list", "--json"),
        env=environment(home),
        stdin=DEVNULL,
        stdout=PIPE,
    )
    async with asyncio.timeout(60):
        listed, _ = await process.communicate()
    match = re.search(r"--resume (\S+)", out)
    assert match is not None
    assert re.findall(r"sess_\w+", listed.decode()) == [match[1]]
