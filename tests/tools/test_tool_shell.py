"""The shell tool on real processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from pydantic import ValidationError

from acp_agent.content import CallContent, ContentPart, Location, TerminalPart, TextBlock
from acp_agent.errors import ToolError, WorkspaceError
from acp_agent.events import PlanEntry
from acp_agent.permissions.access import CommandAccess
from acp_agent.tools.base import RESULT_LIMIT, Answer, CommandEnd, Outcome, Question
from acp_agent.tools.quoting import code_block, code_span, first_line
from acp_agent.tools.shell import ShellParams, ShellTool
from acp_agent.workspace.files import WorkspaceFiles
from acp_agent.workspace.network import GuardedNetwork
from acp_agent.workspace.processes import CommandResult, EditorTerminals, LocalProcesses
from acp_agent.workspace.workspace import Workspace
from tests.support.tool_calls import RecordedProgress, ToolUser


class ShellProgress(RecordedProgress):
    """What a command showed."""

    def __init__(self) -> None:
        super().__init__()
        self.live = ""
        self.contents: list[tuple[CallContent, ...]] = []
        self.arrived = asyncio.Event()

    async def output(self, text: str) -> None:
        self.live += text
        self.arrived.set()

    async def show(
        self,
        *,
        title: str | None = None,
        content: tuple[CallContent, ...] | None = None,
        locations: tuple[Location, ...] | None = None,
    ) -> None:
        if content is not None:
            self.contents.append(content)

    async def plan(self, entries: Sequence[PlanEntry]) -> None:
        raise AssertionError("a command has no plan")

    async def ask(self, question: Question) -> Answer | None:
        raise AssertionError("a command asks nothing")

    async def say(self, text: str) -> None:
        raise AssertionError("a command says nothing")


class Files(WorkspaceFiles):
    """The session's real files, which also count what ran."""

    ran = 0

    def note_commands_ran(self) -> None:
        self.ran += 1
        super().note_commands_ran()


def make_workspace(folder: Path, terminals: EditorTerminals | None = None) -> Workspace:
    return Workspace(
        cwd=folder,
        files=Files(folder),
        processes=LocalProcesses(folder / "outputs", environ=os.environ),
        network=GuardedNetwork(),
        outputs=folder / "outputs",
        terminals=terminals,
    )


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    test_workspace = make_workspace(tmp_path)
    yield test_workspace
    await test_workspace.processes.aclose()


async def call(
    workspace: Workspace,
    command: str,
    *,
    timeout: float | None = 20,
    progress: ShellProgress | None = None,
) -> Outcome:
    tool = ShellTool(workspace)
    prepared = await tool.prepare(ShellParams(command=command, timeout=timeout))
    return await prepared.run(progress or ShellProgress())


def content_text(content: tuple[CallContent, ...] | None) -> str:
    assert content is not None
    (part,) = content
    assert isinstance(part, ContentPart)
    assert isinstance(part.content, TextBlock)
    return part.content.text


async def test_a_call_shows_the_command_and_asks_for_it_in_the_sessions_folder(
    workspace: Workspace,
) -> None:
    prepared = await ShellTool(workspace).prepare(ShellParams(command="make test\nmake lint"))
    assert prepared.title == "`make test …`"
    folder = str(workspace.cwd)
    assert prepared.access == CommandAccess("make test\nmake lint", folder, roots=(folder,))
    assert content_text(prepared.content) == "```sh\nmake test\nmake lint\n```"


async def test_preparing_runs_nothing(workspace: Workspace) -> None:
    await ShellTool(workspace).prepare(ShellParams(command="touch ran"))
    assert not (workspace.cwd / "ran").exists()


async def test_the_description_of_a_command_never_replaces_the_command(
    workspace: Workspace,
) -> None:
    params = ShellParams(command="rm -rf build", description="Run the\ntests")
    prepared = await ShellTool(workspace).prepare(params)
    assert prepared.title == "`rm -rf build` (Run the …)"


async def test_the_model_and_the_user_see_output_and_exit_code(
    workspace: Workspace,
) -> None:
    progress = ShellProgress()
    outcome = await call(workspace, "echo one; echo two >&2", progress=progress)
    assert outcome.text == "one\ntwo\n[exit code 0]"
    assert not outcome.failed
    assert progress.live == "one\ntwo\n"
    assert content_text(outcome.content) == "```console\none\ntwo\n```\nexit code 0"
    assert outcome.raw_output == {
        "exit_code": 0,
        "signal": None,
        "timed_out": False,
        "truncated": False,
        "output_file": None,
    }
    assert isinstance(workspace.files, Files)
    assert workspace.files.ran == 1


async def test_a_command_that_fails_is_a_failed_call_with_its_output(workspace: Workspace) -> None:
    outcome = await call(workspace, "echo why; exit 3")
    assert (outcome.failed, outcome.exit_code, outcome.signal) == (True, 3, None)
    assert outcome.text == "why\n[exit code 3]"


async def test_a_command_without_output_says_so(workspace: Workspace) -> None:
    assert (await call(workspace, "true")).text == "[no output; exit code 0]"


async def test_a_signal_is_named(workspace: Workspace) -> None:
    outcome = await call(workspace, "kill -KILL $$")
    assert (outcome.failed, outcome.exit_code, outcome.signal) == (True, None, "SIGKILL")
    assert "ended by SIGKILL" in outcome.text
    inner = await call(workspace, "sh -c 'kill -SEGV $$'; exit $?")
    assert "exit code 139 (SIGSEGV)" in inner.text


