"""What a client of version 2 knows of a session: the fold of the updates that came.

Updates are applied as the protocol says: what is omitted stays, null clears, a value replaces, a
chunk appends; bytes of terminals are decoded piece by piece.

Sources: Agent Client Protocol v2, Prompt Lifecycle (Message IDs), Tool Calls, Agent Plan.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, Self

Json = dict[str, Any]

_MESSAGES = {"user_message": "user", "agent_message": "agent", "agent_thought": "thought"}
_CALL_DEFAULTS: Json = {
    "title": None,
    "name": None,
    "kind": "other",
    "status": "pending",
    "content": [],
    "locations": [],
    "rawInput": None,
    "rawOutput": None,
    "capabilities": None,
}


class Message:
    """A message: who speaks (`user`, `agent`, `thought`), and what."""

    def __init__(self, message: str, author: str) -> None:
        self.id = message
        self.author = author
        self.content: list[Json] = []

    @property
    def text(self) -> str:
        """All text in it."""
        return "".join(block["text"] for block in self.content if block["type"] == "text")


class Terminal:
    """A terminal of the agent's; `output` is all that its command wrote, as bytes."""

    def __init__(self) -> None:
        self.command: str | None = None
        self.cwd: str | None = None
        self.output = b""
        self.exit_status: Json | None = None
        self.capabilities: Json | None = None


class SessionView:
    """One session; `timeline` has the kind and id of each thing, in order of its first news."""

    def __init__(self) -> None:
        self.messages: dict[str, Message] = {}
        self.calls: dict[str, Json] = {}
        self.terminals: dict[str, Terminal] = {}
        self.plans: dict[str, Json] = {}
        self.compactions: dict[str, Json] = {}
        self.timeline: list[tuple[str, str]] = []
        self.states: list[Json] = []
        self.notices: list[Json] = []
        self.options: list[Json] = []
        self.commands: list[Json] = []
        self.title: str | None = None
        self.usage: Json | None = None

    @classmethod
    def of(cls, updates: Iterable[Json]) -> Self:
        """The view after these updates."""
        view = cls()
        for update in updates:
            view.apply(update)
        return view

    @property
    def state(self) -> str:
        """The state of the foreground work as it was told last."""
        return str(self.states[-1]["state"]) if self.states else "idle"

    def text(self, author: str = "agent") -> str:
        """All text of one author."""
        return "".join(one.text for one in self.messages.values() if one.author == author)

    def apply(self, update: Json) -> None:
        """Take an update."""
        kind = update["sessionUpdate"]
        if kind.removesuffix("_chunk") in _MESSAGES:
            self._message(kind, update)
        elif kind in {"tool_call_update", "tool_call_content_chunk"}:
            self._call(kind, update)
        elif kind in {"terminal_update", "terminal_output_chunk"}:
            self._terminal(kind, update)
        elif kind == "plan_update":
            self.plans[update["plan"]["planId"]] = update["plan"]
        elif kind == "plan_removed":
            self.plans.pop(update["planId"], None)
        elif kind.startswith("compaction"):
            self._compaction(kind, update)
        elif kind == "state_update":
            self.states.append(update)
        elif kind == "notice":
            self.notices.append(update)
        elif kind == "config_option_update":
            self.options = update["configOptions"]
        elif kind == "available_commands_update":
            self.commands = update["availableCommands"]
        elif kind == "session_info_update":
            self.title = update.get("title", self.title)
        elif kind == "usage_update":
            self.usage = update

    def conversation(self) -> list[Json]:
        """What was said and done, in order, in a form that two views can be compared in.

        How the text of a message was cut into pieces means nothing.
        """
        told: list[Json] = []
        for what, name in self.timeline:
            if what == "message":
                message = self.messages[name]
                content = _joined(message.content)
                told.append({"message": name, "author": message.author, "content": content})
            elif what == "call":
                told.append({"call": name} | self.calls[name])
            elif what == "terminal":
                one = self.terminals[name]
                state = {"command": one.command, "cwd": one.cwd, "exitStatus": one.exit_status}
                told.append({"terminal": name, "output": one.output} | state)
            else:
                told.append({"compaction": name} | self.compactions[name])
        return [*told, {"plans": self.plans, "title": self.title}]

    def _first(self, what: str, name: str) -> None:
        if (what, name) not in self.timeline:
            self.timeline.append((what, name))

    def _message(self, kind: str, update: Json) -> None:
        author = _MESSAGES[kind.removesuffix("_chunk")]
        name = update["messageId"]
        self._first("message", name)
        message = self.messages.setdefault(name, Message(name, author))
        if kind.endswith("_chunk"):
            message.content.append(update["content"])
        elif "content" in update:
            message.content = list(update["content"] or ())

    def _call(self, kind: str, update: Json) -> None:
        name = update["toolCallId"]
        self._first("call", name)
        call = self.calls.setdefault(name, {**_CALL_DEFAULTS})
        if kind == "tool_call_content_chunk":
            call["content"] = [*call["content"], update["content"]]
            return
        for field, default in _CALL_DEFAULTS.items():
            if field in update:
                call[field] = default if update[field] is None else update[field]

    def _terminal(self, kind: str, update: Json) -> None:
        name = update["terminalId"]
        self._first("terminal", name)
        terminal = self.terminals.setdefault(name, Terminal())
        if kind == "terminal_output_chunk":
            terminal.output += base64.b64decode(update["data"], validate=True)
            return
        terminal.command = update.get("command", terminal.command)
        terminal.cwd = update.get("cwd", terminal.cwd)
        terminal.exit_status = update.get("exitStatus", terminal.exit_status)
        terminal.capabilities = update.get("capabilities", terminal.capabilities)
        if "output" in update:
            data = (update["output"] or {}).get("data", "")
            terminal.output = base64.b64decode(data, validate=True)

    def _compaction(self, kind: str, update: Json) -> None:
        name = update["compactionId"]
        self._first("compaction", name)
        known = self.compactions.setdefault(
            name, {"status": "in_progress", "summary": [], "error": None}
        )
        if kind == "compaction_summary_chunk":
            known["summary"] = [*known["summary"], update["content"]]
            return
        for field in known:
            if field in update:
                known[field] = (
                    ([] if field == "summary" else None)
                    if (update[field] is None)
                    else update[field]
                )


def _joined(content: list[Json]) -> list[Json]:
    """Content with adjacent pieces of plain text joined."""
    joined: list[Json] = []
    for block in content:
        last = joined[-1] if joined else None
        if last is not None and set(last) == set(block) == {"type", "text"}:
            joined[-1] = last | {"text": last["text"] + block["text"]}
        else:
            joined.append(block)
    return joined
