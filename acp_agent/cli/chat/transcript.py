"""The transcript: complete parts are written once, the rest is redrawn with each frame."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal
from weakref import WeakSet

from acp_agent.cli.chat.call_lines import CallLines, details, status_name
from acp_agent.cli.chat.markdown import Blocks
from acp_agent.cli.chat.rendering import Renderer
from acp_agent.cli.chat.session_state import PLAN_MARKS, Calls, ShownCall
from acp_agent.cli.localization import translate
from acp_agent.cli.output import one_line, terminal_text
from acp_agent.cli.screen import block_text
from protocol.v1 import types as acp

_MAX_LIVE_CALLS = 4
_MAX_LIVE_ROWS = 16
_MAX_THOUGHT = 100_000  # characters of a thought that are stored
_MAX_NOTE = 100_000  # characters of a message of the chat
_PROMPT_HEAD, _PROMPT_TAIL, _PROMPT_LINE = 20, 10, 2_000  # lines of a prompt, characters of each
_MAX_PLAN_TASKS = 100  # tasks of a plan that are shown
_MAX_DETAIL_LINES = 400  # of a diff, and of an output
_MAX_REPLAYED = 300  # updates of an earlier conversation that are shown

_Kind = Literal["", "text", "thought", "call", "plan", "note", "user"]
# Characters per frame that are laid out. Nobody can read more, and keys must stay responsive.
_MAX_LAID_OUT = 30_000
_CALL_COST, _LINE_COST = 2_000, 200  # counted for a call, and for any other line


class Transcript:
    """Converts updates into lines; complete ones go to `commit`, the others to `live`.

    Args:
        calls: returns the session's tool calls.
        width: returns the columns of the terminal.
        commit: writes lines that no longer change.
    """

    def __init__(
        self,
        renderer: Renderer,
        *,
        calls: Callable[[], Calls],
        width: Callable[[], int],
        commit: Callable[[Sequence[str]], None],
        cwd: Path,
    ) -> None:
        self._renderer = renderer
        self._get_calls = calls
        self._width = width
        self._commit = commit
        self.calls = CallLines(renderer, cwd)
        self._last_kind: _Kind = ""  # kind of the last written lines
        self._speaker: Literal["", "agent", "user", "thought"] = ""
        self._message: str | None = None
        self._blocks = Blocks()
        self._thought: list[str] = []
        self._thought_size = 0
        self._last_thought = ""
        self._user: list[str] = []
        self._open_calls: dict[str, ShownCall] = {}
        self._finished_calls: WeakSet[ShownCall] = WeakSet()  # calls whose result is on the screen
        self._shown_tasks: tuple[str, ...] = ()
        self._replay: deque[acp.SessionUpdate] | None = None
        self._replay_count = 0
        self._laid_out = 0  # characters since the last frame

    def show(self, update: acp.SessionUpdate) -> None:
        """Show one update."""
        if self._replay is not None:
            self._replay.append(update)  # only the end of a long replay is shown
            self._replay_count += 1
            return
        match update:
            case acp.AgentMessageChunk():
                self._continue_message("agent", update)
                for block in self._blocks.feed(block_text(update.content)):
                    self._write_block(block.text, joined=block.joined)
            case acp.AgentThoughtChunk():
                self._continue_message("thought", update)
                self._add_thought(block_text(update.content))
            case acp.UserMessageChunk():
                self._continue_message("user", update)
                self._user.append(block_text(update.content))
            case acp.ToolCall() | acp.ToolCallProgress():
                self._call(update)
            case acp.Plan():
                self._plan(update)
            case acp.Notice():
                self.finish_message()
                style = "bad" if update.severity == "error" else "warning"
                text = f"! {update.title} {update.description or ''}".rstrip()
                self._write("note", self._renderer.text(text[:_MAX_NOTE], self._width(), style))

    def say(self, text: str, style: str = "") -> None:
        """Write a message of the chat itself."""
        self.finish_message()
        self._write("note", self._renderer.text(text[:_MAX_NOTE], self._width(), style))

    def user(self, text: str, remark: str = "", *, prompt: str = "> ") -> None:
        """Write the user's input after a two-column prompt, with a remark below."""
        self.finish_message()
        lines = self._renderer.text(_shorten(text), self._width() - 2, "user")
        rows = [f"{prompt if index == 0 else '  '}{line}" for index, line in enumerate(lines)]
        if remark:
            rows += self._renderer.text(f"  {remark}", self._width(), "dim")
        self._write("user", rows)

    def details(self, call: ShownCall) -> None:
        """Write a call in full."""
        self.say("\n".join(details(call.title, call.raw_input)), "bold")
        for diff in call.diffs:
            self._write("note", self.calls.diff(diff, self._width(), _MAX_DETAIL_LINES))
        text = call.output_lines()[-_MAX_DETAIL_LINES:]
        if text:
            self.say("\n".join(text))

    def show_thoughts(self) -> None:
        """Write the last thought in full."""
        text = "".join(self._thought) or self._last_thought
        self.finish_message()
        content = text or translate("No thoughts yet.")
        self._write("note", self._renderer.text(content, self._width(), "thought"))

    def finish_message(self) -> None:
        """Write the rest of the open message or thought."""
        for block in self._blocks.close():
            self._write_block(block.text, joined=block.joined)
        if self._thought:
            self._last_thought = "".join(self._thought)
            self._thought.clear()
            self._thought_size = 0
            self._write_thought(self._last_thought)
        if self._user:
            text = "".join(self._user)
            self._user.clear()
            self.user(text)
        self._speaker, self._message = "", None

    def finish(self) -> None:
        """Write everything that is open, because the turn has ended."""
        self.finish_message()
        for call in list(self._open_calls.values()):
            self._end_call(call)

    def start_replay(self) -> None:
        """Collect the updates of an earlier conversation."""
        self.finish()
        self._replay, self._replay_count = deque(maxlen=_MAX_REPLAYED), 0
        self._shown_tasks = ()

    def end_replay(self) -> None:
        """Write the end of the earlier conversation."""
        updates, self._replay = self._replay or deque(), None
        self._last_kind = ""
        if self._replay_count > len(updates):
            cut = translate("... earlier messages are not shown")
            self._write("note", self._renderer.text(cut, self._width(), "dim"))
        for update in updates:
            self.show(update)
        self.finish()

    def live(self, rows: int, *, without: str = "") -> list[str]:
        """Return at most `rows` lines of the open parts, except for the call `without`."""
        self._laid_out = 0
        width = self._width()
        rows = min(rows, _MAX_LIVE_ROWS)
        if rows <= 0:
            return []
        call_lines = self._live_calls(width, max(rows // 2, 1), without)
        message_lines: list[str] = []
        if self._thought:
            last = "".join(self._thought[-50:])[-400:]
            tail = translate("thinking: {thought}", thought=" ".join(last.split())[-width:])
            message_lines = [self._renderer.cut(f"~ {tail}", width, "thought")]
        elif self._blocks.open.strip():
            message_lines = self._renderer.markdown(self._blocks.open, width)
        return [*message_lines[-max(rows - len(call_lines), 1) :], *call_lines]

    def _live_calls(self, width: int, rows: int, without: str) -> list[str]:
        lines: list[str] = []
        calls_ = [call for call in self._open_calls.values() if call.id != without]
        for call in calls_[:_MAX_LIVE_CALLS]:
            lines += self.calls.running(call, width)
        if len(calls_) > _MAX_LIVE_CALLS:
            more = translate("... {count} more calls", count=len(calls_) - _MAX_LIVE_CALLS)
            lines += self._renderer.text(more, width, "dim")
        return lines[-rows:]

    def _write(self, kind: _Kind, lines: Sequence[str], *, joined: bool = False) -> None:
        """Write complete lines, after an empty line if the previous ones are of another kind."""
        separated = (
            self._last_kind and not joined and (kind != self._last_kind or kind in {"text", "user"})
        )
        output = ["", *lines] if separated else list(lines)
        self._last_kind = kind
        self._commit(output)

    def _continue_message(
        self, speaker: Literal["agent", "user", "thought"], update: acp.ContentChunk
    ) -> None:
        """Start or continue a message; write the rest of the previous one."""
        if speaker != self._speaker or update.message_id != self._message:
            self.finish_message()
            self._speaker, self._message = speaker, update.message_id

    def _add_thought(self, text: str) -> None:
        if self._thought_size < _MAX_THOUGHT:
            self._thought.append(text)
            self._thought_size += len(text)

    def _write_block(self, text: str, *, joined: bool) -> None:
        if self._is_flood(len(text)):
            lines = terminal_text(text).split("\n")
        else:
            lines = self._renderer.markdown(text, self._width())
        if lines:
            self._write("text", lines, joined=joined)

    def _write_thought(self, text: str) -> None:
        if not text.strip():
            return
        width = self._width()
        line = f"~ {translate('thought: {thought}', thought=one_line(text, 2 * width))}"
        if not self._is_flood(_LINE_COST):
            line = self._renderer.cut(line, width, "thought")
        self._write("thought", [line])

    def _is_flood(self, cost: int) -> bool:
        """Return whether there is more text since the last frame than is laid out."""
        self._laid_out += cost
        return self._laid_out > _MAX_LAID_OUT

    def _call(self, update: acp.ToolCall | acp.ToolCallProgress) -> None:
        call = self._get_calls().get(update.tool_call_id)
        if call is None:
            return
        if call.has_ended:
            # Only once: in a replay, every update arrives after its call has ended.
            if call not in self._finished_calls:
                self._end_call(call)
            return
        if call.id not in self._open_calls:
            self.finish_message()
            self._open_calls[call.id] = call

    def _end_call(self, call: ShownCall) -> None:
        self._open_calls.pop(call.id, None)
        if call.has_ended:  # one that still runs may end later
            self._finished_calls.add(call)
        if call.kind == "think" and call.status == "completed":
            return  # its effect, such as a plan, is shown
        self.finish_message()
        width = self._width()
        if self._is_flood(_CALL_COST):
            self._write("call", [f"{one_line(call.title, width)} {status_name(call)}"])
            return
        self._write("call", self.calls.finished(call, width))

    def _plan(self, plan: acp.Plan) -> None:
        """Write the plan if its tasks changed; the toolbar shows its progress."""
        tasks = tuple(entry.content for entry in plan.entries)
        done = all(entry.status == "completed" for entry in plan.entries)
        if tasks == self._shown_tasks and not done:
            return
        self._shown_tasks = tasks
        self.finish_message()
        if self._is_flood(_LINE_COST * len(plan.entries)):
            done_now = sum(entry.status == "completed" for entry in plan.entries)
            line = translate("plan {done}/{count}", done=done_now, count=len(plan.entries))
            self._write("plan", [line])
        else:
            self._write("plan", self._plan_lines(plan.entries))

    def _plan_lines(self, entries: Sequence[acp.PlanEntry]) -> list[str]:
        lines: list[str] = []
        for entry in entries[:_MAX_PLAN_TASKS]:
            style = "bold" if entry.status == "in_progress" else "dim"
            text = one_line(entry.content, 500)
            mark = (f"  {PLAN_MARKS[entry.status]} ", style)
            lines += self._renderer.marked(mark, [(text, style)], self._width())
        return lines


def _shorten(text: str) -> str:
    """Return the beginning and the end of a long prompt."""
    lines = text.split("\n")
    hidden = len(lines) - _PROMPT_HEAD - _PROMPT_TAIL
    if hidden > 1:
        more = translate("... {count} more lines", count=hidden)
        lines = [*lines[:_PROMPT_HEAD], more, *lines[-_PROMPT_TAIL:]]
    return "\n".join(
        line if len(line) <= _PROMPT_LINE else f"{line[:_PROMPT_LINE]}…" for line in lines
    )
