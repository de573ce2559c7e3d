"""Convert names and arguments of tools between ours and those that hooks use."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path

from msgspec import Struct, convert, field

from acp_agent.content import JsonObject

_PLAIN = re.compile(r"[A-Za-z0-9_\-|, ]+")
_SEPARATORS = re.compile(r"[|,]")
_MILLISECONDS = 1_000


class _Names(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    other: list[str] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    milliseconds: list[str] = field(default_factory=list)


@cache
def _table() -> dict[str, _Names]:
    text = (files(__package__) / "tool_names.toml").read_text("utf-8")
    return convert(tomllib.loads(text), dict[str, _Names])


def hook_name(tool: str) -> str:
    """Return the name that hooks use for a tool, or ours if there is no other."""
    known = _table().get(tool)
    return tool if known is None else known.name


def own_name(tool: str) -> str:
    """Return our name of a tool, given our name or a name that hooks use."""
    for own, known in _table().items():
        if tool in {own, known.name, *known.other}:
            return own
    return tool


def matches(matcher: str, tool: str) -> bool:
    """Return whether a matcher matches a tool, by our name or a name that hooks use.

    Names with `|` or a comma between them match as a whole; anything else is a regular expression
    that may match anywhere in the name.

    Raises:
        re.error: the regular expression is invalid.
    """
    if matcher.strip() in {"", "*"}:
        return True
    known = _table().get(tool)
    names = {tool} if known is None else {tool, known.name, *known.other}
    if _PLAIN.fullmatch(matcher):
        return not names.isdisjoint(one.strip() for one in _SEPARATORS.split(matcher))
    pattern = re.compile(matcher)
    return any(pattern.search(name) for name in names)


def hook_arguments(tool: str, arguments: JsonObject, cwd: Path) -> JsonObject:
    """Return a call's arguments with the field names and units that hooks use."""
    known = _table().get(tool)
    if known is None:
        return arguments
    found = {known.fields.get(name, name): value for name, value in arguments.items()}
    for name in known.paths:
        if isinstance(value := found.get(name), str):
            found[name] = str(cwd / value)
    for name in known.milliseconds:
        if isinstance(value := found.get(name), int | float) and not isinstance(value, bool):
            found[name] = value * _MILLISECONDS
    return found


def hook_response(tool: str, arguments: JsonObject, result: str) -> JsonObject | str:
    """Return a call's result in the form that hooks read.

    Args:
        tool: our name of the tool.
        arguments: the arguments with the field names that hooks use.
        result: the text of the result.
    """
    match hook_name(tool):
        case "Bash":
            return {"stdout": result, "stderr": "", "interrupted": False, "isImage": False}
        case "Edit" | "Write" if "file_path" in arguments:
            shown = {_camel_case(name): value for name, value in arguments.items()}
            return {**shown, "success": True, "text": result}
        case _:
            return result


def _camel_case(name: str) -> str:
    head, *words = name.split("_")
    return head + "".join(word.capitalize() for word in words)


def own_arguments(tool: str, arguments: JsonObject) -> JsonObject:
    """Return a hook's arguments with our field names and units."""
    known = _table().get(tool)
    if known is None:
        return arguments
    ours = {theirs: own for own, theirs in known.fields.items()}
    found = dict(arguments)
    for name in known.milliseconds:
        if isinstance(value := found.get(name), int | float) and not isinstance(value, bool):
            found[name] = value / _MILLISECONDS
    return {ours.get(name, name): value for name, value in found.items()}
