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

_MAX_PASSAGES = 12  # passages of one answer
_CONTEXT_LENGTH = 400  # characters shown before and after the first found word
_MAX_ANSWER_LENGTH = 12_000  # characters of one answer about many passages
# Characters of one part of a text; a quarter, so that no script exceeds the limit in bytes.
_MAX_PART_LENGTH = RESULT_LIMIT // 4
_MAX_SHOWN_LENGTH = 4_000  # characters that the user is shown
DatedEvent = tuple[int, AnyEvent]  # milliseconds since 1970 (UTC), and what happened then
Journal = Callable[[], Awaitable[Sequence[DatedEvent]]]
Speaker = Literal["user", "agent", "call", "result"]
_WORDS = re.compile(r'"([^"]+)"|(\S+)')
# Weights by speaker: what people and models say is shorter and says more.
_WEIGHTS: dict[Speaker, float] = {"user": 1.3, "agent": 1.1, "call": 1.0, "result": 0.9}


class Passage(Struct, frozen=True, kw_only=True):
    """One message, call or result. `turn` counts from 1; `at` is as in `DatedEvent`.

    `parent_call` is the call that a child session worked for, if the passage is from the child.
    """

    turn: int
    at: int
    speaker: Speaker
    text: str
    call: CallId | None = None
    parent_call: CallId | None = None


class SearchHit(Struct, frozen=True, kw_only=True):
    """A passage with some of the words, and the offset of the first one."""

    passage: Passage
    offset: int


class SessionSearchParams(ToolParams):
    """The session_search tool's parameters."""

    words: str = ""
    turn: Annotated[int | None, Field(ge=1)] = None
    call: str = ""
    start: Annotated[int, Field(ge=0, description="Characters to skip.")] = 0


class SessionSearchTool(Tool[SessionSearchParams]):
    """Searches the journal of its own session.

    Args:
        journal: returns the events of the session so far.
    """

    name: ClassVar = "session_search"
    kind: ClassVar = "search"
    effect: ClassVar = "reads"
    params: ClassVar = SessionSearchParams

    def __init__(self, workspace: Workspace, journal: Journal) -> None:
        super().__init__(workspace)
        self._journal = journal

    def title(self, arguments: JsonObject) -> str:
        """Return a title such as "Search this session for retry limit"."""
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
            content = text_part(code_block(shorten(answer, _MAX_SHOWN_LENGTH), ""))
            return Outcome(text=f"{answer}\n{advice}".rstrip("\n"), content=(content,))

        return Prepared(title=self.title(params.model_dump(exclude_defaults=True)), run=run)


def _answer(journal: Sequence[DatedEvent], params: SessionSearchParams) -> tuple[str, str]:
    """Return what was found, and what the model is to do next."""
    all_passages = passages(journal, without=SessionSearchTool.name)
    if params.call:
        result = next(
            (
                passage
                for passage in all_passages
                if passage.speaker == "result" and passage.call == params.call
            ),
            None,
        )
        if result is None:
            raise ToolError(f"no call {params.call!r} of this session has a result")
        return _page(result.text, params.start)
    if params.turn is not None:
        last = all_passages[-1].turn if all_passages else 0
        all_passages = [passage for passage in all_passages if passage.turn == params.turn]
        if not all_passages:
            raise ToolError(f"there is no turn {params.turn}", advice=f"the last one is {last}")
    if not params.words.strip():
        return _page(
            "\n\n".join(f"{_heading(passage)}\n{passage.text}" for passage in all_passages),
            params.start,
        )
    hits = search(all_passages, params.words, _MAX_PASSAGES)
    if not hits:
        return "Nothing in this session has any of these words.", "Try others, or fewer letters."
    return _list_hits(hits), ""


def _list_hits(hits: Sequence[SearchHit]) -> str:
    lines: list[str] = []
    remaining = _MAX_ANSWER_LENGTH
    for hit in hits:
        text = f"{_heading(hit.passage)}\n{_excerpt(hit)}"
        remaining -= len(text)
        if remaining < 0:
            break
        lines.append(text)
    return "\n\n".join(lines)


def _heading(passage: Passage) -> str:
    timestamp = datetime.fromtimestamp(passage.at / 1_000, UTC).astimezone()
    call = f", {passage.call}" if passage.call is not None else ""
    child = f", a subagent in {passage.parent_call}" if passage.parent_call is not None else ""
    return f"[turn {passage.turn}, {timestamp:%Y-%m-%d %H:%M}, {passage.speaker}{call}{child}]"


