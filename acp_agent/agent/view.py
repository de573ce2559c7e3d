"""What the model still sees of a conversation: all of it, or what trims and compactions left.

It grows at its end. What changes it further in front is an event of the journal each time, so that
the same journal gives the same view in every process.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from acp_agent.agent.tokens import message_tokens
from acp_agent.ids import CallId, MessageId
from acp_agent.models.base import Message, ToolResult, UserSide, UserText

_HEAD_SHARE = 0.7  # of what a cut result keeps, the part that its beginning gets

LEFT_OUT = (
    "[Earlier parts of this conversation are not shown here for lack of room. The tool "
    "session_search finds what was said and done in them.]"
)
SUMMED_UP = (
    "[Earlier parts of this conversation were summed up for lack of room. The tool session_search "
    "finds what was said and done in them word for word.]"
)
SAID_BEFORE = "[What the user said at the beginning of this turn:]"


class Entry(Struct, frozen=True, kw_only=True):
    """A message in its place. `id` is None where it holds the results of calls.

    `turn` counts the turns from 1; `opens` whether it is what the user began the turn with.
    """

    message: Message
    id: MessageId | None
    turn: int
    opens: bool
    tokens: int


class _Shortening(Struct, frozen=True, kw_only=True):
    """How the view was before it was shortened, when `at` messages were there."""

    at: int
    first: int
    cut: int
    limit: int
    summary: str
    left_out: bool


class View:
    """The messages of a conversation, and which of them a model is sent.

    Attributes:
        entries: every message, in order.
        messages: what is sent.
        tokens: the estimate for what is sent.
        first: the place in `entries` of the first message that is sent as it was.
        cut: the place in `entries` before which results are cut.
        changes: how often something in front was changed.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.messages: list[Message] = []
        self.tokens = 0
        self.first = 0
        self.cut = 0
        self.changes = 0
        self._limit = 0  # characters of a result that is cut
        self._summary = ""
        self._left_out = False  # whether turns are missing that no summary tells of
        self._places: dict[MessageId, int] = {}
        self._before: list[_Shortening] = []

    @property
    def is_shortened(self) -> bool:
        """Whether the model is sent less than all."""
        return self.first > 0 or self.cut > 0

    @property
    def summary(self) -> str:
        """What stands in the place of the messages that are not sent; "" where nothing does."""
        return self._summary

    def limit(self, wanted: int) -> int:
        """The characters that are to be kept of further results, where so many are wanted.

        They are no more than are kept of those that are cut already: one number holds for all.
        """
        return min(wanted, self._limit) if self.cut > self.first else wanted

    def append(
        self, message: Message, *, said: MessageId | None, turn: int, opens: bool = False
    ) -> None:
        """Add a message to the end; `said` is its id, where it does not hold results."""
        tokens = message_tokens(message)
        if said is not None:
            self._places[said] = len(self.entries)
        self.entries.append(Entry(message=message, id=said, turn=turn, opens=opens, tokens=tokens))
        self.messages.append(message)
        self.tokens += tokens

    def place(self, message: MessageId | None) -> int:
        """Where a message stands in `entries`; None stands behind the last one.

        One that is not among them counts as the first, so that nothing is shortened for it.
        """
        return len(self.entries) if message is None else self._places.get(message, 0)

    def has(self, message: MessageId) -> bool:
        """Whether a message is among the entries."""
        return message in self._places

    def copy(self) -> View:
        """The same as another one, which no change of this one reaches."""
        other = View()
        other.become(self)
        return other

    def become(self, other: View) -> None:
        """Be what another one is."""
        if other is self:
            return
        self.entries[:] = other.entries
        self.first, self.cut = other.first, other.cut
        self._limit, self._summary = other._limit, other._summary
        self._left_out = other._left_out
        self._places = dict(other._places)
        self._before = list(other._before)
        self._rebuild()

    def leave_out(self, before: int) -> None:
        """Send nothing of what stands before this place, but for an earlier part's summary."""
        if before > self.first:
            self._remember()
            self.first, self._left_out = before, True
            self._rebuild()

    def sum_up(self, before: int, summary: str) -> None:
        """Send a summary in the place of what stands before this place."""
        self._remember()
        self.first, self._summary = max(before, self.first), summary
        self._left_out = False
        self._rebuild()

    def cut_results(self, before: int, limit: int) -> None:
        """Cut the results before this place to `limit` characters, and leave their pictures out."""
        self._remember()
        self.cut, self._limit = max(before, self.cut), limit
        self._rebuild()

    def truncate(self, count: int) -> None:
        """Forget all but the first `count` messages, and what was shortened after they came."""
        del self.entries[count:]
        while self._before and self._before[-1].at > count:
            was = self._before.pop()
            self.first, self.cut = was.first, was.cut
            self._limit, self._summary, self._left_out = was.limit, was.summary, was.left_out
        self._places = {
            entry.id: place for place, entry in enumerate(self.entries) if entry.id is not None
        }
        self._rebuild()

    def amend(self, of: str, text: str) -> None:
        """Add text to the message, or to the result of the call, that has the id `of`."""
        for place in range(len(self.entries) - 1, -1, -1):
            entry = self.entries[place]
            amended = _amended(entry, of, text)
            if amended is not None:
                self.entries[place] = msgspec.structs.replace(
                    entry, message=amended, tokens=message_tokens(amended)
                )
                self._rebuild()
                return

    def cut_tokens(self, before: int, limit: int) -> int:
        """The estimate for what cutting the results before this place would save."""
        if before <= self.cut and limit >= self._limit:
            return 0
        start = self.first if limit < self._limit else max(self.first, self.cut)
        return sum(
            entry.tokens - message_tokens(cut)
            for entry in self.entries[start:before]
            if entry.id is None and (cut := cut_message(entry.message, limit)) is not entry.message
        )

    def _remember(self) -> None:
        self._before.append(
            _Shortening(
                at=len(self.entries),
                first=self.first,
                cut=self.cut,
                limit=self._limit,
                summary=self._summary,
                left_out=self._left_out,
            )
        )

    def _rebuild(self) -> None:
        self.changes += 1
        head = self._head()
        self.messages[:] = [] if head is None else [head]
        self.tokens = 0 if head is None else message_tokens(head)
        for place, entry in enumerate(self.entries[self.first :], self.first):
            message, tokens = entry.message, entry.tokens
            if place < self.cut and entry.id is None:
                message, tokens = self._cut(entry)
            self.messages.append(message)
            self.tokens += tokens

    def _cut(self, entry: Entry) -> tuple[Message, int]:
        """A message of results as it is cut, and the estimate for it."""
        message = cut_message(entry.message, self._limit)
        return message, entry.tokens if message is entry.message else message_tokens(message)

    def _head(self) -> UserSide | None:
        """What stands for the messages that are not sent."""
        if not self.first:
            return None
        parts: list[UserText] = []
        if self._summary:
            parts.append(UserText(f"{SUMMED_UP}\n\n{self._summary}"))
        if self._left_out:
            parts.append(UserText(LEFT_OUT))
            words = self._words_before()
            if words:
                parts += [UserText(SAID_BEFORE), *words]
        return UserSide(tuple(parts))

    def _words_before(self) -> list[UserText]:
        """What the user said in the turn that goes on behind the cut: the model works on that."""
        if self.first >= len(self.entries):
            return []
        going_on = self.entries[self.first]
        if going_on.opens:
            return []
        return [
            part
            for entry in self.entries[: self.first]
            if entry.turn == going_on.turn
            and entry.id is not None
            and isinstance(entry.message, UserSide)
            for part in entry.message.parts
            if isinstance(part, UserText)
        ]


