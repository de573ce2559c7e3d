"""Lines of tool calls for the terminal."""

from __future__ import annotations

import json
from pathlib import Path

from acp_agent.cli.chat.rendering import Renderer
from acp_agent.cli.chat.session_state import ShownCall
from acp_agent.cli.localization import translate
from acp_agent.cli.output import one_line, terminal_text
from acp_agent.cli.screen import diff_lines, relative_path
from protocol.v1 import types as acp

_HEAD_LINES, _TAIL_LINES = 3, 7  # lines of a call's output that are shown when it ends
_LIVE_LINES = 5  # of a running command
_OPEN_MARKS = {"pending": ("○", "."), "in_progress": ("◐", ">")}
_END_MARKS = {"completed": ("✔", "+"), "failed": ("✘", "!")}


class CallLines:
    """Renders tool calls as lines. Paths are relative to `cwd`."""

    def __init__(self, renderer: Renderer, cwd: Path) -> None:
        self._renderer = renderer
        self._cwd = cwd

    def running(self, call: ShownCall, width: int) -> list[str]:
        """Return the lines of a running call: its title and the end of its output."""
        lines = self.title(call, width)
        if call.status == "pending":
            return lines  # its content describes what it is going to do
        for line in call.output_lines()[-_LIVE_LINES:]:
            lines.append(self._renderer.cut(f"  {self._bar} {line}", width, "dim"))
        return lines

    def finished(self, call: ShownCall, width: int) -> list[str]:
        """Return the lines of a finished call: title, permission, changes, output."""
        lines = self.title(call, width)
        if call.answer:
            lines += self._renderer.text(f"  -> {call.answer}", width, "bold")
        for diff in call.diffs:
            lines += self.diff(diff, width)
        if not call.diffs or call.status == "failed":
            lines += self.output(call, width)
        return lines

    def diff(self, diff: acp.Diff, width: int, limit: int = 60) -> list[str]:
        """Return the lines of a file's diff."""
        lines: list[str] = []
        hunk: list[tuple[str, str]] = []
        for line, style in diff_lines(diff, self._cwd, limit=limit):
            if line[:1] in {"+", "-", " "}:
                hunk.append((line, style))
                continue
            lines += self._renderer.changes(hunk, diff.path, width)
            hunk = []
            lines += self._renderer.spans([(f"  {line}", style)], width)
        return lines + self._renderer.changes(hunk, diff.path, width)

    def output(self, call: ShownCall, width: int) -> list[str]:
        """Return the beginning and the end of a call's output."""
        lines = call.output_lines()
        style = "bad" if call.status == "failed" else "dim"
        hidden = len(lines) - _HEAD_LINES - _TAIL_LINES
        if hidden > 1:
            more = translate("... {count} more lines; show them with /output", count=hidden)
            lines = [*lines[:_HEAD_LINES], more, *lines[-_TAIL_LINES:]]
        if call.status == "failed":  # show the whole reason
            return [
                f"  {self._bar} {part}"
                for line in lines
                for part in self._renderer.text(line, width - 4, style)
            ]
        return [self._renderer.cut(f"  {self._bar} {line}", width, style) for line in lines]

    def title(self, call: ShownCall, width: int) -> list[str]:
        """Return a call's title, kind, status and files."""
        marks = _END_MARKS.get(call.status) or _OPEN_MARKS.get(call.status, ("○", "."))
        style = {"completed": "good", "failed": "bad"}.get(call.status, "warning")
        details_ = [kind_name(call.kind), status_name(call)]
        paths = [
            relative_path(location.path, self._cwd)
            for location in call.locations[:3]
            if Path(location.path).name not in call.title
        ]
        details_ += [one_line(path, 60) for path in paths]
        return self._renderer.marked(
            (f"{marks[0 if self._renderer.unicode else 1]} ", style),
            [
                (one_line(call.title, 300), "call"),
                (f"  {translate(', ').join(fact for fact in details_ if fact)}", "dim"),
            ],
            width,
        )

    @property
    def _bar(self) -> str:
        return "│" if self._renderer.unicode else "|"


def kind_name(kind: str) -> str:
    """Return the name of a kind of tool calls; empty for `other`."""
    return {
        "read": translate("read"),
        "edit": translate("edit"),
        "delete": translate("delete"),
        "move": translate("move"),
        "search": translate("search"),
        "execute": translate("command"),
        "think": translate("thinking"),
        "fetch": translate("fetch"),
        "switch_mode": translate("mode"),
    }.get(kind, "")


def status_name(call: ShownCall) -> str:
    """Return the name of a call's status."""
    if call.status == "failed" and call.exit_code:
        return translate("failed with exit code {code}", code=call.exit_code)
    return {
        "pending": translate("waits"),
        "in_progress": translate("runs"),
        "completed": translate("done"),
        "failed": translate("failed"),
    }.get(call.status, call.status)


def details(title: str, raw_input: object, *, limit: int = 60) -> list[str]:
    """Return a call's title and arguments as escaped lines."""
    lines = [title]
    if raw_input is not None:
        text = json.dumps(raw_input, ensure_ascii=False, indent=2, default=str)
        argument_lines = terminal_text(text).split("\n")
        lines += [f"  {line}" for line in argument_lines[:limit]]
        if len(argument_lines) > limit:
            lines.append(translate("... {count} more lines", count=len(argument_lines) - limit))
    return lines
