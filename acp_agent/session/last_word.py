"""What the user is told where the model stopped without an answer, or in the middle of one.

The protocol has a reason for the client, `stopReason`, which not every client shows. So the agent
says it by itself, as it does of a limit of requests, of a budget and of a model that goes round in
circles: once, where it happened, and never to the model.
"""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.agent.context import Context
from acp_agent.agent.spoken import aside
from acp_agent.config.localization import Translator
from acp_agent.events import AnyEvent, StopReason
from acp_agent.models.base import AnswerCall, AnswerText, ModelSide, ToolResult


def last_word(stop: StopReason, context: Context, translate: Translator) -> Sequence[AnyEvent]:
    """The events that say why there is no answer, or no more of it; none where all is well.

    Args:
        stop: why the model stopped.
        context: the conversation, with all that it said.
        translate: translates texts for the user.
    """
    text = _told(stop, context, translate)
    return () if text is None else aside(text)


def _told(stop: StopReason, context: Context, translate: Translator) -> str | None:
    if stop == "refusal":
        return translate(
            "This was refused, so what you asked and what came of it is not sent to the model any "
            "more. Ask in another way, or choose another model."
        )
    if context.has_unheard_words:  # it is asked again
        return None
    match stop, _said_something(context):
        case "max_tokens", True:
            return translate(
                "The answer is cut off here: it reached the limit of tokens for one answer. Say "
                "“go on” to have the rest."
            )
        case "max_tokens", False:
            return translate(
                "The model came to no answer: it reached the limit of tokens for one answer while "
                "it thought, or wrote a call. Ask for less at once, or choose another model."
            )
        case _:
            return None


def _said_something(context: Context) -> bool:
    """Whether the model said or called anything since the user spoke."""
    for entry in reversed(context.entries):
        message = entry.message
        if isinstance(message, ModelSide):
            if any(_is_something(part) for part in message.parts):
                return True
        elif not any(isinstance(part, ToolResult) for part in message.parts):
            return False
    return False


def _is_something(part: object) -> bool:
    return isinstance(part, AnswerCall) or (
        isinstance(part, AnswerText) and bool(part.text.strip())
    )
