"""Sums the earlier part of a conversation up, in sight of the user."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Literal

import msgspec

from acp_agent.agent.count import ratio, room_of
from acp_agent.agent.keepsakes import KEPT, Keepsakes, completed, keepsakes
from acp_agent.agent.resources import TurnResources
from acp_agent.agent.side_requests import ask_aside
from acp_agent.agent.tokens import BYTES_PER_TOKEN, text_tokens, tool_tokens
from acp_agent.agent.view import Entry, View, cut_message
from acp_agent.errors import AcpAgentError, ModelError, StoreError
from acp_agent.events import (
    CompactionChanged,
    CompactionSummaryText,
)
from acp_agent.ids import MessageId, new_compaction_id
from acp_agent.models.base import (
    AnswerCall,
    AnswerText,
    ModelInfo,
    ModelRequest,
    ThoughtLevel,
    ToolResult,
    UserSide,
    UserText,
)
from acp_agent.workspace.scrub import scrub

_LONGEST = 0.9  # of what it replaces, the part that a summary may take
_LIMITS = (2_000, 500, 150)  # characters of a result in what is summed up, until it fits
_FRAME = 200  # tokens of a request that are not what is summed up
_LEAST_ANSWER = 1_000  # tokens; some models reason first
_HEAD = 0.3  # of what is summed up, the part from its beginning where not all of it fits


async def compact(
    turn: TurnResources, *, place: int, room: int, focus: str = "", models: Sequence[ModelInfo]
) -> str | None:
    """Sum up what stands before a place of the context; None where that worked.

    It is written to the journal as it goes. Cancelling this ends it, and tells so.

    Args:
        turn: the session.
        place: where what is kept as it is begins.
        room: the tokens that the summary may take, with what is kept word for word.
        focus: what matters, in the user's words.
        models: the models to ask, one after the other.

    Returns:
        Why it failed, in words for the user.

    Raises:
        StoreError: the journal could not be written.
    """
    view = turn.journal.context.view
    work = _Compaction(turn, place=place, room=room // 2, focus=focus)
    kept = await _kept(turn, view, place)
    try:
        await work.tell("in_progress")
        summary = completed(await work.summary(models), kept, room // 2)
        work.check_length(summary)
    except StoreError:
        raise
    except AcpAgentError as error:
        why = scrub(str(error), turn.journal.secrets)
        await work.tell("failed", error=why)
        return why
    except BaseException:
        await work.tell("cancelled")
        raise
    # What was said meanwhile stands behind the place, and stays.
    keep_from = view.entries[place].id if place < len(view.entries) else None
    await work.tell("completed", summary=scrub(summary, turn.journal.secrets), keep_from=keep_from)
    return None


class _Compaction:
    """One compaction: of what stands before `place`, into `room` tokens."""

    def __init__(self, turn: TurnResources, *, place: int, room: int, focus: str) -> None:
        self._turn = turn
        self._place = place
        self._room = room
        self._focus = focus
        self._id = new_compaction_id()

    async def tell(
        self,
        status: Literal["in_progress", "completed", "failed", "cancelled"],
        *,
        summary: str = "",
        keep_from: MessageId | None = None,
        error: str = "",
    ) -> None:
        """Write down how it goes."""
        await self._turn.journal.emit(
            CompactionChanged(
                compaction=self._id,
                status=status,
                summary=summary,
                keep_from=keep_from,
                error=error,
            )
        )

    def check_length(self, summary: str) -> None:
        """Whether it is worth having.

        Raises:
            ModelError: it is hardly shorter than what it replaces.
        """
        view = self._turn.journal.context.view
        replaced = sum(entry.tokens for entry in view.entries[view.first : self._place])
        if text_tokens(summary) > (replaced + text_tokens(view.summary)) * _LONGEST:
            raise ModelError("the summary is as long as what it replaces", provider="")

    async def summary(self, models: Sequence[ModelInfo]) -> str:
        """The summary of the first of the models that gives one.

        Raises:
            AcpAgentError: none did, or not in time.
        """
        seconds = self._turn.limits.context.compaction_timeout
        failure: AcpAgentError = ModelError("there is no model to ask", provider="")
        try:
            async with asyncio.timeout(seconds):
                for model in models:
                    try:
                        return await self._ask(model)
                    except StoreError:
                        raise
                    except AcpAgentError as error:
                        failure = error
        except TimeoutError:
            raise ModelError(f"it took longer than {seconds:g} seconds", provider="") from None
        raise failure

    async def _ask(self, model: ModelInfo) -> str:
        turn = self._turn
        instructions = (files(__package__) / "compaction.md").read_text("utf-8").strip()
        instructions = instructions.replace("{words}", f"{max(100, self._room // 2):,}")
        if self._focus:
            instructions += f"\n- What matters most to the user: {self._focus}"
        space = _space(turn, model) - text_tokens(instructions) - _FRAME
        told = await asyncio.to_thread(written_down, turn.journal.context.view, self._place, space)
        longest = min(model.max_output, max(_LEAST_ANSWER, self._room * 2))
        request = ModelRequest(
            model=msgspec.structs.replace(model, max_output=longest),
            system=instructions,
            messages=(
                UserSide((UserText(f"<conversation>\n{told}\n</conversation>\n\nSum it up."),)),
            ),
            thought_level=_least_thought(model),
        )
        return await ask_aside(turn, request, show=self._show)

    async def _show(self, text: str) -> None:
        shown = scrub(text, self._turn.journal.secrets)
        await self._turn.journal.emit(CompactionSummaryText(compaction=self._id, text=shown))


def _space(turn: TurnResources, model: ModelInfo) -> int:
    """How much a model may be sent, in tokens of our estimate."""
    refused = turn.journal.context.refused.get(model.ref)
    most = room_of(model, turn.limits.context, refused).most
    return int(
        most
        / max(1.0, ratio(turn.journal.context, model, turn.tools.toolset.measured(tool_tokens)))
    )


async def _kept(turn: TurnResources, view: View, place: int) -> Keepsakes:
    events = await turn.journal.history()
    messages = {entry.id for entry in view.entries[:place] if entry.id is not None}
    texts, results = list(_texts(view, place)), list(_results(view, place))
    return await asyncio.to_thread(keepsakes, events, messages, texts, results)


def _texts(view: View, place: int) -> Iterator[tuple[str, float]]:
    """What is searched for names: what people and models wrote, and what calls were made with."""
    if view.summary:
        yield view.summary, 3.0
    for entry in view.entries[view.first : place]:
        for part in entry.message.parts:
            match part:
                case UserText():
                    yield part.text[:20_000], 3.0
                case AnswerText():
                    yield part.text, 2.0
                case AnswerCall():
                    yield "\n".join(_given(part.arguments))[:2_000], 1.0
                case _:
                    pass


def _results(view: View, place: int) -> Iterator[str]:
    """What is searched for identifiers: what calls returned."""
    for entry in view.entries[view.first : place]:
        for part in entry.message.parts:
            if isinstance(part, ToolResult):
                yield part.text[:20_000]


def _given(arguments: str) -> Iterator[str]:
    """The texts and numbers that a call was made with, without what JSON writes between them.

    In JSON the line break before a name is a backslash and an n, which would be taken for its
    beginning.
    """
    try:
        yield from _leaves(msgspec.json.decode(arguments))
    except (msgspec.DecodeError, RecursionError):
        yield arguments


def _leaves(value: object) -> Iterator[str]:
    match value:
        case dict():
            for one in value.values():
                yield from _leaves(one)
        case list():
            for one in value:
                yield from _leaves(one)
        case str():
            yield value
        case int() | float() if not isinstance(value, bool):
            yield str(value)
        case _:
            pass


def written_down(view: View, place: int, space: int) -> str:
    """The part of the conversation before a place, as a text of at most so many tokens.

    Results are cut shorter until it fits; where that does not help, its middle is left out.
    """
    before = view.summary.partition(KEPT)[0].strip()
    begin = f"[What came before, summed up:]\n{before}\n\n" if before else ""
    text = ""
    for limit in _LIMITS:
        lines = [
            line for entry in view.entries[view.first : place] for line in _lines(entry, limit)
        ]
        text = begin + "\n\n".join(lines)
        if text_tokens(text) <= space:
            return text
    room = max(0, space) * BYTES_PER_TOKEN * len(text) // max(1, len(text.encode()))
    head = int(room * _HEAD)
    return f"{text[:head]}\n\n[… the middle is left out …]\n\n{text[len(text) - room + head :]}"


def _lines(entry: Entry, limit: int) -> Iterator[str]:
    for part in cut_message(entry.message, limit).parts:
        match part:
            case UserText():
                yield f"User: {part.text}"
            case AnswerText():
                yield f"Agent: {part.text}"
            case AnswerCall():
                arguments = part.arguments
                if len(arguments) > limit:
                    arguments = (
                        f"{arguments[:limit]} [… {len(arguments) - limit:,} more characters]"
                    )
                yield f"Agent calls {part.name}: {arguments}"
            case ToolResult():
                yield f"{'Failed' if part.failed else 'Result'}: {part.text}"
            case _:
                pass


def _least_thought(model: ModelInfo) -> ThoughtLevel | None:
    """As little reasoning as the model lets one choose."""
    return next(iter(model.thought_levels), None)
