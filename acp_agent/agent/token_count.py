"""Token counts: estimates without a tokenizer, and counts measured by the provider.

The estimate is one token per three bytes of UTF-8. This is too high for English and most code, and
about right for Chinese. `acp_agent.agent.context_size` corrects it with the provider's counts.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from acp_agent.models.base import (
    AnswerCall,
    AnswerPart,
    AnswerSearch,
    AnswerText,
    AnswerThought,
    Message,
    ModelRequest,
    ToolResult,
    UserImage,
    UserText,
)
from acp_agent.tools.spec import ToolSpec

BYTES_PER_TOKEN = 3
PICTURE = 1_600  # tokens that providers count for a large picture
MESSAGE = 8  # for the structure of a message or a call

_Part = UserText | UserImage | ToolResult | AnswerPart


class MeasuredTokens(msgspec.Struct, frozen=True, kw_only=True):
    """The provider's token counts for the last request, with our estimates for it.

    `input` and `output` are the provider's counts. `estimated` covers the system prompt and
    messages of the request, and `after` includes its answer. `changes` is `ContextView.changes` at
    that time.
    """

    model: str
    input: int
    output: int
    estimated: int
    after: int
    changes: int


def text_tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return -(-size // BYTES_PER_TOKEN)


def message_tokens(message: Message) -> int:
    """Estimate the tokens of a message."""
    return MESSAGE + sum(map(_part_tokens, message.parts))


def tool_tokens(tools: Iterable[ToolSpec]) -> int:
    """Estimate the tokens of the tools in a request."""
    return sum(tool.size // BYTES_PER_TOKEN + MESSAGE for tool in tools)


def request_tokens(request: ModelRequest) -> int:
    """Estimate the tokens of a whole request."""
    return (
        text_tokens(request.system)
        + sum(map(message_tokens, request.messages))
        + tool_tokens(request.tools)
    )


def _part_tokens(part: _Part) -> int:
    match part:
        case UserText() | AnswerText():
            return text_tokens(part.text)
        case ToolResult():
            return text_tokens(part.text) + PICTURE * len(part.images) + MESSAGE
        case AnswerCall():
            return text_tokens(part.arguments) + text_tokens(part.name) + MESSAGE
        case AnswerThought() | AnswerSearch():
            # Some have no text, only data that must be sent back to their provider.
            data = part.provider_data
            size = 0 if data is None else len(msgspec.json.encode(data))
            return text_tokens(part.text) + size // BYTES_PER_TOKEN
        case UserImage():
            return PICTURE
