"""Summarise the earlier part of a conversation, and show the progress to the user."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Literal

import msgspec

from acp_agent.agent.context_size import context_limits, estimate_ratio
from acp_agent.agent.context_view import ContextView, Entry, cut_message
from acp_agent.agent.resources import TurnResources
from acp_agent.agent.side_requests import ask_side_request
from acp_agent.agent.summary_verbatim import VERBATIM_HEADING, append_missing, collect_verbatim
from acp_agent.agent.token_count import BYTES_PER_TOKEN, text_tokens, tool_tokens
from acp_agent.errors import AcpAgentError, ModelError, StoreError
from acp_agent.events import CompactionChanged, CompactionSummaryText
from acp_agent.ids import MessageId, new_compaction_id
from acp_agent.models.base import (
    AnswerCall,
    AnswerSearch,
    AnswerText,
    ModelInfo,
    ModelRequest,
    ToolResult,
    UserSide,
    UserText,
)
from acp_agent.workspace.scrub import scrub

_MAX_SHARE = 0.9  # the largest size of a summary, as a share of the tokens that it replaces
_RESULT_LIMITS = (2_000, 500, 150)  # characters of a result, tried until the transcript fits
_FRAME_TOKENS = 200  # tokens of a request in addition to the transcript
_MIN_ANSWER = 1_000  # tokens; some models reason first
_HEAD_SHARE = 0.3  # the share of a cut transcript that is taken from its beginning


async def compact(
    turn: TurnResources,
    *,
    before: int,
    max_tokens: int,
    focus: str = "",
    models: Sequence[ModelInfo],
) -> str | None:
    """Replace the messages before an index by a summary.

    The journal records the progress, including cancellation.

    Args:
        max_tokens: the tokens that the summary and the verbatim details may take together.
        focus: what the summary should concentrate on, in the user's words.
        models: the models to ask, in this order, until one returns a summary.

    Returns:
        The reason of a failure, for the user, or None on success.

    Raises:
        StoreError: the journal could not be written.
    """
    view = turn.journal.context.view
    trigger = "manual" if focus else "auto"
    if turn.hooks is not None:
        fields = {"trigger": trigger, "custom_instructions": focus}
        answer = await turn.hooks.fire("PreCompact", fields, matched=trigger)
        if answer.blocked:
            why = scrub(answer.reason, turn.journal.secrets)
            return f"a hook refused to have the conversation summarised: {why}"
        focus = "\n".join(filter(None, (focus, answer.context)))
    work = _Compaction(turn, before=before, max_tokens=max_tokens // 2, focus=focus)
    events = await turn.journal.history()
    messages = {entry.id for entry in view.entries[:before] if entry.id is not None}
    texts, results = list(_texts(view, before)), list(_results(view, before))
    verbatim = await asyncio.to_thread(collect_verbatim, events, messages, texts, results)
    try:
        await work.record("in_progress")
        summary = append_missing(await work.summarize(models), verbatim, max_tokens // 2)
        work.check_length(summary)
    except StoreError:
        raise
    except AcpAgentError as error:
        why = scrub(str(error), turn.journal.secrets)
        await work.record("failed", error=why)
        return why
    except BaseException:
        await work.record("cancelled")
        raise
    # Messages that arrived during the compaction are after the index and stay.
    first_id = view.entries[before].id if before < len(view.entries) else None
    await work.record("completed", summary=scrub(summary, turn.journal.secrets), keep_from=first_id)
    if turn.hooks is not None:
        fields = {"trigger": trigger, "compact_summary": scrub(summary, turn.journal.secrets)}
        await turn.hooks.fire("PostCompact", fields, matched=trigger)
        session_fields = {"source": "compact", "model": turn.models.current.ref}
        answer = await turn.hooks.fire("SessionStart", session_fields, matched="compact")
        if answer.context:
            from acp_agent.hooks.session_hooks import context_notice  # noqa: PLC0415 - if there are hooks

            await turn.journal.emit(context_notice(scrub(answer.context, turn.journal.secrets)))
    return None


class _Compaction:
    """One compaction of the messages before an index."""

    def __init__(self, turn: TurnResources, *, before: int, max_tokens: int, focus: str) -> None:
        self._turn = turn
        self._before = before
        self._max_tokens = max_tokens
        self._focus = focus
        self._id = new_compaction_id()

    async def record(
        self,
        status: Literal["in_progress", "completed", "failed", "cancelled"],
        *,
        summary: str = "",
        keep_from: MessageId | None = None,
        error: str = "",
    ) -> None:
        """Record the progress."""
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
        """Check that a summary is short enough.

        Raises:
            ModelError: the summary is not much shorter than the messages that it replaces.
        """
        view = self._turn.journal.context.view
        replaced = sum(entry.tokens for entry in view.entries[view.first : self._before])
        if text_tokens(summary) > (replaced + text_tokens(view.summary)) * _MAX_SHARE:
            raise ModelError("the summary is not shorter than what it replaces", provider="")

    async def summarize(self, models: Sequence[ModelInfo]) -> str:
        """Return the summary of the first model that succeeds.

        Raises:
            AcpAgentError: all models failed, or the time is over.
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
        instructions = instructions.replace("{words}", f"{max(100, self._max_tokens // 2):,}")
        if self._focus:
            instructions += f"\n- What matters most to the user: {self._focus}"
        space = _transcript_tokens(turn, model) - text_tokens(instructions) - _FRAME_TOKENS
        text = await asyncio.to_thread(transcript, turn.journal.context.view, self._before, space)
        max_output = min(model.max_output, max(_MIN_ANSWER, self._max_tokens * 2))
        request = ModelRequest(
            model=msgspec.structs.replace(model, max_output=max_output),
            system=instructions,
            messages=(
                UserSide((UserText(f"<conversation>\n{text}\n</conversation>\n\nSummarise it."),)),
            ),
            thought_level=next(iter(model.thought_levels), None),  # the lowest
        )
        return await ask_side_request(turn, request, show=self._show)

    async def _show(self, text: str) -> None:
        safe = scrub(text, self._turn.journal.secrets)
        await self._turn.journal.emit(CompactionSummaryText(compaction=self._id, text=safe))