def _excerpt(hit: SearchHit) -> str:
    text = hit.passage.text
    first, last = max(0, hit.offset - _CONTEXT_LENGTH), hit.offset + _CONTEXT_LENGTH
    before = "… " if first else ""
    after = " …" if last < len(text) else ""
    return f"{before}{text[first:last].strip()}{after}"


def _page(text: str, start: int) -> tuple[str, str]:
    page = text[start : start + _MAX_PART_LENGTH]
    remaining = len(text) - start - len(page)
    if remaining > 0:
        return (
            f"{page}\n[{remaining:,} more characters]",
            f"Read on with start {start + len(page)}.",
        )
    return page or f"[There are only {len(text):,} characters.]", ""


def passages(journal: Iterable[DatedEvent], *, without: str) -> list[Passage]:
    """Return the texts of a session's events in order, without calls of the tool `without`.

    Events of child sessions are included, except for their prompts, which are in the calls that
    they work for.
    """
    result: list[Passage] = []
    session_reader = _Reader(result, without)
    children: dict[SessionId, _Reader] = {}
    for at, event in journal:
        if isinstance(event, ChildWorked):
            child = children.setdefault(event.session, _Reader(result, without))
            child.parent_call = event.call
            child.turn = session_reader.turn
            if not isinstance(event.did, TurnStarted | UserMessage):
                child.read(at, event.did)
        else:
            session_reader.read(at, event)
    for reader in (*children.values(), session_reader):
        reader.close()
    return result


class _Reader:
    """Reads the conversation of the session or of a child session."""

    def __init__(self, passages: list[Passage], without: str) -> None:
        self.turn = 0
        self.parent_call: CallId | None = None
        self._passages = passages
        self._without = without
        self._partial_answer: tuple[MessageId, int, list[str]] | None = None
        self._hidden_calls: set[CallId] = set()

    def read(self, at: int, event: AnyEvent) -> None:
        """Take in the next event."""
        match event:
            case AgentText():
                if self._partial_answer is None or self._partial_answer[0] != event.message:
                    self.close()
                    self._partial_answer = (event.message, at, [])
                self._partial_answer[2].append(event.text)
            case ModelAnswered() if (
                self._partial_answer and event.message == self._partial_answer[0]
            ):
                if not event.model:  # the agent's own notices are not part of the work
                    self._partial_answer = None
                self.close()
            case TurnStarted():
                self.close()
                self.turn += 1
            case UserMessage() if not event.local:
                texts = [block.text for block in event.content if isinstance(block, TextBlock)]
                self._add(at, "user", "\n".join((*texts, event.attached)).strip())
            case ToolCalled(name=name) if name == self._without:
                self._hidden_calls.add(event.call)
            case ToolCalled():
                self.close()
                self._add(at, "call", f"{event.name} {event.arguments}", event.call)
            case ToolEnded() if event.call not in self._hidden_calls and event.result:
                self._add(at, "result", event.result, event.call)

    def close(self) -> None:
        """End the answer that was being written."""
        if self._partial_answer is None:
            return
        _, at, pieces = self._partial_answer
        self._partial_answer = None
        if text := "".join(pieces).strip():
            self._add(at, "agent", text)

    def _add(self, at: int, speaker: Speaker, text: str, call: CallId | None = None) -> None:
        self._passages.append(
            Passage(
                turn=self.turn,
                at=at,
                speaker=speaker,
                text=text,
                call=call,
                parent_call=self.parent_call,
            )
        )


def search(all_passages: Sequence[Passage], words: str, limit: int) -> list[SearchHit]:
    """Return the passages with the words: those with more and rarer words first, then newer ones.

    Words are also found inside other words, ignoring case, because of names and of scripts without
    spaces between words.
    """
    terms = list(dict.fromkeys((a or b).casefold() for a, b in _WORDS.findall(words)))
    texts = [passage.text.casefold() for passage in all_passages]
    offsets = [[text.find(word) for text in texts] for word in terms]
    scores = [0.0] * len(all_passages)
    for term_offsets in offsets:
        count = sum(offset >= 0 for offset in term_offsets)
        rarity = math.log1p(len(all_passages) / count) if count else 0.0
        for index, offset in enumerate(term_offsets):
            if offset >= 0:
                scores[index] += rarity
    ranked = sorted(
        (index for index, score in enumerate(scores) if score),
        key=lambda index: (-scores[index] * _WEIGHTS[all_passages[index].speaker], -index),
    )
    return [
        SearchHit(
            passage=all_passages[index],
            offset=min(term_offsets[index] for term_offsets in offsets if term_offsets[index] >= 0),
        )
        for index in ranked[:limit]
    ]