def cut_message(message: Message, limit: int) -> Message:
    """A message whose results have at most about `limit` characters; 0: as it is."""
    if not limit or not isinstance(message, UserSide):
        return message
    parts = tuple(
        _cut_result(part, limit) if isinstance(part, ToolResult) else part for part in message.parts
    )
    return message if parts == message.parts else UserSide(parts)


def _cut_result(result: ToolResult, limit: int) -> ToolResult:
    text = result.text
    if len(text) > limit + 200:  # the note takes some room, too
        head = int(limit * _HEAD_SHARE)
        tail = limit - head
        text = f"{text[:head]}\n{_note(result.call, len(text) - limit)}\n{text[-tail:]}"
    if result.images:
        text += "\n[The pictures of this result are not shown any more.]"
    elif text is result.text:
        return result
    return msgspec.structs.replace(result, text=text, images=())


def _note(call: CallId, count: int) -> str:
    return (
        f"[… {count:,} characters are left out here; session_search with the call {call} has all …]"
    )


def _amended(entry: Entry, of: str, text: str) -> UserSide | None:
    message = entry.message
    if not isinstance(message, UserSide):
        return None
    if entry.id == of:
        return UserSide((*message.parts, UserText(text)))
    if entry.id is None and any(
        isinstance(part, ToolResult) and part.call == of for part in message.parts
    ):
        return UserSide(
            tuple(
                msgspec.structs.replace(part, text=f"{part.text}\n{text}")
                if isinstance(part, ToolResult) and part.call == of
                else part
                for part in message.parts
            )
        )
    return None
