"""A tool call's arguments as a provider takes them back: the model's own text, made safe."""

from __future__ import annotations

import msgspec

_UNREADABLE = "unreadable_arguments"
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


def is_object(text: str) -> bool:
    """Whether `text` is a whole JSON object."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except _UNREADABLE_ERRORS:
        return False
