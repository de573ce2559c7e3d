"""A request rewritten for an API without tools: tools, calls and results become text.

Every message is rewritten by itself and the same each time, so a session's requests still begin
with the bytes of the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from msgspec import structs

from acp_agent.ids import CallId
from acp_agent.models.arguments import as_object
from acp_agent.models.base import (
    AnswerCall,
    AnswerText,
    Message,
    ModelRequest,
    ModelSide,
    ToolResult,
    UserImage,
    UserSide,
    UserText,
)
from acp_agent.models.dialects.form import Writing
from acp_agent.models.dialects.tools import Tools

_NO_OUTPUT = "(no output)"


def without_tools(request: ModelRequest, form: Writing) -> ModelRequest:
    """The request with everything that concerns tools written in the form."""
    if not request.tools and not _has_calls(request.messages):
        return request
    system = request.system
    if request.tools:
        told = form.instructions(Tools(request.tools))
        system = f"{system}\n\n{told}" if system else told
    numbers: dict[CallId, tuple[int, str]] = {}
    messages = [_rewritten(message, form, numbers) for message in request.messages]
    return structs.replace(request, system=system, messages=messages, tools=())


def _has_calls(messages: Sequence[Message]) -> bool:
    return any(isinstance(part, (AnswerCall, ToolResult)) for one in messages for part in one.parts)


def _rewritten(message: Message, form: Writing, numbers: dict[CallId, tuple[int, str]]) -> Message:
    if isinstance(message, ModelSide):
        return _model(message, form, numbers)
    return _user(message, form, numbers)


def _model(message: ModelSide, form: Writing, numbers: dict[CallId, tuple[int, str]]) -> ModelSide:
    """Calls that follow each other are written together. Reasoning is not sent back."""
    written: list[AnswerText] = []
    for is_call, group in groupby(message.parts, lambda part: isinstance(part, AnswerCall)):
        parts = list(group)
        if not is_call:
            written.extend(part for part in parts if isinstance(part, AnswerText))
            continue
        calls = []
        for part in parts:
            if isinstance(part, AnswerCall):
                number = len(numbers)
                numbers[part.call] = (number, part.name)
                calls.append((number, part.name, as_object(part.arguments)))
        before = written[-1] if written else None
        between = "\n" if before is not None and not before.text.endswith("\n") else ""
        written.append(AnswerText(between + form.calls(calls)))
    return ModelSide(tuple(written))


def _user(message: UserSide, form: Writing, numbers: dict[CallId, tuple[int, str]]) -> UserSide:
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    if not results:
        return message
    told = []
    pictures: list[UserText | UserImage | ToolResult] = []
    for result in results:
        number, name = numbers.get(result.call, (len(numbers), "tool"))
        text = result.text or _NO_OUTPUT
        told.append((number, name, f"Error: {text}" if result.failed else text))
        if result.images:
            pictures.append(UserText(f"The pictures of the result of {name}:"))
            pictures.extend(map(UserImage, result.images))
    rest = [part for part in message.parts if not isinstance(part, ToolResult)]
    return UserSide((UserText(form.results(told)), *pictures, *rest))
