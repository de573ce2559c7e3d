"""How many tokens something takes, estimated without a tokenizer, and what a provider counted.

An estimate counts a token for three bytes of UTF-8: more than English and most code take, about
right for Chinese. What a provider counted corrects it, see `acp_agent.agent.count`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from acp_agent.models.base import (
    AnswerCall,
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
PICTURE = 1_600  # what the providers count for a large one
MESSAGE = 8  # the frame of a message, or of a call

_Part = UserText | UserImage | ToolResult | AnswerText | AnswerThought | AnswerCall


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider counted of the last request, and our own estimates beside it.

    `input` and `output` are the provider's; `asked` is the estimate for the messages and the system
    prompt of that request, `after` the one with its answer, and `changes` the state of the view.
    """

    model: str
    input: int
    output: int
    asked: int
    after: int
    changes: int


def text_tokens(text: str) -> int:
    """The estimate for a text."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return -(-size // BYTES_PER_TOKEN)


def message_tokens(message: Message) -> int:
    """The estimate for a message."""
    return MESSAGE + sum(map(_part_tokens, message.parts))


def tool_tokens(tools: Iterable[ToolSpec]) -> int:
    """The estimate for the tools that a request offers."""
    return sum(
        text_tokens(tool.name)
        + text_tokens(tool.description)
        + len(msgspec.json.encode(tool.parameters)) // BYTES_PER_TOKEN
        + MESSAGE
        for tool in tools
    )


def request_tokens(request: ModelRequest) -> int:
    """The estimate for all that a request sends."""
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
        case AnswerThought():
            # What a provider wants back with a thought may be all that there is of it.
            sealed = 0 if part.seal is None else len(msgspec.json.encode(part.seal))
            return text_tokens(part.text) + sealed // BYTES_PER_TOKEN
        case UserImage():
            return PICTURE
