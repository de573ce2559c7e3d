"""Run a shell command line."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import html
import re
import shlex
from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

from msgspec.structs import replace
from pydantic import BeforeValidator, Field

from acp_agent.content import JsonObject, TerminalPart, text_part
from acp_agent.errors import ToolError, WorkspaceError
from acp_agent.events import ToolKind
from acp_agent.permissions.access import CommandAccess
from acp_agent.platform import posix
from acp_agent.sandbox.launch import Confinement
from acp_agent.tools.base import (
    EVERYTHING,
    READS_OR_EVERYTHING,
    CommandEnd,
    Outcome,
    Prepared,
    Progress,
    Tool,
    ToolParams,
    Touches,
)
from acp_agent.tools.calls.argument_json import read_json
from acp_agent.tools.quoting import code_block, code_span, first_line, shorten
from acp_agent.workspace.background_commands import BackgroundCommand
from acp_agent.workspace.processes import CommandResult, EditorTerminals
from acp_agent.workspace.workspace import Workspace

TITLE_LIMIT = 120  # characters of the command in the title
MAX_SHOWN_LENGTH = 10_000  # displayed characters of output at the end of the call
TERMINAL_BYTES = 50_000  # of output that an editor's terminal keeps
MAX_TIMEOUT = 600.0  # seconds
_SHELL = re.compile(r"(?:/\S*/)?(?:ba|z|da)?sh")
# A here-document for `apply_patch`, as codex's models write it.
_PATCH_LINES = re.compile(
    r"\s*(?:cd\s+(?P<folder>[^\s;&|]+)\s*(?:&&|;)\s*)?"
    r"apply_patch\s*<<-?\s*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)\s*\n"
    r"(?P<patch>\*\*\* Begin Patch\n.*)\n(?P=end)\s*",
    re.DOTALL,
)
_CALLS_PATCH = re.compile(r"\s*(?:cd\s+[^\s;&|]+\s*(?:&&|;)\s*)?apply_patch\b")
_FENCED_COMMAND = re.compile(
    r"\s*```(?:bash|console|sh|shell|zsh)?\n((?:(?!```).)*?)\s*```\s*", re.DOTALL
)
_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'[^']*'", re.DOTALL)
_ESCAPED_OPERATOR = re.compile(r"\s(?:&amp;&amp;|(?:&gt;){1,2}|&lt;)\s")  # not in any command
_TIMEOUT_ADVICE = "; give a larger `timeout`, or set `background` for what does not end by itself"


def command_text(value: object) -> object:
    """Return a command given as a list of words, or as JSON, as a command line.

    For `bash -c SCRIPT` the result is the script. Other values are unchanged.
    """
    words = value
    if isinstance(value, str) and value.lstrip().startswith('["'):
        with contextlib.suppress(ValueError):
            words = read_json(value)
    if isinstance(words, str) and (fenced := _FENCED_COMMAND.fullmatch(words)):
        words = fenced[1]
        value = words
    if isinstance(words, str) and re.match(r"\$ \S", words) and "\n" not in words.strip():
        return words[2:]  # the prompt of a shell
    if isinstance(words, str) and _ESCAPED_OPERATOR.search(_QUOTED.sub("", words)):
        return html.unescape(words)
    if not isinstance(words, list) or not words:
        return value
    line = [str(word) if isinstance(word, int | float) else word for word in words]
    if not all(isinstance(word, str) for word in line):
        return value
    if len(line) == 3 and _SHELL.fullmatch(line[0]) and line[1] in {"-c", "-lc"}:
        return line[2]
    return line[0] if len(line) == 1 else shlex.join(line)


def extract_patch(command: str, cwd: str) -> str | None:
    """Return the patch of a command line that gives one to `apply_patch` and does nothing else."""
    match = _PATCH_LINES.fullmatch(command)
    if match is not None:
        return match["patch"] if match["folder"] in {None, ".", cwd} else None
    if not re.match(r"\s*apply_patch\s", command):
        return None
    with contextlib.suppress(ValueError):
        words = shlex.split(command)
        return words[1] if len(words) == 2 and words[1].startswith("*** Begin Patch") else None
    return None


class ShellParams(ToolParams):
    """The shell tool's parameters."""

    command: Annotated[str, Field(min_length=1), BeforeValidator(command_text)]
    timeout: Annotated[float | None, Field(gt=0, le=MAX_TIMEOUT, description="Seconds.")] = None
    background: bool = False
    description: Annotated[
        str | None, Field(max_length=200, description="What it is for, in a few words.")
    ] = None


