"""Support for models whose API has no tools: requests as text, and answers by a JSON Schema.

Each message is rewritten separately and always in the same way, so each request of a session still
begins with the bytes of the previous one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Literal

from msgspec import structs

from acp_agent.content import JsonObject
from acp_agent.ids import CallId
from acp_agent.models.base import (
    AnswerCall,
    AnswerText,
    CallDelta,
    CallDone,
    CallStarted,
    Message,
    ModelRequest,
    ModelSide,
    StreamEvent,
    TextDelta,
    ToolResult,
    UserImage,
    UserSide,
    UserText,
)
from acp_agent.models.dialects import json_text
from acp_agent.models.dialects.form import NO_END, UNREADABLE, CallWriter, Tools
from acp_agent.models.request_parts import as_object

_NO_OUTPUT = "(no output)"


def without_tools(request: ModelRequest, form: CallWriter) -> ModelRequest:
    """Return the request with tools, calls and results written as text in a form."""
    if not request.tools and not _has_calls(request.messages):
        return request
    system = request.system
    if request.tools:
        instructions = form.instructions(Tools(request.tools))
        system = f"{system}\n\n{instructions}" if system else instructions
    numbers: dict[CallId, tuple[int, str]] = {}
    messages = [_rewrite(message, form, numbers) for message in request.messages]
    return structs.replace(request, system=system, messages=messages, tools=())


def _has_calls(messages: Sequence[Message]) -> bool:
    return any(
        isinstance(part, (AnswerCall, ToolResult)) for message in messages for part in message.parts
    )


def _rewrite(message: Message, form: CallWriter, numbers: dict[CallId, tuple[int, str]]) -> Message:
    if isinstance(message, ModelSide):
        return _model(message, form, numbers)
    return _user(message, form, numbers)


def _model(
    message: ModelSide, form: CallWriter, numbers: dict[CallId, tuple[int, str]]
) -> ModelSide:
    """Return an answer as text. Adjacent calls are written together; reasoning is left out."""
    texts: list[AnswerText] = []
    for is_call, group in groupby(message.parts, lambda part: isinstance(part, AnswerCall)):
        group_parts = list(group)
        if not is_call:
            texts.extend(part for part in group_parts if isinstance(part, AnswerText))
            continue
        calls = []
        for part in group_parts:
            if isinstance(part, AnswerCall):
                number = len(numbers)
                numbers[part.call] = (number, part.name)
                calls.append((number, part.name, as_object(part.arguments)))
        previous = texts[-1] if texts else None
        separator = "\n" if previous is not None and not previous.text.endswith("\n") else ""
        texts.append(AnswerText(separator + form.calls(calls)))
    return ModelSide(tuple(texts))


def _user(message: UserSide, form: CallWriter, numbers: dict[CallId, tuple[int, str]]) -> UserSide:
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    if not results:
        return message
    entries = []
    pictures: list[UserText | UserImage | ToolResult] = []
    for result in results:
        number, name = numbers.get(result.call, (len(numbers), "tool"))
        text = result.text or _NO_OUTPUT
        entries.append((number, name, f"Error: {text}" if result.failed else text))
        if result.images:
            pictures.append(UserText(f"The pictures of the result of {name}:"))
            pictures.extend(map(UserImage, result.images))
    remaining_parts = [part for part in message.parts if not isinstance(part, ToolResult)]
    return UserSide((UserText(form.results(entries)), *pictures, *remaining_parts))


# Small models that do not call tools on their own: the answer is restricted to a JSON Schema.
#
# The model writes either `{"tool": name, "args": {…}}` or `{"answer": text}`. The server enforces
# this (`response_format`). The text of an answer is streamed.

_ANSWER = re.compile(r'\s*\{\s*"answer"\s*:\s*"')
_NOT_ANSWER = re.compile(
    r'\s*(?:\{\s*"(?!answer")[^"]*"|[^\s{]|\{\s*[^\s"]|\{\s*"answer"\s*:\s*[^\s"])'
)
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LOW = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_STEP = re.compile(r'[^"\\]+|"|\\(?:u([0-9a-fA-F]{4})|[^u])')
_DEPTH = 8  # levels of a schema that are sent; deeper values are not restricted

# The keywords that the grammars of servers support. The tool checks the others.
_KEYWORDS = {
    "type", "properties", "required", "items", "enum", "const", "anyOf", "minimum", "maximum",
}  # fmt: skip
_MAX_INTEGER = 1_000_000  # without a bound, a model may write digits forever

# Prompts, and the answers to write. Without examples, the smallest models write about the last part
# of the prompt until their answer is too long.
_EXAMPLES: tuple[tuple[str, JsonObject], ...] = (
    ("Read the file src/main.c", {"tool": "read", "args": {"path": "src/main.c"}}),
    ("What is in the folder docs?", {"tool": "list", "args": {"path": "docs"}}),
    ("Run the tests", {"tool": "shell", "args": {"command": "make test"}}),
    ("What does config.json say?", {"tool": "read", "args": {"path": "config.json"}}),
    ("Hello!", {"answer": "Hello! What shall I do?"}),
)


class _Json:
    """Writes calls and results as JSON for such a model."""

    def instructions(self, tools: Tools) -> str:
        """See `CallWriter`. The schema has the details, and does not take context."""
        listed = "\n".join(
            f"- {tool.name}({', '.join(tool.parameters.get('properties') or ())}): "
            f"{tool.description.partition('. ')[0].partition(chr(10))[0].rstrip('.')}."
            for tool in tools
        )
        examples = "\n".join(
            f"{prompt} → {json_text.encode(answer)}"
            for prompt, answer in _EXAMPLES
            if "answer" in answer or answer["tool"] in tools
        )
        return (
            f"Tools:\n{listed}\n"
            'Use a tool with {"tool": NAME, "args": {…}}. Say something with {"answer": TEXT}.\n\n'
            f"Examples:\n{examples}"
        )

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `CallWriter`."""
        return "\n".join(
            f'{{"tool": {json_text.encode(name)}, "args": {arguments}}}'
            for _, name, arguments in calls
        )

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `CallWriter`."""
        result_texts = "\n\n".join(f"Result of {name}:\n{text}" for _, name, text in results)
        return f'{result_texts}\n\nIf that is enough, answer now with {{"answer": TEXT}}.'


_JSON = _Json()


def add_answer_schema(request: ModelRequest) -> ModelRequest:
    """Return the request with a schema for the answer, which contains the tools."""
    variants = [
        _object({"tool": {"enum": [tool.name]}, "args": simplify_schema(tool.parameters)})
        for tool in request.tools
    ]
    variants.append(_object({"answer": {"type": "string"}}))
    return structs.replace(without_tools(request, _JSON), answer_schema={"anyOf": variants})


def simplify_schema(schema: JsonObject) -> JsonObject:
    """Return a tool's schema with the keywords that servers support and without references."""
    return _simplify(schema, schema, _DEPTH)


