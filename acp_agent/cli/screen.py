"""Show a session's updates as text in a terminal or a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import Literal, TextIO

from msgspec import UNSET, UnsetType

from acp_agent.cli.agent_client import PermissionRequest
from acp_agent.cli.localization import translate
from acp_agent.cli.output import escape_controls, escape_hidden, split_lines
from acp_agent.config.amounts import format_decimal
from acp_agent.config.localization import join_sentences
from acp_agent.diffs import changed_blocks, hunks
from acp_agent.platform.posix import find_program
from protocol.v1 import types as acp

Style = Literal["", "thought", "call", "good", "bad", "warning", "added", "removed", "dim", "bold"]
Paint = Callable[[str, Style], None]

_MAX_FAILURE_LINES = 12
_MARKS = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]"}
_COLOURS: dict[Style, str] = {
    "thought": "dim italic", "call": "cyan", "good": "green", "bad": "red", "warning": "yellow",
    "added": "green", "removed": "red", "dim": "dim", "bold": "bold",
}  # fmt: skip
DiffStyle = Literal["bold", "added", "removed", "dim"]
MAX_DIFF_LINES = 60  # lines of a diff that are shown
_CONTEXT_LINES = 2  # unchanged lines around a change


def painter(out: TextIO) -> Paint:
    """Return a function that writes styled text, with colours on a terminal unless NO_COLOR is set.

    A terminal also shows hidden characters escaped; a pipe only control characters.
    """
    readable = escape_hidden if out.isatty() else escape_controls
    if not out.isatty() or os.environ.get("NO_COLOR"):

        def plain(text: str, _: Style) -> None:
            out.write(readable(text))
            out.flush()

        return plain

    from rich.console import Console  # noqa: PLC0415 - only where there are colours
    from rich.text import Text  # noqa: PLC0415 - only where there are colours

    console = Console(file=out, highlight=False, soft_wrap=True)

    def coloured(text: str, style: Style) -> None:
        console.print(Text(readable(text), _COLOURS.get(style, "")), end="")
        out.flush()

    return coloured


class Screen:
    """Shows updates in order. Paths are shown relative to `cwd`."""

    def __init__(self, paint: Paint, *, cwd: Path, answer: Paint | None = None) -> None:
        """Show everything with `paint`, except for the model's text with `answer`."""
        self._paint = paint
        self._answer = answer or paint
        self._open = paint  # the function that wrote the open line
        self._cwd = cwd
        self._section = ""  # what was shown last
        self._line_open = False
        self._titles: dict[str, str] = {}
        self._quiet: set[str] = set()
        self._diffs: set[tuple[str, str]] = set()  # call and path of the diffs shown
        self._usage: acp.UsageUpdate | None = None

    def update(self, update: acp.SessionUpdate) -> None:
        """Show one update."""
        match update:
            case acp.AgentMessageChunk():
                self._stream("text", block_text(update.content), "")
            case acp.AgentThoughtChunk():
                self._stream("thought", block_text(update.content), "thought")
            case acp.ToolCall(kind="think"):
                self._quiet.add(update.tool_call_id)  # its effect, such as a plan, is shown
            case acp.ToolCall():
                self._titles[update.tool_call_id] = update.title
                self._start_section("call")
                self._line(f"* {update.title}", "call")
                self._content(update.tool_call_id, update.content)
            case acp.ToolCallProgress():
                if update.tool_call_id not in self._quiet or update.status == "failed":
                    self._progress(update)
            case acp.Plan(entries=entries):
                self._start_section("plan")
                for entry in entries:
                    style: Style = "bold" if entry.status == "in_progress" else "dim"
                    self._line(f"  {_MARKS[entry.status]} {entry.content}", style)
            case acp.UsageUpdate():
                self._usage = update
            case acp.Notice():
                self._start_section("notice")
                text = join_sentences(update.title, update.description or "")
                self._line(f"! {text}", "warning")

    def say(self, text: str, style: Style = "") -> None:
        """Show a line of the program itself."""
        self._start_section("own")
        self._line(text, style)

    def close_line(self) -> None:
        """End a line that is still open, before something else writes to the terminal."""
        if self._line_open:
            self._open("\n", "")
            self._line_open = False

    def ask(self, request: PermissionRequest) -> None:
        """Show a permission request and wait at its prompt."""
        self.permission(request)
        for number, option in enumerate(request.options, 1):
            self._line(f"    {number}) {option.name}", "warning")
        self._paint(f"  {translate('Your choice: ')}", "bold")

    def show_answer(self, request: PermissionRequest, answer: str) -> None:
        """Show a permission request and its answer."""
        self.permission(request)
        self._line(f"    -> {answer}", "bold")

    def show_end(self, stop_reason: str, session: str | None = None) -> None:
        """Show how the turn ended, its usage, and how to continue the session."""
        self._start_section("end")
        facts = [translate("stop reason: {reason}", reason=stop_reason)]
        if self._usage is not None:
            usage = self._usage
            used, size = f"{usage.used:,}", f"{usage.size:,}"
            facts.append(translate("context: {used} of {size} tokens", used=used, size=size))
            if usage.cost is not None:
                cost = f"{format_decimal(usage.cost.amount)} {usage.cost.currency}"
                facts.append(translate("cost: {cost}", cost=cost))
        self._line(" | ".join(facts), "dim")
        if session is not None:
            command = f"{program_command()} run --resume {session} ..."
            self._line(translate("Continue with: {command}", command=command), "dim")

    def permission(self, request: PermissionRequest) -> None:
        """Show a permission request, without its options."""
        self._start_section("permission")
        self._line(translate("? Permission: {title}", title=request.title), "warning")
        content = request.request.tool_call.content
        self._content(request.request.tool_call.tool_call_id, content)
        for part in () if content is UNSET or content is None else content:
            if isinstance(part, acp.Content) and isinstance(part.content, acp.TextContent):
                for line in split_lines(part.content.text.strip()):
                    self._line(f"    {line}", "warning")

    def _progress(self, update: acp.ToolCallProgress) -> None:
        call = update.tool_call_id
        if isinstance(update.title, str) and update.title != self._titles.get(call):
            self._titles[call] = update.title
            self._start_section("call")
            self._line(f"* {update.title}", "call")
        output = (update.meta or {}).get("terminal_output")
        if isinstance(output, dict) and isinstance(output.get("data"), str):
            self._output(call, output["data"])
        self._content(call, update.content)
        if update.status == "completed":
            self._result(call, translate("done"), "good")
        elif update.status == "failed":
            self._result(call, translate("failed"), "bad")
            for line in _texts(update.content)[:_MAX_FAILURE_LINES]:
                self._line(f"    {line}", "bad")

    def _result(self, call: str, word: str, style: Style) -> None:
        self._start_section("call")
        title = self._titles.get(call, call)
        self._line(f"  {translate('{title}: {result}', title=title, result=word)}", style)

    def _content(
        self, call: str, content: Sequence[acp.ToolCallContent] | UnsetType | None
    ) -> None:
        for part in () if content is UNSET or content is None else content:
            if isinstance(part, acp.Diff) and (call, part.path) not in self._diffs:
                self._diffs.add((call, part.path))
                if self._section == "plan":
                    self._start_section("call")
                for line, style in diff_lines(part, self._cwd):
                    self._line(f"    {line}", style)

    def _output(self, call: str, text: str) -> None:
        self._start_section(f"output {call}")
        *complete_lines, last = text.split("\n")
        for piece in [*(f"{line}\n" for line in complete_lines), *([last] if last else [])]:
            self._paint(piece if self._line_open else f"    | {piece}", "dim")
            self._line_open, self._open = not piece.endswith("\n"), self._paint

    def _stream(self, section: str, text: str, style: Style) -> None:
        if not text:
            return
        self._start_section(section)
        paint = self._answer if section == "text" else self._paint
        paint(text, style)
        self._line_open, self._open = not text.endswith("\n"), paint

    def _start_section(self, section: str) -> None:
        if section == self._section:
            return
        self.close_line()
        if self._section and {section, self._section} & {"text", "thought", "plan", "end", "own"}:
            self._paint("\n", "")
        self._section = section

    def _line(self, text: str, style: Style) -> None:
        self.close_line()
        self._paint(f"{text}\n", style)