class ShellTool(Tool[ShellParams]):
    """Runs a command line in the session's folder."""

    name: ClassVar[str] = "shell"
    kind: ClassVar[ToolKind] = "execute"
    effect: ClassVar[Literal["reads", "writes"]] = "writes"
    params: ClassVar[type[ShellParams]] = ShellParams
    reversible = False  # whether checkpoints can undo what confined commands do
    unasked = False  # whether such commands run without a question

    def __init__(
        self,
        workspace: Workspace,
        *,
        default_timeout: float = 60.0,
        notice: Callable[[], str] = str,
        refused: str = "",
    ) -> None:
        """Make the tool.

        Args:
            workspace: where commands run.
            default_timeout: time limit in seconds if the call has none.
            notice: returns a notice to show with the next command.
            refused: why no command may run; "" if commands are allowed.
        """
        super().__init__(workspace)
        self._default_timeout = default_timeout
        self._notice = notice
        self._refused = refused

    def forwarded(self, arguments: JsonObject) -> tuple[str, JsonObject] | None:
        """Return the call of `apply_patch` if the command is only that, in the session's folder."""
        command = command_text(arguments.get("command", arguments.get("cmd")))
        folders = {arguments.get(name) or "." for name in ("workdir", "cwd")}
        if not isinstance(command, str) or folders - {".", str(self.workspace.cwd)}:
            return None
        patch = extract_patch(command, str(self.workspace.cwd))
        return None if patch is None else ("apply_patch", {"input": patch})

    def title(self, arguments: JsonObject) -> str:
        """Return the command received so far."""
        command = arguments.get("command")
        line = first_line(command, TITLE_LIMIT) if isinstance(command, str) else ""
        return code_span(line) if line else self.name

    def touches(self, params: ShellParams) -> Touches:
        """Return any file, unless the permission gate knows that the command only reads."""
        return EVERYTHING if params.background else READS_OR_EVERYTHING

    async def prepare(self, params: ShellParams) -> Prepared:
        """Show the command; the title has the command itself, not only its purpose."""
        if self._refused:
            raise ToolError(f"no command may run: {self._refused}", advice="tell the user")
        line = first_line(params.command, TITLE_LIMIT)
        if not line:
            raise ToolError("the command is empty", advice="give a command line")
        if _CALLS_PATCH.match(params.command):
            raise ToolError(
                "apply_patch is a tool and not a program", advice="call it as a tool, or use `edit`"
            )
        title = code_span(line)
        if params.description and (purpose := first_line(params.description, 80)):
            title += f" ({purpose})"
        if params.background:
            self.workspace.background.check_limit()
        confinement = self.confinement(params)
        return Prepared(
            title=title,
            run=functools.partial(
                self._run_in_background if params.background else self._run, params, confinement
            ),
            access=CommandAccess(
                params.command,
                str(self.workspace.cwd),
                roots=tuple(str(root) for root in self.workspace.files.roots),
                confined=confinement.confined,
                outside=confinement.outside,
                hosts=confinement.hosts,
                reversible=confinement.confined and self.reversible,
                auto_allowed=confinement.confined and self.unasked,
                background=params.background,
            ),
            content=(text_part(code_block(params.command, "sh")),),
        )

    def confinement(self, params: ShellParams) -> Confinement:
        """Return what a command may reach."""
        del params
        return Confinement(confined=False)

    def explain(self, outcome: Outcome, result: CommandResult) -> Outcome:
        """Return an outcome with notes on how the command ran."""
        del result
        return outcome

    async def _run(
        self, params: ShellParams, confinement: Confinement, progress: Progress
    ) -> Outcome:
        timeout = params.timeout or self._default_timeout
        terminals = self.workspace.terminals
        try:
            if terminals is not None:
                result = await self._run_in_editor(params.command, timeout, terminals, progress)
            else:
                result = await self.workspace.processes.run(
                    params.command,
                    self.workspace.cwd,
                    timeout=timeout,
                    on_output=progress.output,
                    stop=progress.stop,
                    only_reads=progress.only_reads,
                    confinement=confinement,
                )
        finally:
            self.workspace.files.note_commands_ran()
        outcome = _outcome(result, timeout, in_terminal=terminals is not None)
        if outcome.content is not None and (notice := self._notice()):
            outcome = replace(outcome, content=(*outcome.content, text_part(notice)))
        return self.explain(outcome, result)

    async def _run_in_background(
        self, params: ShellParams, confinement: Confinement, progress: Progress
    ) -> Outcome:
        """Start the command and return; it runs here even if others run in an editor's terminal."""
        workspace = self.workspace
        command = workspace.background.new(progress.call, params.command)

        async def on_end(command: BackgroundCommand) -> None:
            workspace.files.note_commands_ran()
            result = command.result
            if result is None:
                await progress.background_ended(CommandEnd(lost=True, reported=command.reported))
                return
            await progress.background_ended(
                CommandEnd(
                    exit_code=result.exit_code,
                    signal=result.signal,
                    timed_out=result.timed_out,
                    stopped=result.stopped and not command.reported,
                    reported=command.reported,
                )
            )

        try:
            await progress.moved_to_background(
                command.name, first_line(params.command, TITLE_LIMIT)
            )
            await command.start(
                workspace.processes,
                workspace.cwd,
                timeout=params.timeout,
                only_reads=progress.only_reads,
                confinement=confinement,
                on_output=progress.output,
                on_end=on_end,
            )
        except BaseException as error:
            workspace.background.forget(command)
            if isinstance(error, (WorkspaceError, asyncio.CancelledError)):
                await progress.background_ended(CommandEnd(lost=True, reported=True))
            raise
        return Outcome(
            text=f"It runs in the background as {command.name}. You are told when it ends; the "
            "tool `background` has its output and stops it.",
            raw_output={"background": command.name},
        )

    async def _run_in_editor(
        self, command: str, timeout: float, terminals: EditorTerminals, progress: Progress
    ) -> CommandResult:
        async def show_terminal(terminal: str) -> None:
            await progress.show(content=(TerminalPart(terminal),))

        return await terminals.run(
            command,
            self.workspace.cwd,
            limit_bytes=TERMINAL_BYTES,
            timeout=timeout,
            only_reads=progress.only_reads,
            on_start=show_terminal,
        )


