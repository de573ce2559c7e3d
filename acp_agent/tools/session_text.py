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
    ModelAnswered,
    ToolCalled,
    ToolEnded,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId

Dated = tuple[int, AnyEvent]  # milliseconds since 1970 (UTC), and what happened then
Speaker = Literal["user", "agent", "call", "result"]

_WORDS = re.compile(r'"([^"]+)"|(\S+)')
# How much it matters who said it: what people and models said is shorter and says more.
_WEIGHTS: dict[Speaker, float] = {"user": 1.3, "agent": 1.1, "call": 1.0, "result": 0.9}


class Passage(Struct, frozen=True, kw_only=True):
    """Something that was said or done, in one piece. `turn` counts from 1; `at` as in `Dated`."""

    turn: int
    at: int
    who: Speaker
    text: str
    call: CallId | None = None


class Found(Struct, frozen=True, kw_only=True):
    """A passage that has some of the words, and the place of the first of them that was found."""

    passage: Passage
    place: int


def passages(journal: Iterable[Dated], *, without: str) -> list[Passage]:
    """What a session's events say, in order; calls of the tool `without` are left out."""
    told: list[Passage] = []
    turn = 0
    writing: tuple[MessageId, int, list[str]] | None = None
    hidden: set[CallId] = set()

    def close() -> None:
        nonlocal writing
        if writing is not None:
            text = "".join(writing[2]).strip()
            if text:
                told.append(Passage(turn=turn, at=writing[1], who="agent", text=text))
            writing = None

    for at, event in journal:
        match event:
            case AgentText():
                if writing is None or writing[0] != event.message:
                    close()
                    writing = (event.message, at, [])
                writing[2].append(event.text)
            case ModelAnswered() if writing is not None and event.message == writing[0]:
                if not event.model:  # what the agent says by itself is no part of the work
                    writing = None
                close()
            case TurnStarted():
                close()
                turn += 1
            case UserMessage() if not event.local:
                said = [block.text for block in event.content if isinstance(block, TextBlock)]
                text = "\n".join((*said, event.attached)).strip()
                told.append(Passage(turn=turn, at=at, who="user", text=text))
            case ToolCalled(name=name) if name == without:
                hidden.add(event.call)
            case ToolCalled():
                close()
                text = f"{event.name} {event.arguments}"
                told.append(Passage(turn=turn, at=at, who="call", text=text, call=event.call))
            case ToolEnded() if event.call not in hidden and event.result:
                told.append(
                    Passage(turn=turn, at=at, who="result", text=event.result, call=event.call)
                )
            case _:
                pass
    close()
    return told


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
