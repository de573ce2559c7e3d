"""Search the earlier session, including what is no longer sent to the model."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal

from msgspec import Struct
from pydantic import Field

from acp_agent.content import JsonObject, TextBlock, text_part
from acp_agent.errors import ToolError
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
from acp_agent.tools.base import RESULT_LIMIT, Outcome, Prepared, Progress, Tool, ToolParams
from acp_agent.tools.quoting import code_block, shorten
from acp_agent.workspace.workspace import Workspace

_MOST = 12  # passages of one answer
_AROUND = 400  # characters shown before and behind the first word that was found
_ROOM = 12_000  # characters of one answer about many passages
_WHOLE = RESULT_LIMIT // 4  # characters of one that reads on, so that no script overruns its bytes
_SHOWN = 4_000  # characters that the user is shown
Dated = tuple[int, AnyEvent]  # milliseconds since 1970 (UTC), and what happened then
Journal = Callable[[], Awaitable[Sequence[Dated]]]
Speaker = Literal["user", "agent", "call", "result"]
_WORDS = re.compile(r'"([^"]+)"|(\S+)')
# Weights by speaker: what people and models say is shorter and says more.
_WEIGHTS: dict[Speaker, float] = {"user": 1.3, "agent": 1.1, "call": 1.0, "result": 0.9}


class Passage(Struct, frozen=True, kw_only=True):
    """One message, call or result. `turn` counts from 1; `at` is as in `Dated`.

    `within` is the call that a child session worked for, where the passage is the child's.
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


class SessionSearchParams(ToolParams):
    """What to look for."""

    words: str = ""
    turn: Annotated[int | None, Field(ge=1)] = None
    call: str = ""
    start: Annotated[int, Field(ge=0, description="Characters to skip.")] = 0


class SessionSearchTool(Tool[SessionSearchParams]):
    """Searches the journal of its own session.

    Args:
        workspace: the session's.
        journal: gives all that happened in the session so far.
    """

    name: ClassVar = "session_search"
    kind: ClassVar = "search"
    effect: ClassVar = "reads"
    params: ClassVar = SessionSearchParams

    def __init__(self, workspace: Workspace, journal: Journal) -> None:
        super().__init__(workspace)
        self._journal = journal

    def title(self, arguments: JsonObject) -> str:
        """For instance "Search this session for retry limit"."""
        if isinstance(words := arguments.get("words"), str) and words.strip():
            return f"Search this session for {shorten(' '.join(words.split()), 80)}"
        if isinstance(turn := arguments.get("turn"), int):
            return f"Read turn {turn} of this session"
        return "Read an earlier result" if arguments.get("call") else "Search this session"

    async def prepare(self, params: SessionSearchParams) -> Prepared:
        """See that there is something to look for."""
        if not (params.words.strip() or params.turn or params.call):
            raise ToolError(
                "there is nothing to look for",
                advice="give words to look for, a turn, or the id of a call",
            )

        async def run(_: Progress) -> Outcome:
            journal = await self._journal()
            answer, advice = await asyncio.to_thread(_answer, journal, params)
            shown = text_part(code_block(shorten(answer, _SHOWN), ""))
            return Outcome(text=f"{answer}\n{advice}".rstrip("\n"), content=(shown,))

        return Prepared(title=self.title(params.model_dump(exclude_defaults=True)), run=run)


def _answer(journal: Sequence[Dated], params: SessionSearchParams) -> tuple[str, str]:
    """Return what was found, and what the model is to do next."""
    known = passages(journal, without=SessionSearchTool.name)
    if params.call:
        result = next(
            (one for one in known if one.who == "result" and one.call == params.call), None
        )
        if result is None:
            raise ToolError(f"no call {params.call!r} of this session has a result")
        return _part(result.text, params.start)
    if params.turn is not None:
        last = known[-1].turn if known else 0
        known = [one for one in known if one.turn == params.turn]
        if not known:
            raise ToolError(f"there is no turn {params.turn}", advice=f"the last one is {last}")
    if not params.words.strip():
        return _part("\n\n".join(f"{_head(one)}\n{one.text}" for one in known), params.start)
    found = search(known, params.words, _MOST)
    if not found:
        return "Nothing in this session has any of these words.", "Try others, or fewer letters."
    return _listed(found), ""