def _outcome(result: CommandResult, timeout: float, *, in_terminal: bool) -> Outcome:
    status = ending(result, timeout)
    output = result.output.rstrip("\n")
    user_text = (
        f"{code_block(shorten(output, MAX_SHOWN_LENGTH), 'console')}\n{status}"
        if output
        else status
    )
    advice = _TIMEOUT_ADVICE if result.timed_out else ""
    return Outcome(
        text=f"{output}\n[{status}{advice}]" if output else f"[no output; {status}{advice}]",
        failed=result.timed_out or result.exit_code != 0,
        content=None if in_terminal else (text_part(user_text),),
        raw_output={
            "exit_code": result.exit_code,
            "signal": result.signal,
            "timed_out": result.timed_out,
            "truncated": result.full_output is not None,
            "output_file": result.full_output,
        },
        exit_code=result.exit_code,
        signal=result.signal,
    )


def ending(result: CommandResult, timeout: float | None = None, *, by: str = "by the user") -> str:
    """Return how a command ended, as text; `by` says who stopped it."""
    if result.timed_out and timeout is None:
        return "its time was over and it was ended"
    if result.timed_out:
        return f"timed out after {timeout:g} s and was ended"
    if result.stopped:
        return f"stopped {by} ({_status(result)})"
    return _status(result)


def _status(result: CommandResult) -> str:
    if result.signal is not None:
        return f"ended by {result.signal}"
    if result.exit_code is None:
        return "ended without an exit code"
    # A shell reports a program that a signal ended as 128 + the signal's number (POSIX, 2.8.2).
    name = posix.signal_name(result.exit_code - 128) if result.exit_code > 128 else ""
    cause = f" ({name})" if name.startswith("SIG") else ""
    return f"exit code {result.exit_code}{cause}"
