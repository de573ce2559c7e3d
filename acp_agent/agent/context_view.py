"""Select the messages of a conversation that are sent to the model.

All messages are sent until a trim or a compaction shortens the list. Messages are added at the end.
Every other change to the list is an event in the journal, so the same journal gives the same view
in every process.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from acp_agent.agent.token_count import message_tokens
from acp_agent.events import Rewound
from acp_agent.ids import CallId, MessageId
from acp_agent.models.base import Message, ToolResult, UserSide, UserText

_HEAD_SHARE = 0.7  # the share of a cut result that is taken from its beginning

OMITTED_NOTE = (
    "[Earlier parts of this conversation are not shown here for lack of room. The tool "
    "session_search finds them.]"
)
SUMMARISED_NOTE = (
    "[Earlier parts of this conversation were summarised for lack of room. The tool session_search "
    "finds the originals.]"
)
TURN_START_NOTE = "[What the user said at the beginning of this turn:]"


class Entry(Struct, frozen=True, kw_only=True):
    """A message of the conversation.

    `id` is None for the results of calls. `turn` counts the turns from 1. `opens` is true for the
    user's message that starts the turn.
    """

    message: Message
    id: MessageId | None
    turn: int
    opens: bool
    tokens: int


class _Shortening(Struct, frozen=True, kw_only=True):
    """The state of the view before it was shortened; at that time it had `at` entries."""

    at: int
    first: int
    cut: int
    limit: int
    summary: str
    has_omitted: bool


class ContextView:
    """The messages of a conversation, and the part of them that is sent to the model.

    Attributes:
        first: the index in `entries` of the first message that is not left out or summarised.
        cut: the index in `entries` before which results are cut.
        changes: the number of changes other than appending messages.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.messages: list[Message] = []
        self.tokens = 0
        self.first = 0
        self.cut = 0
        self.changes = 0
        self._limit = 0  # characters of a cut result
        self._summary = ""
        self._has_omitted = False  # true if some of the turns left out are not in the summary
        self._indexes: dict[MessageId, int] = {}
        self._shortenings: list[_Shortening] = []

    @property
    def is_shortened(self) -> bool:
        """Return whether parts of the conversation are not sent to the model."""
        return self.first > 0 or self.cut > 0

    @property
    def summary(self) -> str:
        """Return the summary that replaces earlier messages, or "" if there is none."""
        return self._summary

    def result_limit(self, limit: int) -> int:
        """Return the characters to keep of each result, at most `limit`.

        One limit applies to all results; the limit of cut results that are still sent is not
        raised.
        """
        return min(limit, self._limit) if self.cut > self.first else limit

    def append(
        self, message: Message, message_id: MessageId | None, *, turn: int, opens: bool = False
    ) -> None:
        """Add a message at the end; `message_id` is None for results."""
        tokens = message_tokens(message)
        if message_id is not None:
            self._indexes[message_id] = len(self.entries)
        self.entries.append(
            Entry(message=message, id=message_id, turn=turn, opens=opens, tokens=tokens)
        )
        self.messages.append(message)
        self.tokens += tokens

    def find_index(self, message: MessageId | None) -> int:
        """Return the index of a message in `entries`; for None, the number of entries.

        An unknown message has index 0, so that nothing is shortened because of it.
        """
        return len(self.entries) if message is None else self._indexes.get(message, 0)

    def has(self, message: MessageId) -> bool:
        """Return whether a message is among the entries."""
        return message in self._indexes

    def copy(self) -> ContextView:
        """Return an independent copy."""
        view = ContextView()
        view.restore(self)
        return view

    def restore(self, source: ContextView) -> None:
        """Copy the state of another view into this one."""
        if source is self:
            return
        self.entries[:] = source.entries
        self.first, self.cut = source.first, source.cut
        self._limit, self._summary = source._limit, source._summary
        self._has_omitted = source._has_omitted
        self._indexes = dict(source._indexes)
        self._shortenings = list(source._shortenings)
        self._rebuild()

    def leave_out(self, before: int) -> None:
        """Stop sending the messages before an index; an existing summary is still sent."""
        if before > self.first:
            self._save_state()
            self.first, self._has_omitted = before, True
            self._rebuild()

    def summarize(self, before: int, summary: str) -> None:
        """Send a summary instead of the messages before an index."""
        self._save_state()
        self.first, self._summary = max(before, self.first), summary
        self._has_omitted = False
        self._rebuild()

    def cut_results(self, before: int, limit: int) -> None:
        """Cut the results before an index to `limit` characters and leave out their pictures."""
        self._save_state()
        self.cut, self._limit = max(before, self.cut), limit
        self._rebuild()

    def truncate(self, count: int) -> None:
        """Remove all but the first `count` messages, and undo later shortenings."""
        del self.entries[count:]
        while self._shortenings and self._shortenings[-1].at > count:
            state = self._shortenings.pop()
            self.first, self.cut = state.first, state.cut
            self._limit, self._summary, self._has_omitted = (
                state.limit,
                state.summary,
                state.has_omitted,
            )
        self._indexes = {
            entry.id: index for index, entry in enumerate(self.entries) if entry.id is not None
        }
        self._rebuild()

    def add_text(self, of: str, text: str) -> None:
        """Add text to the message with the id `of`, or to the result of the call with that id."""
        for index in range(len(self.entries) - 1, -1, -1):
            entry = self.entries[index]
            amended = _with_text(entry, of, text)
            if amended is not None:
                self.entries[index] = msgspec.structs.replace(
                    entry, message=amended, tokens=message_tokens(amended)
                )
                self._rebuild()
                return

    def cut_tokens(self, before: int, limit: int) -> int:
        """Return the estimated tokens that cutting the results before an index would save."""
        if before <= self.cut and limit >= self._limit:
            return 0
        start = self.first if limit < self._limit else max(self.first, self.cut)
        return sum(
            entry.tokens - message_tokens(cut)
            for entry in self.entries[start:before]
            if entry.id is None and (cut := cut_message(entry.message, limit)) is not entry.message
        )

    def _save_state(self) -> None:
        self._shortenings.append(
            _Shortening(
                at=len(self.entries),
                first=self.first,
                cut=self.cut,
                limit=self._limit,
                summary=self._summary,
                has_omitted=self._has_omitted,
            )
        )

    def _rebuild(self) -> None:
        self.changes += 1
        head = self._head()
        self.messages[:] = [] if head is None else [head]
        self.tokens = 0 if head is None else message_tokens(head)
        for index, entry in enumerate(self.entries[self.first :], self.first):
            message, tokens = entry.message, entry.tokens
            if index < self.cut and entry.id is None:
                message, tokens = self._cut(entry)
            self.messages.append(message)
            self.tokens += tokens

    def _cut(self, entry: Entry) -> tuple[Message, int]:
        """Return a message with cut results, and its estimated tokens."""
        message = cut_message(entry.message, self._limit)
        return message, entry.tokens if message is entry.message else message_tokens(message)

    def _head(self) -> UserSide | None:
        """Return the message that replaces the messages that are not sent, if there are any."""
        if not self.first:
            return None
        head_parts: list[UserText] = []
        if self._summary:
            head_parts.append(UserText(f"{SUMMARISED_NOTE}\n\n{self._summary}"))
        if self._has_omitted:
            head_parts.append(UserText(OMITTED_NOTE))
            texts = self._texts_of_turn()
            if texts:
                head_parts += [UserText(TURN_START_NOTE), *texts]
        return UserSide(tuple(head_parts))

    def _texts_of_turn(self) -> list[UserText]:
        """Return the user's texts in the turn whose beginning is not sent."""
        if self.first >= len(self.entries):
            return []
        continued = self.entries[self.first]
        if continued.opens:
            return []
        return [
            part
            for entry in self.entries[: self.first]
            if entry.turn == continued.turn
            and entry.id is not None
            and isinstance(entry.message, UserSide)
            for part in entry.message.parts
            if isinstance(part, UserText)
        ]