def block_text(content: acp.ContentBlock) -> str:
    """Return a content block as text; other content by its name and address, or its kind."""
    match content:
        case acp.TextContent():
            return content.text
        case acp.ResourceLink():
            return f"[{content.title or content.name}]({content.uri})"
        case acp.EmbeddedResource():
            return f"\n[{getattr(content.resource, 'uri', '')}]\n"
        case _:
            return f"[{content.mime_type}]"


def _texts(content: Sequence[acp.ToolCallContent] | UnsetType | None) -> list[str]:
    return [
        line
        for part in (() if content is UNSET or content is None else content)
        if isinstance(part, acp.Content) and isinstance(part.content, acp.TextContent)
        for line in split_lines(part.content.text.strip())
    ]


def relative_path(path: str, cwd: Path) -> str:
    """Return `path` relative to the session's folder; unchanged if it is outside."""
    file = Path(path)
    if ".." not in file.parts and file.is_relative_to(cwd):
        return str(file.relative_to(cwd))
    return path


def diff_lines(
    part: acp.Diff, cwd: Path, *, limit: int = MAX_DIFF_LINES
) -> Iterator[tuple[str, DiffStyle]]:
    """Yield the file's name, then its changed lines, each prefixed by `+`, `-` or a space.

    Args:
        limit: how many lines are shown; a further line gives the number of the rest.
    """
    yield (
        f"{relative_path(part.path, cwd)}{translate(' (new)') if part.old_text is None else ''}",
        "bold",
    )
    lines = _changes(split_lines(part.old_text or ""), split_lines(part.new_text))
    for line in lines[:limit]:
        yield line, "added" if line[:1] == "+" else "removed" if line[:1] == "-" else "dim"
    if len(lines) > limit:
        yield translate("... {count} more lines", count=len(lines) - limit), "dim"


def _changes(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return a unified diff without its header."""
    return [
        line.removesuffix("\n")
        for hunk in hunks(old, new, changed_blocks(old, new), _CONTEXT_LINES)
        for line in (hunk.header, *(f"{mark}{line}" for mark, run in hunk.runs for line in run))
    ]


def program_command() -> str:
    """Return the program's name if it is on the PATH, else its path, quoted for a shell.

    The path is absolute or relative, whichever is shorter.
    """
    program = Path(sys.executable).with_name("acp-agent")
    if find_program("acp-agent") is not None or not program.exists():
        return "acp-agent"
    try:
        relative = os.path.relpath(program)
    except FileNotFoundError:  # the current folder no longer exists
        return quote(str(program))
    return quote(min(relative, str(program), key=len))