def _transcript_tokens(turn: TurnResources, model: ModelInfo) -> int:
    """Return how many tokens, by our estimate, can be sent to a model."""
    refused = turn.journal.context.refused.get(model.ref)
    maximum = context_limits(model, turn.limits.context, refused).maximum
    tools = tool_tokens(turn.tools.toolset.specs())
    return int(maximum / max(1.0, estimate_ratio(turn.journal.context, model, tools)))


def _texts(view: ContextView, before: int) -> Iterator[tuple[str, float]]:
    """Yield the texts to search for names, each with its weight."""
    if view.summary:
        yield view.summary, 3.0
    for entry in view.entries[view.first : before]:
        for part in entry.message.parts:
            match part:
                case UserText():
                    yield part.text[:20_000], 3.0
                case AnswerText():
                    yield part.text, 2.0
                case AnswerCall():
                    yield "\n".join(_values(part.arguments))[:2_000], 1.0


def _results(view: ContextView, before: int) -> Iterator[str]:
    """Yield the results of calls, which are searched for identifiers."""
    for entry in view.entries[view.first : before]:
        for part in entry.message.parts:
            if isinstance(part, ToolResult):
                yield part.text[:20_000]


def _values(arguments: str) -> Iterator[str]:
    """Yield the strings and numbers in a call's arguments, decoded.

    In JSON text a line break is written as a backslash and an n, which would become part of a name.
    """
    try:
        yield from _leaves(msgspec.json.decode(arguments))
    except (msgspec.DecodeError, RecursionError):
        yield arguments


def _leaves(value: object) -> Iterator[str]:
    match value:
        case dict():
            for item in value.values():
                yield from _leaves(item)
        case list():
            for item in value:
                yield from _leaves(item)
        case str():
            yield value
        case int() | float() if not isinstance(value, bool):
            yield str(value)


def transcript(view: ContextView, before: int, max_tokens: int) -> str:
    """Return the messages before an index as a text of at most `max_tokens`.

    Results are cut shorter until the text fits. If that is not enough, the middle is left out.
    """
    summary = view.summary.partition(VERBATIM_HEADING)[0].strip()
    introduction = f"[Summary of what came before:]\n{summary}\n\n" if summary else ""
    text = ""
    for limit in _RESULT_LIMITS:
        lines = [
            line for entry in view.entries[view.first : before] for line in _lines(entry, limit)
        ]
        text = introduction + "\n\n".join(lines)
        if text_tokens(text) <= max_tokens:
            return text
    length = max(0, max_tokens) * BYTES_PER_TOKEN * len(text) // max(1, len(text.encode()))
    head = int(length * _HEAD_SHARE)
    return f"{text[:head]}\n\n[… the middle is left out …]\n\n{text[len(text) - length + head :]}"


def _lines(entry: Entry, limit: int) -> Iterator[str]:
    for part in cut_message(entry.message, limit).parts:
        match part:
            case UserText():
                yield f"User: {part.text}"
            case AnswerText() | AnswerSearch():
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
