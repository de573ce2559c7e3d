"""Explains what is wrong with a value, and names the field as it is on the wire."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

_PATH_SEPARATOR = " - at `"
_MISSING = "Object missing required field `"
_MAX_LENGTH = 300  # characters; a message may quote what the peer sent

# msgspec names Python's types; the peer knows JSON's.
_JSON_NAMES = {
    "`str`": "string",
    "`int`": "integer",
    "`bool`": "boolean",
    "`float`": "number",
    "`object`": "object",
    "`array`": "array",
    "`null`": "null",
}


class Explanation(NamedTuple):
    """The path of a field, such as `prompt[0].text` (empty: the whole value), and the reason."""

    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}" if self.field else self.reason


def explain(error: msgspec.ValidationError) -> Explanation:
    """Parse a validation error of msgspec.

    A type's own check (its `__post_init__`, or an open union) raises a ValueError that reads
    `field: reason`; its field is appended to the path at which msgspec found it.
    """
    text, _, path = str(error).partition(_PATH_SEPARATOR)
    field = path.removesuffix("`").removeprefix("$").removeprefix(".")
    if text.startswith(_MISSING):
        return Explanation(_join(field, text[len(_MISSING) :].rstrip("`")), "is required")
    head, colon, tail = text.partition(": ")
    if colon and " " not in head:
        field, text = _join(field, head), tail
    return Explanation(field, _in_json_terms(text)[:_MAX_LENGTH])


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path and not name.startswith("[") else path + name


def _in_json_terms(text: str) -> str:
    if not text.startswith("Expected"):
        return text[:1].lower() + text[1:]
    for python, json in _JSON_NAMES.items():
        text = text.replace(python, json)
    # A union comes as one quotation: `int | str | null`.
    head, quote, remainder = text.partition("`")
    union, _, tail = remainder.partition("`")
    if quote:
        names = [_JSON_NAMES.get(f"`{name}`", name) for name in union.split(" | ")]
        text = head + " or ".join(names) + tail
    return "e" + text[1:]
