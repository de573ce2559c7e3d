"""A conversation on the screen: what has ended is written once, what goes on is drawn anew."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal
from weakref import WeakSet

from acp_agent.cli.chat.call_lines import CallLines, details, status_name
from acp_agent.cli.chat.calls import Calls, ShownCall
from acp_agent.cli.chat.markdown import Blocks
from acp_agent.cli.chat.rendering import Renderer
from acp_agent.cli.chat.state import PLAN_MARKS
from acp_agent.cli.localization import translate
from acp_agent.cli.output import inert, one_line
from acp_agent.cli.screen import block_text
from protocol.v1 import types as acp

_LIVE_CALLS = 4
_LIVE_ROWS = 16  # of everything that goes on
_THOUGHT = 100_000  # characters of a thought that are kept
_SAID = 100_000  # characters of a notice
_SAID_HEAD, _SAID_TAIL, _SAID_LINE = 20, 10, 2_000  # lines of the user's, characters of each
_PLANNED = 100  # tasks of a plan that are shown
_DETAIL_LINES = 400  # of a change, and of an output
_REPLAYED = 300  # updates of an earlier conversation that are shown

_Kind = Literal["", "text", "thought", "call", "plan", "note", "user"]
# Characters between two frames that are laid out with care; of more there is no reading anyway, and
# the keys must go on working.
_CAREFUL = 30_000
_CALL_COST, _LINE_COST = 2_000, 200  # what a call, and any other line, count like


class Transcript:
    """Takes updates, gives the lines that are finished to `commit`, and draws the others.

    Args:
        renderer: lays lines out.
        find: looks the session's tool calls up.
        width: the columns of the terminal, as they are now.
        commit: takes lines that do not change any more.
        cwd: paths are shown relative to it.

    Attributes:
        calls: how tool calls look.
    """

    def __init__(
        self,
        renderer: Renderer,
        *,
        find: Callable[[], Calls],
        width: Callable[[], int],
        commit: Callable[[Sequence[str]], None],
        cwd: Path,
    ) -> None:
        self._renderer = renderer
        self._find = find
        self._width = width
        self._commit = commit
        self.calls = CallLines(renderer, cwd)
        self._before: _Kind = ""  # what was written last
        self._speaking: Literal["", "agent", "user", "thought"] = ""
        self._message: str | None = None
        self._blocks = Blocks()
        self._thought: list[str] = []
        self._thought_size = 0
        self._last_thought = ""
        self._user: list[str] = []
        self._open_calls: dict[str, ShownCall] = {}
        self._written: WeakSet[ShownCall] = WeakSet()  # calls whose end is on the screen
        self._planned: tuple[str, ...] = ()
        self._replay: deque[acp.SessionUpdate] | None = None
        self._replayed = 0
        self._spent = 0  # characters since the last frame

    # --- what comes

    def show(self, update: acp.SessionUpdate) -> None:
        """Take one update."""
        if self._replay is not None:
            self._replay.append(update)  # most of a long conversation is never looked at
            self._replayed += 1
            return
        match update:
            case acp.AgentMessageChunk():
                self._say("agent", update)
                for block in self._blocks.feed(block_text(update.content)):
                    self._write_block(block.text, joined=block.joined)
            case acp.AgentThoughtChunk():
                self._say("thought", update)
                self._think(block_text(update.content))
            case acp.UserMessageChunk():
                self._say("user", update)
                self._user.append(block_text(update.content))
            case acp.ToolCall() | acp.ToolCallProgress():
                self._call(update)
            case acp.Plan():
                self._plan(update)
            case acp.Notice():
                self.finish_message()
                style = "bad" if update.severity == "error" else "warning"
                text = f"! {update.title} {update.description or ''}".rstrip()
                self.write("note", self._renderer.text(text[:_SAID], self._width(), style))
            case _:
                pass

    def say(self, text: str, style: str = "") -> None:
        """Write something of the chat's own."""
        self.finish_message()
        self.write("note", self._renderer.text(text[:_SAID], self._width(), style))

    def user(self, text: str, mark: str = "", *, prompt: str = "> ") -> None:
        """Write what the user typed behind a prompt of two columns, and what became of it."""
        self.finish_message()
        lines = self._renderer.text(_shortened(text), self._width() - 2, "user")
        shown = [f"{prompt if index == 0 else '  '}{line}" for index, line in enumerate(lines)]
        if mark:
            shown += self._renderer.text(f"  {mark}", self._width(), "dim")
        self.write("user", shown)

    def details(self, call: ShownCall) -> None:
        """Write all that is known of a call."""
        self.say("\n".join(details(call.title, call.raw_input)), "bold")
        for diff in call.diffs:
            self.write("note", self.calls.diff(diff, self._width(), _DETAIL_LINES))
        text = call.output_lines()[-_DETAIL_LINES:]
        if text:
            self.say("\n".join(text))

    def thoughts(self) -> None:
        """Write the last thought in full."""
        text = "".join(self._thought) or self._last_thought
        self.finish_message()
        shown = text or translate("There were no thoughts yet.")
        self.write("note", self._renderer.text(shown, self._width(), "thought"))

    def finish_message(self) -> None:
        """What was being said or thought has ended."""
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
        self._speaking, self._message = "", None

    def finish(self) -> None:
        """The turn has ended, and with it whatever still seemed to go on."""
        self.finish_message()
        for call in list(self._open_calls.values()):
            self._end_call(call)

    def replaying(self, session: str) -> None:
        """Gather an earlier conversation; without a session, write the end of what there is."""
        if session:
            self.finish()
            self._replay, self._replayed = deque(maxlen=_REPLAYED), 0
            self._planned = ()
            return
        updates, self._replay = self._replay or deque(), None
        self._before = ""
        if self._replayed > len(updates):
            cut = translate("... what was said before is not shown")
            self.write("note", self._renderer.text(cut, self._width(), "dim"))
        for update in updates:
            self.show(update)
        self.finish()

    # --- what is drawn anew

    def live(self, rows: int, *, without: str = "") -> list[str]:
        """The lines of what goes on, at most `rows`; not of the call that is asked about."""
        self._spent = 0
        width = self._width()
        rows = min(rows, _LIVE_ROWS)
        if rows <= 0:
            return []
        below = self._live_calls(width, max(rows // 2, 1), without)
        above: list[str] = []
        if self._thought:
            last = "".join(self._thought[-50:])[-400:]
            shown = translate("thinking: {thought}", thought=" ".join(last.split())[-width:])
            above = [self._renderer.cut(f"~ {shown}", width, "thought")]
        elif self._blocks.open.strip():
            above = self._renderer.markdown(self._blocks.open, width)
        return [*above[-max(rows - len(below), 1) :], *below]

    def _live_calls(self, width: int, rows: int, without: str) -> list[str]:
        lines: list[str] = []
        shown = [call for call in self._open_calls.values() if call.id != without]
        for call in shown[:_LIVE_CALLS]:
            lines += self.calls.running(call, width)
        if len(shown) > _LIVE_CALLS:
            more = translate("... {count} more calls", count=len(shown) - _LIVE_CALLS)
            lines += self._renderer.text(more, width, "dim")
        return lines[-rows:]

    # --- what is written

    def write(self, kind: _Kind, lines: Sequence[str], *, joined: bool = False) -> None:
        """Write lines that do not change any more, set apart from other kinds."""
        apart = self._before and not joined and (kind != self._before or kind in {"text", "user"})
        written = ["", *lines] if apart else list(lines)
        self._before = kind
        self._commit(written)

    def _say(self, who: Literal["agent", "user", "thought"], update: acp.ContentChunk) -> None:
        """Whoever speaks now; what another one, or another message, had to say has ended."""
        if who != self._speaking or update.message_id != self._message:
            self.finish_message()
            self._speaking, self._message = who, update.message_id

    def _think(self, text: str) -> None:
        if self._thought_size < _THOUGHT:
            self._thought.append(text)
            self._thought_size += len(text)

    def _write_block(self, text: str, *, joined: bool) -> None:
        if self._is_flood(len(text)):
            lines = inert(text).split("\n")
        else:
            lines = self._renderer.markdown(text, self._width())
        if lines:
            self.write("text", lines, joined=joined)

    def _write_thought(self, text: str) -> None:
        if not text.strip():
            return
        width = self._width()
        line = f"~ {translate('thought: {thought}', thought=one_line(text, 2 * width))}"
        if not self._is_flood(_LINE_COST):
            line = self._renderer.cut(line, width, "thought")
        self.write("thought", [line])

    def _is_flood(self, cost: int) -> bool:
        """Whether there is more between two frames than can be laid out with care."""
        self._spent += cost
        return self._spent > _CAREFUL

    def _call(self, update: acp.ToolCall | acp.ToolCallProgress) -> None:
        call = self._find().get(update.tool_call_id)
        if call is None:
            return
        if call.ended:
            # Once: of an earlier conversation each update is shown when its call has ended.
            if call not in self._written:
                self._end_call(call)
            return
        if call.id not in self._open_calls:
            self.finish_message()
            self._open_calls[call.id] = call

    def _end_call(self, call: ShownCall) -> None:
        self._open_calls.pop(call.id, None)
        if call.ended:  # one that seems to go on may end later
            self._written.add(call)
        if call.kind == "think" and call.status == "completed":
            return  # its effect, such as a plan, shows by itself
        self.finish_message()
        width = self._width()
        if self._is_flood(_CALL_COST):
            self.write("call", [f"{one_line(call.title, width)} {status_name(call)}"])
            return
        self.write("call", self.calls.ended(call, width))

    def _plan(self, plan: acp.Plan) -> None:
        """Write the plan where its tasks changed; how far it is, the toolbar says."""
        tasks = tuple(entry.content for entry in plan.entries)
        done = all(entry.status == "completed" for entry in plan.entries)
        if tasks == self._planned and not done:
            return
        self._planned = tasks
        self.finish_message()
        if self._is_flood(_LINE_COST * len(plan.entries)):
            done_now = sum(entry.status == "completed" for entry in plan.entries)
            line = translate("plan {done}/{count}", done=done_now, count=len(plan.entries))
            self.write("plan", [line])
        else:
            self.write("plan", self.plan_lines(plan.entries))

    def plan_lines(self, entries: Sequence[acp.PlanEntry]) -> list[str]:
        """The tasks of a plan, one below the other."""
        lines: list[str] = []
        for entry in entries[:_PLANNED]:
            style = "bold" if entry.status == "in_progress" else "dim"
            text = one_line(entry.content, 500)
            mark = (f"  {PLAN_MARKS[entry.status]} ", style)
            lines += self._renderer.marked(mark, [(text, style)], self._width())
        return lines


def _shortened(text: str) -> str:
    """What the user said, which the user knows: of a long text the beginning and the end."""
    lines = text.split("\n")
    cut = len(lines) - _SAID_HEAD - _SAID_TAIL
    if cut > 1:
        more = translate("... {count} more lines", count=cut)
        lines = [*lines[:_SAID_HEAD], more, *lines[-_SAID_TAIL:]]
    return "\n".join(line if len(line) <= _SAID_LINE else f"{line[:_SAID_LINE]}…" for line in lines)
