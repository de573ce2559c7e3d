"""What a client knows of one session of version 2, and what may come next in it.

Sources: Agent Client Protocol v2, Prompt Lifecycle, Session Setup, Tool Calls, Agent Plan, and the
descriptions in the schema.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any

from tests.support.framing import Json, ViolationError, require

_FINAL = {"completed", "failed", "cancelled"}
_MESSAGES = {
    "user_message": "user", "user_message_chunk": "user",
    "agent_message": "agent", "agent_message_chunk": "agent",
    "agent_thought": "thought", "agent_thought_chunk": "thought",
}  # fmt: skip
# What is told of a conversation; the rest is state that may come at any time.
_CONVERSATION = {
    *_MESSAGES, "tool_call_update", "tool_call_content_chunk", "terminal_update",
    "terminal_output_chunk", "plan_update", "plan_removed",
}  # fmt: skip
# What only foreground work tells of. Terminals may run beside it, and so may calls that a state
# update lists as background work.
_OUTPUT = {
    "agent_message", "agent_message_chunk", "agent_thought", "agent_thought_chunk",
    "plan_update", "plan_removed",
}  # fmt: skip


class _Terminal:
    """A terminal of the agent's."""

    def __init__(self) -> None:
        self.exited = False
        self.cancellable = False


class SessionV2:
    """One session on one connection."""

    def __init__(self) -> None:
        self.known = False
        self.children: list[SessionV2] = []  # those that it announced
        self.parent: SessionV2 | None = None  # a subagent's
        self.left = False  # the client ended the connection
        self.state: str | None = "idle"  # None: not told since the session was opened
        self.background: set[tuple[str, str]] = set()
        self._lists = False  # the agent says what runs in the background
        self.calls: dict[str, str] = {}  # status by id
        self.terminals: dict[str, _Terminal] = {}
        self.prompts: set[str] = set()  # requests that were not answered
        self.asking: dict[str, str] = {}  # requests nobody has answered: their method
        self.resuming: dict[str, bool] = {}  # requests under way, and whether they replay
        self._cancellable: set[str] = set()  # calls
        self._shown: set[str] = set()  # terminals that calls refer to
        self._plans: set[str] = set()
        self._compactions: dict[str, str] = {}
        self._kinds: dict[str, str] = {}  # of messages
        self._inserted: dict[str, int] = {}  # answered to prompts and not shown: the idle count
        self._echoed: set[str] = set()  # shown live
        self._claimed: set[str] = set()  # answered to prompts
        self._since_idle = False  # a user's message was shown since the last idle
        self._idles = 0
        self._state_told = False  # since the session was resumed
        self._stopping = False  # the client had reason to expect `cancelled`
        self._must_cancel = False

    # --- what the client does

    @property
    def busy(self) -> bool:
        """Whether something runs, or is about to."""
        working = self.state not in {"idle", None}
        return working or bool(self.prompts or self._inserted) or self._since_idle

    @property
    def replaying(self) -> bool:
        """Whether its history is told again; that of a child is part of its parent's."""
        own = any(self.resuming.values())
        return own or (self.parent is not None and self.parent.replaying)

    def resumes(self, asked: str, *, replay: bool) -> None:
        """`session/resume` was asked."""
        self.resuming[asked] = replay
        self._state_told = False
        if not self.known:
            self.state = None
        if replay:
            self._begins_anew()

    def _begins_anew(self) -> None:
        self._kinds = {}
        self._plans = set()
        self._compactions = {}
        self.calls = {}
        self.terminals = {}
        self._cancellable = set()
        self._shown = set()
        for child in self.children:
            child._begins_anew()

    def stops(self, *, turn: bool = True) -> None:
        """The client stops the work: all of it, or (`turn` False) it dismissed a question."""
        if self.busy:
            self._stopping = True
            if turn and self.asking:
                self._must_cancel = True
        for child in self.children:
            child.stops(turn=turn)

    # --- what the agent does

    def inserted(self, message: str) -> None:
        """A prompt was answered: its words are in the conversation under this id."""
        require(message not in self._claimed, f"P1: two prompts were answered with {message}")
        self._claimed.add(message)
        if message not in self._echoed:
            self._inserted[message] = self._idles

    def resumed(self, asked: str, *, success: bool) -> None:
        """`session/resume` was answered."""
        self.resuming.pop(asked, None)
        if not success:
            return
        require(self._state_told, "S4: resumed without a state_update before the response")
        if self.state == "idle":
            self._all_ended("S4: after the replay")

    def closed(self) -> None:
        """`session/close` or its like succeeded."""
        busy = self.state in {"running", "requires_action"}
        require(not busy, "S5: closed before the work was reported idle")
        self.known = False
        self.state = "idle"
        self.asking = {}
        self._inserted = {}
        self._since_idle = self._stopping = self._must_cancel = False

    def asks(self, request: str, method: str) -> None:
        """The agent asks the user something for the foreground work."""
        working = self.state in {"running", "requires_action"}
        require(working, f"P6: {method} while nothing runs")
        self.asking[request] = method

    def finished(self) -> None:
        """The connection ended in order."""
        if not self.known or self.prompts:
            return
        require(not self._inserted, f"P9: never shown as a user's message: {set(self._inserted)}")
        unasked = self._echoed - self._claimed
        require(not unasked, f"P9: no prompt was answered with {unasked}")
        if self.state == "idle":
            self._all_ended("P3: at the end")

    def update(self, update: Json) -> list[str]:
        """Take an update; gives the ids of sessions that it makes known."""
        kind = update["sessionUpdate"]
        replaying = self.replaying
        if kind in _CONVERSATION and self.resuming and not replaying:
            # A terminal that runs may be announced: the state that follows lists it.
            runs = kind == "terminal_update" and update.get("exitStatus") is None
            quiet = self.state in {"idle", None} and not self.busy and not runs
            require(not quiet, f"S4: {kind} is replayed, which was not asked for")
        if kind in _OUTPUT and not replaying:
            self._needs_work(kind)
        if kind in _MESSAGES:
            self._message(kind, update["messageId"], replaying=replaying)
        elif kind == "state_update":
            self._state(update)
        elif kind == "tool_call_update":
            self._call(update, replaying=replaying)
        elif kind == "tool_call_content_chunk":
            call = update["toolCallId"]
            require(call in self.calls, f"P3: content for {call}, which is not announced")
            require(self.calls[call] not in _FINAL, f"P3: content for {call} after its end")
            self._refers([update["content"]])
        elif kind == "terminal_update":
            self._terminal(update)
        elif kind == "terminal_output_chunk":
            terminal = self.terminals.get(update["terminalId"])
            require(terminal is not None, "P5: output of a terminal that was not announced")
            assert terminal is not None
            require(not terminal.exited, "P5: output of a terminal after its exit")
            _check_base64(update["data"])
        elif kind == "plan_update":
            self._plans.add(update["plan"]["planId"])
        elif kind == "plan_removed":
            require(update["planId"] in self._plans, "P10: a plan is removed that is not there")
            self._plans.discard(update["planId"])
        elif kind.startswith("compaction"):
            self._compaction(update)
        elif kind == "subagent_update":
            return [update["sessionId"]]
        return []

    # --- its parts

    def _needs_work(self, kind: str) -> None:
        """Output of foreground work comes while such work is reported."""
        require(self.state == "running", f"T6: {kind} while {self.state}")

    def _message(self, kind: str, message: str, *, replaying: bool) -> None:
        author = _MESSAGES[kind]
        known = self._kinds.setdefault(message, author)
        require(known == author, f"P2: {message} is of {known} and now of {author}")
        if author != "user" or (replaying and message not in self._inserted):
            return
        if kind == "user_message":
            require(message not in self._echoed, f"P9: user_message {message} came twice")
        if message not in self._echoed:
            self._echoed.add(message)
            self._inserted.pop(message, None)
            self._since_idle = True

    def _state(self, update: Json) -> None:
        state, reason = update["state"], update.get("stopReason")
        listed = update.get("background")
        listed_before = self.background
        require(listed is not None or not self._lists, "P5: a state without its background work")
        self._lists = self._lists or listed is not None
        if listed is not None:
            items = {(item["type"], _item_id(item)) for item in listed}
            require(len(items) == len(listed), "P5: background work is listed twice")
            for what, name in items - self.background:
                known = {"terminal": set(self.terminals), "tool_call": set(self.calls)}.get(what)
                announced = known is None or name in known
                require(announced, f"P5: the {what} {name} is listed and was not announced")
            gone = {name for what, name in self.background - items if what == "terminal"}
            open_ones = {name for name in gone if name in self.terminals}
            open_ones -= {name for name in open_ones if self.terminals[name].exited}
            require(not open_ones, f"P5: listed no more before their exit: {open_ones}")
            self.background = items
        self._state_told = True
        before, self.state = self.state, state
        if state != "idle":
            return
        ended = before in {"running", "requires_action"}
        if not ended:
            changed = reason is None and self.background != listed_before
            require(bool(self.resuming) or changed, "P8: idle twice for one piece of work")
            return
        require(reason is not None, "P8: work ended without a stopReason")
        if self._must_cancel:
            require(reason == "cancelled", f"P7: {reason} after session/cancel")
        if reason == "cancelled":
            asked_for = self._stopping or self.left
            require(asked_for, "P7: cancelled, which nobody asked for")
        require(not self.asking or self.left, "P7: the user is still asked something")
        self._all_ended("P3: when idle")
        late = [one for one, count in self._inserted.items() if count < self._idles]
        require(not late, f"P9: never shown as a user's message: {late}")
        self._idles += 1
        self._since_idle = self._stopping = self._must_cancel = False

    def _all_ended(self, when: str) -> None:
        calls = {call for call, status in self.calls.items() if status not in _FINAL}
        terminals = {name for name, one in self.terminals.items() if not one.exited}
        calls -= {name for what, name in self.background if what == "tool_call"}
        terminals -= {name for what, name in self.background if what == "terminal"}
        require(not calls, f"{when} calls are open: {calls}")
        require(not terminals, f"{when} terminals run: {terminals}")
        unknown = self._shown - set(self.terminals)
        require(not unknown, f"{when} terminals are shown that do not exist: {unknown}")

    def _call(self, update: Json, *, replaying: bool) -> None:
        call = update["toolCallId"]
        if call not in self.calls:
            require(bool(update.get("title")), f"P3: {call} is announced without a title")
        else:
            require(self.calls[call] not in _FINAL, f"P3: {call} is updated after it ended")
        if not replaying and ("tool_call", call) not in self.background:
            working = self.state in {"running", "requires_action"}
            require(working, f"T6: tool_call_update while {self.state}")
        if update.get("status") == "in_progress" and not replaying:
            require(self.state != "requires_action", "P6: a call runs while requires_action")
        status = self.calls.get(call, "pending")
        self.calls[call] = (update["status"] or "pending") if "status" in update else status
        _keep(self._cancellable, call, update)
        if self.calls[call] in _FINAL:
            require(call not in self._cancellable, f"P7: {call} ended and can be cancelled")
        self._refers(update.get("content") or ())

    def _refers(self, content: Any) -> None:
        self._shown |= {item["terminalId"] for item in content if item["type"] == "terminal"}

    def _terminal(self, update: Json) -> None:
        name = update["terminalId"]
        terminal = self.terminals.get(name)
        if terminal is None:
            require(bool(update.get("command")), f"P5: terminal {name} without its command")
            terminal = self.terminals[name] = _Terminal()
        else:
            again = terminal.exited and update.get("exitStatus") is not None
            require(not again, f"P5: terminal {name} exits twice")
        if update.get("cwd") is not None:
            require(update["cwd"].startswith("/"), "P5: a terminal's cwd is not absolute")
        if update.get("output") is not None:
            require(not terminal.exited, "P5: output of a terminal after its exit")
            _check_base64(update["output"]["data"])
        terminal.exited = terminal.exited or update.get("exitStatus") is not None
        cancellable = {name} if terminal.cancellable else set()
        _keep(cancellable, name, update)
        terminal.cancellable = bool(cancellable)
        fine = not (terminal.exited and terminal.cancellable)
        require(fine, f"P7: terminal {name} exited and can be cancelled")

    def _compaction(self, update: Json) -> None:
        name = update["compactionId"]
        status = self._compactions.get(name, "in_progress")
        require(status not in _FINAL, f"P14: compaction {name} goes on after its end")
        self._compactions[name] = update.get("status", status)


def _keep(cancellable: set[str], name: str, update: Json) -> None:
    """Note whether the client may cancel what has this name."""
    if "capabilities" in update:
        cancellable.discard(name)
        if (update["capabilities"] or {}).get("cancel") is not None:
            cancellable.add(name)


def _item_id(item: Json) -> str:
    return next((str(value) for field, value in _ids(item)), repr(item))


def _ids(item: Json) -> Iterator[tuple[str, Any]]:
    return ((field, value) for field, value in item.items() if field.endswith("Id"))


def _check_base64(data: str) -> None:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ViolationError(f"P5: not base64 ({error}): {data[:80]!r}") from None
