"""Follow up incomplete answers, those cut off and empty ones, and say why an answer is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from acp_agent.agent.answer import Answer
from acp_agent.agent.context import Context
from acp_agent.agent.continued_text import FollowUp
from acp_agent.agent.resources import TurnResources
from acp_agent.config.localization import Translator
from acp_agent.events import AnyEvent, StopReason, agent_notice
from acp_agent.models.base import AnswerCall, AnswerText, ModelSide, ToolResult

MAX_CONTINUATIONS = 4  # in a row; a model that needs more makes no progress

_NOTHING_SEEN = (
    "[Your answer reached its limit of tokens before the user could see any of it. Reason more "
    "briefly, and answer.]"
)
_CONTINUE = (
    "[Your answer reached its limit of tokens. Continue it exactly where it stopped: begin with "
    "the next character, repeat nothing, and do not mention the interruption.]"
)
_EMPTY = (
    "[Your answer had neither text nor a tool call, so the user saw nothing. If there is work "
    "left, continue with it; otherwise tell the user the result in a sentence or two.]"
)


class IncompleteAnswers:
    """Counts the incomplete answers of one turn and decides how to follow them up."""

    def __init__(self, turn: TurnResources) -> None:
        self._turn = turn
        self._continued = 0
        self._was_empty = False

    async def follow_up(
        self, answer: Answer
    ) -> FollowUp | Literal["end_turn", "max_tokens"] | None:
        """Return the follow-up of an answer, None if it is complete, or why the turn ends.

        Raises:
            StoreError: the journal could not be written.
        """
        if answer.stop == "max_tokens":
            return await self._cut(answer)
        if answer.stop == "paused":
            self._continued += 1
            if self._continued > MAX_CONTINUATIONS:
                return "max_tokens"
            return FollowUp(continues=answer.message)
        self._continued = 0
        if answer.calls or answer.visible:
            self._was_empty = False
            return None
        if not self._was_empty:
            self._was_empty = True
            return FollowUp(note=_EMPTY)
        text = self._turn.user.translate(
            "The model returned an empty answer twice. Try again, or choose another model."
        )
        await self._turn.journal.emit(*agent_notice(text))
        return "end_turn"

    async def _cut(self, answer: Answer) -> FollowUp | Literal["max_tokens"]:
        self._continued += 1
        if self._continued > MAX_CONTINUATIONS:
            return "max_tokens"  # the user sees this as the end of the turn
        if answer.cut is not None:
            name = f" of {answer.cut.name}" if answer.cut.name else ""
            if answer.visible:  # keeps clients from joining this text to the next answer
                text = self._turn.user.translate(
                    "A tool call was too long and did not run; the model sends it in parts."
                )
                await self._turn.journal.emit(*agent_notice(text))
            return FollowUp(
                note=f"[Your answer reached its limit of tokens. Your call{name} was cut off after "
                f"{answer.cut.size:,} characters of its arguments and was not run. Do the same in "
                "several smaller calls: for a long file, write its first part, then add the rest "
                "part by part.]"
            )
        if answer.visible and not answer.calls:
            return FollowUp(note=_CONTINUE, continues=answer.message, text=answer.text)
        return FollowUp(note=_CONTINUE if answer.calls else _NOTHING_SEEN)


def stop_notice(stop: StopReason, context: Context, translate: Translator) -> Sequence[AnyEvent]:
    """Return a notice that says why an answer is missing or cut off; empty if it is complete.

    Not every client shows the protocol's `stopReason`. The model never sees the notice.

    Args:
        stop: why the model stopped.
        context: the conversation, including the model's answer.
    """
    text = _why_stopped(stop, context, translate)
    return () if text is None else agent_notice(text)


def _why_stopped(stop: StopReason, context: Context, translate: Translator) -> str | None:
    if stop == "refusal":
        return translate(
            "The model refused. Your prompt and the answer are no longer sent to the model. "
            "Rephrase the prompt, or choose another model."
        )
    if context.has_unsent_message:  # the model runs again
        return None
    match stop, _has_answer(context):
        case "max_tokens", True:
            return translate(
                "The answer is cut off: it reached the token limit for one answer. Send “go on” "
                "to get the rest."
            )
        case "max_tokens", False:
            return translate(
                "No answer: the model reached the token limit for one answer while reasoning or "
                "writing a call. Ask for less at once, or choose another model."
            )
        case _:
            return None


def _has_answer(context: Context) -> bool:
    """Return whether the model has answered or called a tool since the user's last message."""
    for entry in reversed(context.entries):
        message = entry.message
        if isinstance(message, ModelSide):
            if any(_is_answer(part) for part in message.parts):
                return True
        elif not any(isinstance(part, ToolResult) for part in message.parts):
            return False
    return False


def _is_answer(part: object) -> bool:
    return isinstance(part, AnswerCall) or (
        isinstance(part, AnswerText) and bool(part.text.strip())
    )