def _object(properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _simplify(schema: object, root: JsonObject, depth: int) -> JsonObject:
    if not isinstance(schema, dict) or depth == 0:
        return {}
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target: object = root
        for step in reference.removeprefix("#/").split("/"):
            target = target.get(step) if isinstance(target, dict) else None
        return _simplify(target, root, depth - 1)
    supported: JsonObject = {key: value for key, value in schema.items() if key in _KEYWORDS}
    if "anyOf" in supported:
        return {
            "anyOf": [_simplify(subschema, root, depth - 1) for subschema in supported["anyOf"]]
        }
    if supported.get("type") == "integer":
        supported = {"minimum": -_MAX_INTEGER, "maximum": _MAX_INTEGER, **supported}
    if "items" in supported:
        supported["items"] = _simplify(supported["items"], root, depth - 1)
    properties = supported.get("properties")
    if isinstance(properties, dict):
        supported["properties"] = {
            name: _simplify(subschema, root, depth - 1) for name, subschema in properties.items()
        }
        supported["additionalProperties"] = False
    return supported


class Reader:
    """Reads one answer. An answer that does not follow the schema is treated as text."""

    def __init__(self, tools: Tools) -> None:
        self.calls = 0
        self._tools = tools
        self._state: Literal["begin", "answer", "call", "text", "over"] = "begin"
        self._pieces: list[str] = []
        self._escape = ""  # an incomplete escape

    def feed(self, text: str) -> list[StreamEvent]:
        """Add a piece of the text; return the events that are certain now."""
        if self._state == "begin":
            self._pieces.append(text)
            text = "".join(self._pieces)
            if match := _ANSWER.match(text):
                self._state, self._pieces = "answer", []
                text = text[match.end() :]
            elif _NOT_ANSWER.match(text):
                self._state = "call" if text.lstrip().startswith("{") else "text"
                self._pieces = []
            else:
                return []
        if self._state == "over":
            return []
        if self._state == "answer":
            text = self._decode_string(text)
        elif self._state == "call":
            self._pieces.append(text)
            text = ""
        return [TextDelta(text)] if text else []

    def end(self, *, cut: bool = False) -> list[StreamEvent]:
        """Return the last events; `cut` is true if the answer reached its token limit."""
        text = "".join(self._pieces)
        if self._state == "begin":
            return [TextDelta(text)] if text.strip() else []
        if self._state != "call":
            return []
        name, arguments = self._parse_call(text)
        if arguments is None:
            if cut:
                return []
            arguments = f"{NO_END}\n{text}"
        self.calls = 1
        return [
            CallStarted(index=0, name=name),
            CallDelta(index=0, text=arguments),
            CallDone(index=0, name=name, arguments=arguments),
        ]

    def _parse_call(self, text: str) -> tuple[str, str | None]:
        value = json_text.decode(text)
        if not isinstance(value, dict):
            return UNREADABLE, None
        name, arguments = value.get("tool"), value.get("args")
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return UNREADABLE, None
        return name, json_text.encode(arguments)

    def _decode_string(self, text: str) -> str:
        """Return the decoded text of a piece of a JSON string; hold back an incomplete escape."""
        text, pieces, at = self._escape + text, [], 0
        while step := _STEP.match(text, at):
            piece, end = step[0], step.end()
            if piece == '"':
                self._state, at = "over", len(text)
                break
            if step[1]:
                code = int(step[1], 16)
                if 0xD800 <= code < 0xDC00:
                    low = _LOW.match(text, end)
                    if low is None and len(text) - end < len(piece):
                        break
                    if low is not None:
                        code = 0x10000 + (code - 0xD800) * 0x400 + int(low[1], 16) - 0xDC00
                        end = low.end()
                pieces.append("\N{REPLACEMENT CHARACTER}" if 0xD800 <= code < 0xE000 else chr(code))
            elif piece.startswith("\\"):
                pieces.append(_ESCAPES.get(piece[1], piece[1]))
            else:
                pieces.append(piece)
            at = end
        self._escape = text[at:]
        return "".join(pieces)
