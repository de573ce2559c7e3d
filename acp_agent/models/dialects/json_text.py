"""JSON inside a model's text: where it ends, what it begins with, and what it says."""

from __future__ import annotations

import ast
import json
import re
from enum import Enum
from typing import Final

# Strings are one step each, whatever brackets are in them; a lone quotation mark begins one that
# has no end yet. Possessive, so that a long text without an end takes one look.
_STEP = re.compile(r'"(?:[^"\\]++|\\.)*+"|["{}\[\]]', re.DOTALL)
_TOKEN = re.compile(r'\s*+("(?:[^"\\]++|\\.)*+"|[^\s"]|")', re.DOTALL)

_LONGEST_NAME = 200  # characters


class Nothing(Enum):
    """No value: what `decode` gives for text that is no JSON."""

    NOTHING = 0


NOTHING: Final = Nothing.NOTHING


def value_end(text: str, start: int) -> int | None:
    """Where the object or array ends that begins at `start`; None: not in this text."""
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
    """What a text says, `NOTHING` where it is no JSON.

    Line ends and tabs may stand inside strings: small models write them so.
    """
    try:
        value: object = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return NOTHING
    return value


def decode_python(text: str) -> object:
    """What a text says as a Python literal, as some models write JSON; else `NOTHING`."""
    try:
        value: object = ast.literal_eval(text.strip())
        return json.loads(json.dumps(value))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return NOTHING


def encode(value: object) -> str:
    """A value as JSON that can be sent on."""
    written = json.dumps(value, ensure_ascii=False)
    try:
        written.encode()
    except UnicodeEncodeError:  # half a surrogate pair, as an escape in what the model wrote
        return json.dumps(value)
    return written


def first_tokens(text: str, at: int, count: int) -> list[str]:
    """Up to so many tokens of the JSON at a place, strings whole and with their marks.

    Fewer where the text ends before. What is neither a string nor a mark is given as its first
    character; a string that is too long for a name and has no end yet, as "".
    """
    tokens: list[str] = []
    while len(tokens) < count:
        found = _TOKEN.match(text, at)
        if found is None:
            break
        if found[1] == '"':  # a string without an end: too long for a name, or not there yet
            if len(text) - found.end() > _LONGEST_NAME:
                tokens.append("")
            break
        tokens.append(found[1])
        at = found.end()
    return tokens