def _listed(found: Sequence[Found]) -> str:
    lines: list[str] = []
    room = _ROOM
    for one in found:
        text = f"{_head(one.passage)}\n{_around(one)}"
        room -= len(text)
        if room < 0:
            break
        lines.append(text)
    return "\n\n".join(lines)


def _head(passage: Passage) -> str:
    when = datetime.fromtimestamp(passage.at / 1_000, UTC).astimezone()
    call = f", {passage.call}" if passage.call is not None else ""
    child = f", a subagent in {passage.within}" if passage.within is not None else ""
    return f"[turn {passage.turn}, {when:%Y-%m-%d %H:%M}, {passage.who}{call}{child}]"


def _around(found: Found) -> str:
    text = found.passage.text
    first, last = max(0, found.place - _AROUND), found.place + _AROUND
    before = "… " if first else ""
    behind = " …" if last < len(text) else ""
    return f"{before}{text[first:last].strip()}{behind}"


def _part(text: str, start: int) -> tuple[str, str]:
    part = text[start : start + _WHOLE]
    left = len(text) - start - len(part)
    if left > 0:
        return f"{part}\n[{left:,} more characters]", f"Read on with start {start + len(part)}."
    return part or f"[There are only {len(text):,} characters.]", ""


def passages(journal: Iterable[Dated], *, without: str) -> list[Passage]:
    """What a session's events say, in order; calls of the tool `without` are left out.

    What children of the session did is among it, but for what they were asked: the call for which
    they work has that.
    """
    found: list[Passage] = []
    own = _Reader(found, without)
    children: dict[SessionId, _Reader] = {}
    for at, event in journal:
        if isinstance(event, ChildWorked):
            child = children.setdefault(event.session, _Reader(found, without))
            child.within = event.call
            child.turn = own.turn
            if not isinstance(event.did, TurnStarted | UserMessage):
                child.read(at, event.did)
        else:
            own.read(at, event)
    for reader in (*children.values(), own):
        reader.close()
    return found


class _Reader:
    """Reads one conversation: the session's own, or a child's."""

    def __init__(self, passages: list[Passage], without: str) -> None:
        self.turn = 0
        self.within: CallId | None = None
        self._passages = passages
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
                texts = [block.text for block in event.content if isinstance(block, TextBlock)]
                self._add(at, "user", "\n".join((*texts, event.attached)).strip())
            case ToolCalled(name=name) if name == self._without:
                self._hidden.add(event.call)
            case ToolCalled():
                self.close()
                self._add(at, "call", f"{event.name} {event.arguments}", event.call)
            case ToolEnded() if event.call not in self._hidden and event.result:
                self._add(at, "result", event.result, event.call)
            case _:
                pass

    def close(self) -> None:
        """The answer that was being written is whole."""
        if self._writing is None:
            return
        _, at, pieces = self._writing
        self._writing = None
        if text := "".join(pieces).strip():
            self._add(at, "agent", text)

    def _add(self, at: int, who: Speaker, text: str, call: CallId | None = None) -> None:
        self._passages.append(
            Passage(turn=self.turn, at=at, who=who, text=text, call=call, within=self.within)
        )


def search(known: Sequence[Passage], words: str, most: int) -> list[Found]:
    """The passages that have the words, those with more and rarer ones first, then the newest.

    Words are found in the middle of others too, whatever their case: so names, and scripts without
    spaces between words, can be found.
    """
    wanted = list(dict.fromkeys((a or b).casefold() for a, b in _WORDS.findall(words)))
    texts = [passage.text.casefold() for passage in known]
    places = [[text.find(word) for text in texts] for word in wanted]
    scores = [0.0] * len(known)
    for found in places:
        count = sum(place >= 0 for place in found)
        rarity = math.log1p(len(known) / count) if count else 0.0
        for at, place in enumerate(found):
            if place >= 0:
                scores[at] += rarity
    ranked = sorted(
        (at for at, score in enumerate(scores) if score),
        key=lambda at: (-scores[at] * _WEIGHTS[known[at].who], -at),
    )
    return [
        Found(passage=known[at], place=min(found[at] for found in places if found[at] >= 0))
        for at in ranked[:most]
    ]
