"""The text of an answer: continued after a cut without repetition, and shown as hooks say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from acp_agent.events import Usage
from acp_agent.ids import MessageId, new_message_id
from acp_agent.models.base import Failed, FellBack, Finished, Retrying, StreamEvent, TextDelta
from acp_agent.workspace.scrub import scrub

if TYPE_CHECKING:  # only for sessions with hooks
    from acp_agent.hooks.session_hooks import SessionHooks

MAX_REPEAT = 20_000  # characters of the earlier answer that are compared
_MIN_REPEAT = 10  # characters; shorter matches may be chance


class FollowUp(Struct, frozen=True, kw_only=True):
    """The additions to the next request: a note at its end, and the id of an answer to continue.

    `text` is the end of that answer's text, or empty if the model cannot repeat it.
    """

    note: str = ""
    continues: MessageId | None = None
    text: str = ""


class ContinuedText:
    """Removes the end of an earlier text from the beginning of the text that continues it.

    Models that are asked to continue an answer often repeat its last words, or all of it. A passage
    that occurs more than once in the earlier text may be meant, so only a passage that occurs there
    exactly once counts as repeated.

    Args:
        earlier: the end of the text that is continued; empty if the answer continues nothing.
    """

    def __init__(self, earlier: str) -> None:
        self._earlier = earlier
        self._pending = ""
        self._pieces = [earlier]
        self._size = len(earlier)

    @property
    def tail(self) -> str:
        """Return the end of the earlier text and the new text together."""
        return "".join(self._pieces)[-MAX_REPEAT:]

    def feed(self, text: str) -> str:
        """Add a piece of the text; return the part that is certainly not repeated."""
        if not self._earlier:
            self._add(text)
            return text
        self._pending += text
        return "" if self._pending in self._earlier else self.end()

    def end(self) -> str:
        """Return the new part of the text that was held back. Later text is passed unchanged."""
        new = self._pending and _without_repeat(self._pending, self._earlier)
        self._earlier, self._pending = "", ""
        self._add(new)
        return new

    def _add(self, text: str) -> None:
        self._pieces.append(text)
        self._size += len(text)
        if self._size > 2 * MAX_REPEAT:
            self._pieces = [self.tail]
            self._size = MAX_REPEAT


def _without_repeat(text: str, earlier: str) -> str:
    for size in range(min(len(text), len(earlier)), _MIN_REPEAT - 1, -1):
        repeated = text[:size]
        if earlier.endswith(repeated) and " " in repeated.strip():
            return text[size:] if earlier.count(repeated) == 1 else text
    return text


class DisplayedText:
    """The text of one answer, as hooks of `MessageDisplay` change it.

    Without such hooks, nothing is held back. Otherwise whole lines are shown.
    """

    def __init__(self, hooks: SessionHooks | None, secrets: Sequence[str]) -> None:
        self._hooks = hooks if hooks is not None and hooks.has("MessageDisplay") else None
        self._secrets = secrets
        self._start_over()

    def _start_over(self) -> None:
        self._pending = ""
        self._index = 0
        self._message = new_message_id()

    async def display(self, batch: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        """Return the events of a stream with the text that the user sees."""
        if self._hooks is None:
            return batch
        events: list[StreamEvent] = []
        for item in batch:
            match item:
                case TextDelta():
                    self._pending += item.text
                    events += await self._lines(self._pending.rfind("\n") + 1)
                    continue
                case Retrying() | FellBack():
                    self._start_over()
                case Finished() | Failed():
                    events += await self._end()
                case Usage():
                    pass
                case _:
                    events += await self._lines(len(self._pending))
            events.append(item)
        return events

    async def _lines(self, length: int) -> list[StreamEvent]:
        """Return what the hooks make of the next characters."""
        text, self._pending = self._pending[:length], self._pending[length:]
        return await self._display(text, final=False) if text else []

    async def _end(self) -> list[StreamEvent]:
        """Return what the hooks make of the end; they hear nothing of an answer without text."""
        text, self._pending = self._pending, ""
        return await self._display(text, final=True) if text or self._index else []

    async def _display(self, text: str, *, final: bool) -> list[StreamEvent]:
        assert self._hooks is not None
        fields = {"message_id": self._message, "index": self._index, "final": final}
        self._index += 1
        answer = await self._hooks.fire(
            "MessageDisplay", {**fields, "delta": scrub(text, self._secrets)}
        )
        text = text if answer.display is None else answer.display
        return [TextDelta(text=text)] if text else []