class Branches:
    """Copies of the view from before each rewind, so that a rewind can be undone."""

    def __init__(self) -> None:
        self._views: dict[str, ContextView] = {}

    def rewind(self, view: ContextView, event: Rewound, turn: int) -> None:
        """Restore the view to the point that a rewind names; no-op if that point is unknown."""
        before = view.copy()
        point = MessageId(event.to)
        if event.to in self._views:
            view.restore(self._views[event.to])
        else:
            for left in (view, *reversed(self._views.values())):
                if left.has(point):
                    view.restore(left)
                    view.truncate(left.find_index(point) + event.keeps_words)
                    break
        self._views[event.rewind] = before
        if event.note:
            view.append(UserSide((UserText(event.note),)), None, turn=turn)


def cut_message(message: Message, limit: int) -> Message:
    """Return the message with results cut to about `limit` characters; 0 means no limit."""
    if not limit or not isinstance(message, UserSide):
        return message
    new_parts = tuple(
        _cut_result(part, limit) if isinstance(part, ToolResult) else part for part in message.parts
    )
    return message if new_parts == message.parts else UserSide(new_parts)


def _cut_result(result: ToolResult, limit: int) -> ToolResult:
    text = result.text
    if len(text) > limit + 200:  # a smaller cut saves nothing, because the note is added
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


def _with_text(entry: Entry, of: str, text: str) -> UserSide | None:
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
