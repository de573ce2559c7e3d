"""Find and decode JSON in the text of a model."""

from __future__ import annotations

import ast
import json
import re
from enum import Enum
from typing import Final

# A string is one step, including brackets in it. A lone quotation mark begins an unfinished string.
# Possessive quantifiers avoid repeated searches in a long unfinished text.
_STEP = re.compile(r'"(?:[^"\\]++|\\.)*+"|["{}\[\]]', re.DOTALL)
_TOKEN = re.compile(r'\s*+("(?:[^"\\]++|\\.)*+"|[^\s"]|")', re.DOTALL)

_MAX_NAME_LENGTH = 200  # characters


class Nothing(Enum):
    """No value: the result of `decode` for text that is not JSON."""

    NOTHING = 0


NOTHING: Final = Nothing.NOTHING


def value_end(text: str, start: int) -> int | None:
    """Return the end of the object or array that begins at `start`, or None if it is missing."""
    depth = 0
    for step in _STEP.finditer(text, start):
        mark = text[step.start()]
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if depth <= 0:
                return step.end()
        elif step.end() - step.start() == 1:
            return None
    return None


def decode(text: str) -> object:
    """Return the value of a JSON text, or `NOTHING` if it is not JSON.

    Strings may contain line breaks and tabs, which small models do not escape.
    """
    try:
        value: object = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return NOTHING
    return value


def decode_python(text: str) -> object:
    """Return the value of a Python literal, which some models write for JSON, or `NOTHING`."""
    try:
        value: object = ast.literal_eval(text.strip())
        return json.loads(json.dumps(value))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return NOTHING


def encode(value: object) -> str:
    """Return a value as JSON text that can be encoded as UTF-8."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # the model wrote half a surrogate pair as an escape
        return json.dumps(value)
    return text


def first_tokens(text: str, at: int, count: int) -> list[str]:
    """Return up to `count` tokens of the JSON at a position, strings with their quotes.

    There are fewer tokens if the text ends. A token that is neither a string nor a mark is
    represented by its first character, and a string too long for a name by "".
    """
    tokens: list[str] = []
    while len(tokens) < count:
        match = _TOKEN.match(text, at)
        if match is None:
            break
        if match[1] == '"':  # an unfinished string: too long for a name, or incomplete
            if len(text) - match.end() > _MAX_NAME_LENGTH:
                tokens.append("")
            break
        tokens.append(match[1])
        at = match.end()
    return tokens
