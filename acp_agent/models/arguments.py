"""A tool call as a provider takes it back: the model's own words, made safe."""

from __future__ import annotations

import re

import msgspec

_UNREADABLE = "unreadable_arguments"
_LONGEST_NAME = 64
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")
# Text that nests without end is no worse than text that is no JSON at all.
_UNREADABLE_ERRORS = (msgspec.DecodeError, UnicodeError, RecursionError)


def as_object(text: str) -> str:
    """`text` where it is a JSON object, else an object that holds it.

    A model may write arguments that are no JSON. Providers refuse a history with such text, some
    of them only later in the session; wrapped, the model still sees what it wrote.
    """
    if not text.strip():
        return "{}"
    try:
        value = msgspec.json.decode(text)
    except _UNREADABLE_ERRORS:
        value = None
    if isinstance(value, dict):
        return text
    return msgspec.json.encode({_UNREADABLE: text}).decode()


def as_name(name: str) -> str:
    """`name` where it is one that every provider takes, else one that is like it.

    A model may call what is no tool, such as `browser.open`. Providers refuse a history with such
    a name: OpenAI and Anthropic take ^[a-zA-Z0-9_-]{1,64}$, Gemini no digit at the beginning.
    """
    if _NAME.fullmatch(name):
        return name
    plain = _NO_NAME.sub("_", name)[:_LONGEST_NAME]
    return plain if _NAME.fullmatch(plain) else f"_{plain}"[:_LONGEST_NAME]


def is_object(text: str) -> bool:
    """Whether `text` is a whole JSON object."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except _UNREADABLE_ERRORS:
        return False
