"""The tool calls of a conversation as a person sees them: put together from their updates."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from acp_agent.cli.output import inert
from protocol.v1 import types as acp

KEPT = 2_000  # calls that are remembered
_FULL = 50  # of them with their whole output
_SHORT = 2_000  # characters of the output of the others
OUTPUT = 64_000  # characters of a call's output that are kept
DIFFS = 50  # files of a call that are kept


class ShownCall:
    """One tool call.

    Attributes:
        id: its id.
        title: what it does.
        kind: its kind, such as `read` or `execute`.
        status: `pending`, `in_progress`, `completed` or `failed`.
        diffs: what it changes.
        locations: the files that it works on.
        raw_input: what the model gave it.
        exit_code: of a command, once it ended.
        answer: the name of the answer to its permission request; empty where there was none.
    """

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.title = call_id
        self.kind = "other"
        self.status: str = "pending"
        self.diffs: list[acp.Diff] = []
        self.locations: Sequence[acp.ToolCallLocation] = ()
        self.raw_input: Any = None
        self.exit_code: int | None = None
        self.answer = ""
        self._live = ""  # what its command wrote
        self._texts: list[str] = []  # its content
        self.dropped = 0  # characters of output that are not kept

    @property
    def ended(self) -> bool:
        """Whether it came to its end."""
        return self.status in {"completed", "failed"}

    @property
    def output(self) -> str:
        """What it gave, without a fence around it."""
        return self._live or "\n".join(self._texts)

    def update(self, update: acp.ToolCall | acp.ToolCallUpdate) -> None:
        """Take over what an update, or a permission request, says."""
        if isinstance(update.title, str):
            self.title = update.title
        if isinstance(update.kind, str):
            self.kind = update.kind
        if isinstance(update.status, str):
            self.status = update.status
        if update.locations is not UNSET:
            self.locations = update.locations or ()
        if update.raw_input is not UNSET and update.raw_input is not None:
            self.raw_input = update.raw_input
        self._content(update.content)
        self._terminal(update.meta or {})

    def _content(self, content: Sequence[acp.ToolCallContent] | UnsetType | None) -> None:
        if content is UNSET:
            return
        parts = content or ()
        diffs = [part for part in parts if isinstance(part, acp.Diff)]
        if diffs or self.kind != "edit":
            # An edit keeps in sight what it changes, also when its end only says how it went.
            self.diffs = diffs[:DIFFS] or self.diffs
        texts = [
            unfenced(part.content.text)
            for part in parts
            if isinstance(part, acp.Content) and isinstance(part.content, acp.TextContent)
        ]
        texts += [
            f"[{part.content.mime_type}]"
            for part in parts
            if isinstance(part, acp.Content)
            and isinstance(part.content, acp.ImageContent | acp.AudioContent)
        ]
        joined = "\n".join(text for text in texts if text)
        if joined:
            self.dropped = 0
        self._texts = [self._bounded(joined)] if joined else []

    def _terminal(self, meta: dict[str, Any]) -> None:
        output = meta.get("terminal_output")
        if isinstance(output, dict) and isinstance(output.get("data"), str):
            self._live = self._bounded(self._live + output["data"])
        ended = meta.get("terminal_exit")
        if isinstance(ended, dict) and isinstance(ended.get("exit_code"), int):
            self.exit_code = ended["exit_code"]

    def _bounded(self, text: str) -> str:
        if len(text) > OUTPUT:
            self.dropped += len(text) - OUTPUT
        return text[-OUTPUT:]

    def shorten(self) -> None:
        """Forget most of the output of a call that is long past."""
        self._live = self._live[-_SHORT:]
        self._texts = [text[-_SHORT:] for text in self._texts]

    def output_lines(self) -> list[str]:
        """The lines of its output, inert."""
        text = inert(last_of_rewritten(self.output)).strip("\n")
        return text.split("\n") if text else []


class Calls:
    """The calls of a session by their ids; the oldest are forgotten."""

    def __init__(self) -> None:
        self._calls: OrderedDict[str, ShownCall] = OrderedDict()
        self._latest: deque[ShownCall] = deque()

    def update(self, update: acp.ToolCall | acp.ToolCallUpdate) -> ShownCall:
        """The call that an update is about, with what it says."""
        call = self._calls.get(update.tool_call_id)
        if call is None or (isinstance(update, acp.ToolCall) and call.ended):
            call = self._calls[update.tool_call_id] = ShownCall(update.tool_call_id)
            self._latest.append(call)
            if len(self._latest) > _FULL:
                self._latest.popleft().shorten()
            while len(self._calls) > KEPT:
                self._forget()
        call.update(update)
        return call

    def get(self, call_id: str) -> ShownCall | None:
        """The call with an id, where it is remembered."""
        return self._calls.get(call_id)

    @property
    def last(self) -> ShownCall | None:
        """The newest call."""
        return next(reversed(self._calls.values()), None)

    def _forget(self) -> None:
        ended = next((name for name, call in self._calls.items() if call.ended), None)
        self._calls.pop(ended if ended is not None else next(iter(self._calls)))


def unfenced(text: str) -> str:
    """`text` without the fence of Markdown around the whole of it."""
    lines = text.strip("\n").split("\n")
    fence = lines[0][: len(lines[0]) - len(lines[0].lstrip("`"))]
    if len(lines) >= 2 and len(fence) >= 3 and lines[-1].strip() == fence:
        return "\n".join(lines[1:-1])
    return text


def last_of_rewritten(text: str) -> str:
    """`text` with what a carriage return wrote over left out, as progress bars do."""
    if "\r" not in text:
        return text
    return "\n".join(
        line.rstrip("\r").rpartition("\r")[2] for line in text.replace("\r\n", "\n").split("\n")
    )
