"""A session's journal as passages of text, and a search in them by words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from acp_agent.content import TextBlock
from acp_agent.events import (
    AgentText,
    AnyEvent,
    ChildWorked,
    ModelAnswered,
    ToolCalled,
    ToolEnded,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, SessionId

Dated = tuple[int, AnyEvent]  # milliseconds since 1970 (UTC), and what happened then
Speaker = Literal["user", "agent", "call", "result"]

_WORDS = re.compile(r'"([^"]+)"|(\S+)')
# How much it matters who said it: what people and models said is shorter and says more.
_WEIGHTS: dict[Speaker, float] = {"user": 1.3, "agent": 1.1, "call": 1.0, "result": 0.9}


class Passage(Struct, frozen=True, kw_only=True):
    """Something that was said or done, in one piece. `turn` counts from 1; `at` as in `Dated`.

    `within` is the call that a child session worked for, where it was the child who did it.
    """

    turn: int
    at: int
    who: Speaker
    text: str
    call: CallId | None = None
    within: CallId | None = None


class Found(Struct, frozen=True, kw_only=True):
    """A passage that has some of the words, and the place of the first of them that was found."""

    passage: Passage
    place: int


def passages(journal: Iterable[Dated], *, without: str) -> list[Passage]:
    """What a session's events say, in order; calls of the tool `without` are left out.

    What children of the session did is among it, but for what they were asked: the call for which
    they work has that.
    """
    told: list[Passage] = []
    own = _Reader(told, without)
    children: dict[SessionId, _Reader] = {}
    for at, event in journal:
        if isinstance(event, ChildWorked):
            child = children.setdefault(event.session, _Reader(told, without))
            child.within = event.call
            child.turn = own.turn
            if not isinstance(event.did, TurnStarted | UserMessage):
                child.read(at, event.did)
        else:
            own.read(at, event)
    for reader in (*children.values(), own):
        reader.close()
    return told


class _Reader:
    """Reads one conversation: the session's own, or a child's."""

    def __init__(self, told: list[Passage], without: str) -> None:
        self.turn = 0
        self.within: CallId | None = None
        self._told = told
        self._without = without
        self._writing: tuple[MessageId, int, list[str]] | None = None
        self._hidden: set[CallId] = set()

    def read(self, at: int, event: AnyEvent) -> None:
        """Take in the next event."""
        match event:
            case AgentText():
                if self._writing is None or self._writing[0] != event.message:
                    self.close()
                    self._writing = (event.message, at, [])
                self._writing[2].append(event.text)
            case ModelAnswered() if self._writing and event.message == self._writing[0]:
                if not event.model:  # what the agent says by itself is no part of the work
                    self._writing = None
                self.close()
            case TurnStarted():
                self.close()
                self.turn += 1
            case UserMessage() if not event.local:
                said = [block.text for block in event.content if isinstance(block, TextBlock)]
                self._tell(at, "user", "\n".join((*said, event.attached)).strip())
            case ToolCalled(name=name) if name == self._without:
                self._hidden.add(event.call)
            case ToolCalled():
                self.close()
                self._tell(at, "call", f"{event.name} {event.arguments}", event.call)
            case ToolEnded() if event.call not in self._hidden and event.result:
                self._tell(at, "result", event.result, event.call)
            case _:
                pass

    def close(self) -> None:
        """The answer that was being written is whole."""
        if self._writing is None:
            return
        _, at, pieces = self._writing
        self._writing = None
        if text := "".join(pieces).strip():
            self._tell(at, "agent", text)

    def _tell(self, at: int, who: Speaker, text: str, call: CallId | None = None) -> None:
        self._told.append(
            Passage(turn=self.turn, at=at, who=who, text=text, call=call, within=self.within)
        )


def search(told: Sequence[Passage], words: str, most: int) -> list[Found]:
    """The passages that have the words, those with more and rarer ones first, then the newest.

    Words are found in the middle of others too, whatever their case: so names, and scripts without
    spaces between words, can be found.
    """
    wanted = list(dict.fromkeys((a or b).casefold() for a, b in _WORDS.findall(words)))
    texts = [passage.text.casefold() for passage in told]
    places = [[text.find(word) for text in texts] for word in wanted]
    scores = [0.0] * len(told)
    for found in places:
        count = sum(place >= 0 for place in found)
        rarity = math.log1p(len(told) / count) if count else 0.0
        for at, place in enumerate(found):
            if place >= 0:
                scores[at] += rarity
    ranked = sorted(
        (at for at, score in enumerate(scores) if score),
        key=lambda at: (-scores[at] * _WEIGHTS[told[at].who], -at),
    )
    return [
        Found(passage=told[at], place=min(found[at] for found in places if found[at] >= 0))
        for at in ranked[:most]
    ]