async def test_a_timeout_is_reported_with_the_output_before_it(workspace: Workspace) -> None:
    outcome = await call(workspace, "echo begun; sleep 100", timeout=1.5)
    assert outcome.failed
    assert outcome.text.startswith("begun\n[timed out after 1.5 s and was ended; give a larger")
    assert outcome.raw_output is not None
    assert outcome.raw_output["timed_out"] is True


async def test_the_default_timeout_is_the_configured_one(workspace: Workspace) -> None:
    tool = ShellTool(workspace, default_timeout=0.3)
    prepared = await tool.prepare(ShellParams(command="sleep 100"))
    assert "timed out after 0.3 s" in (await prepared.run(ShellProgress())).text


async def test_a_long_output_stays_below_the_models_limit_and_names_the_file(
    workspace: Workspace,
) -> None:
    outcome = await call(workspace, "seq 1 100000")
    assert len(outcome.text) < RESULT_LIMIT
    assert outcome.raw_output is not None
    path = outcome.raw_output["output_file"]
    assert outcome.raw_output["truncated"] is True
    assert path in outcome.text
    assert Path(path).read_text().splitlines()[-1] == "100000"
    assert len(content_text(outcome.content)) < 11_000
    assert "100000" in content_text(outcome.content)


async def test_output_cannot_break_out_of_its_block(workspace: Workspace) -> None:
    outcome = await call(workspace, "printf '```\\n# not a heading\\n'")
    assert content_text(outcome.content).startswith("````console\n```\n")


async def test_a_cancelled_call_still_says_that_files_may_have_changed(
    workspace: Workspace,
) -> None:
    progress = ShellProgress()
    task = asyncio.create_task(call(workspace, "echo ready; sleep 100", progress=progress))
    await asyncio.wait_for(progress.arrived.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert isinstance(workspace.files, Files)
    assert workspace.files.ran == 1


class Terminals(EditorTerminals):
    """An editor's terminals: they run the command for real and keep its output for themselves."""

    def __init__(self, processes: LocalProcesses) -> None:
        self.processes = processes
        self.limits: list[tuple[int, float]] = []

    async def run(
        self,
        command: str,
        cwd: Path,
        *,
        limit_bytes: int,
        timeout: float,
        only_reads: bool,
        on_start: Callable[[str], Awaitable[None]],
    ) -> CommandResult:
        async def ignore(text: str) -> None:
            del text

        self.limits.append((limit_bytes, timeout))
        await on_start("terminal-7")
        return await self.processes.run(command, cwd, timeout=timeout, on_output=ignore)


async def test_a_command_runs_in_the_editors_terminal_where_the_user_wants_that(
    tmp_path: Path,
) -> None:
    processes = LocalProcesses(tmp_path / "outputs", environ=os.environ)
    terminals = Terminals(processes)
    workspace = make_workspace(tmp_path, terminals)
    progress = ShellProgress()
    outcome = await call(workspace, "echo here", timeout=9, progress=progress)
    await processes.aclose()
    assert progress.contents == [(TerminalPart("terminal-7"),)]
    assert progress.live == ""
    assert outcome.content is None  # the terminal stays what is shown
    assert outcome.text == "here\n[exit code 0]"
    assert terminals.limits == [(50_000, 9)]


@pytest.mark.parametrize("command", ["  ", "\n\t\n"])
async def test_an_empty_command_is_refused(workspace: Workspace, command: str) -> None:
    with pytest.raises(ToolError, match="command is empty"):
        await ShellTool(workspace).prepare(ShellParams(command=command))


@pytest.mark.parametrize("timeout", [0, -1, 601, float("nan")])
def test_a_timeout_out_of_range_is_refused(timeout: float) -> None:
    with pytest.raises(ValidationError, match="timeout"):
        ShellParams(command="true", timeout=timeout)


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        ({"command": "ls -l"}, "`ls -l`"),
        ({"command": "echo `date`"}, "`` echo `date` ``"),
        ({"command": ""}, "shell"),
        ({"command": 7}, "shell"),
        ({}, "shell"),
    ],
)
def test_the_title_shows_the_received_arguments(
    workspace: Workspace, arguments: dict[str, object], title: str
) -> None:
    assert ShellTool(workspace).title(arguments) == title


def test_the_description_for_the_model_names_the_limits(workspace: Workspace) -> None:
    assert "600" in ShellTool(workspace).description()


def test_a_title_shows_hidden_characters() -> None:
    assert first_line("ls \u202e\x1b[2K x\ty", 80) == "ls \\u{202e}\\u{1b}[2K x y"
    assert first_line("y" * 500, 120) == "y" * 118 + " …"
    assert len(first_line("\u202e" * 500, 120)) <= 120


def test_no_text_ends_its_own_code_span_or_block() -> None:
    assert code_span("a``b") == "```a``b```"
    assert code_span("`a`") == "`` `a` ``"
    assert code_block("x\n````\ny", "sh") == "`````sh\nx\n````\ny\n`````"


async def test_a_command_for_the_background_that_cannot_begin_is_shown_as_ended(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    user = ToolUser(folder)
    prepared = await user.prepare("shell", command="ls", background=True)
    folder.rmdir()
    progress = RecordedProgress()
    with pytest.raises(WorkspaceError):
        await prepared.run(progress)
    assert len(progress.behind) == 1
    assert progress.ended == [CommandEnd(lost=True, reported=True)]
