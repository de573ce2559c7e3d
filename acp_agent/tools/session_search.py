"""Find what was said and done earlier in the session, also where the model is not sent it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, ClassVar

from pydantic import Field

from acp_agent.content import JsonObject, text_part
from acp_agent.errors import ToolError
from acp_agent.tools.base import RESULT_LIMIT, Outcome, Prepared, Progress, Tool, ToolParams
from acp_agent.tools.quoting import fenced, shorten
from acp_agent.tools.session_text import Dated, Found, Passage, passages, search
from acp_agent.workspace.workspace import Workspace

Journal = Callable[[], Awaitable[Sequence[Dated]]]

_MOST = 12  # passages of one answer
_AROUND = 400  # characters shown before and behind the first word that was found
_ROOM = 12_000  # characters of one answer about many passages
_WHOLE = RESULT_LIMIT // 4  # characters of one that reads on, so that no script overruns its bytes
_SHOWN = 4_000  # characters that the user is shown


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
            shown = text_part(fenced(shorten(answer, _SHOWN), ""))
            return Outcome(text=f"{answer}\n{advice}".rstrip("\n"), content=(shown,))

        return Prepared(title=self.title(params.model_dump(exclude_defaults=True)), run=run)


def _answer(journal: Sequence[Dated], params: SessionSearchParams) -> tuple[str, str]:
    """Return what was found, and what the model is to do next."""
    told = passages(journal, without=SessionSearchTool.name)
    if params.call:
        result = next(
            (one for one in told if one.who == "result" and one.call == params.call), None
        )
        if result is None:
            raise ToolError(f"no call {params.call!r} of this session has a result")
        return _part(result.text, params.start)
    if params.turn is not None:
        last = told[-1].turn if told else 0
        told = [one for one in told if one.turn == params.turn]
        if not told:
            raise ToolError(f"there is no turn {params.turn}", advice=f"the last one is {last}")
    if not params.words.strip():
        return _part("\n\n".join(f"{_head(one)}\n{one.text}" for one in told), params.start)
    found = search(told, params.words, _MOST)
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
