"""Convert names and arguments of tools between ours and those that hooks use."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from msgspec import Struct, field

from acp_agent.content import JsonObject
from acp_agent.platform.data_tables import read_table

_PLAIN = re.compile(r"[A-Za-z0-9_\-|, ]+")
_SEPARATORS = re.compile(r"[|,]")
_MILLISECONDS = 1_000
_SERVER_TOOL = "mcp__"
_PLUGIN_TOOL = "mcp__plugin_"  # the prefix of a plugin's servers in other programs


class _Names(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    other: list[str] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    milliseconds: list[str] = field(default_factory=list)


@cache
def _table() -> dict[str, _Names]:
    return read_table(__package__, "tool_names.toml", dict[str, _Names])


def hook_name(tool: str) -> str:
    """Return the name that hooks use for a tool, or ours if there is no other."""
    names = _table().get(tool)
    return tool if names is None else names.name


def program_tool_name(tool: str) -> str:
    """Return our name of a tool, given our name or a name that hooks use."""
    for program_name, names in _table().items():
        if tool in {program_name, names.name, *names.other}:
            return program_name
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
    names = _table().get(tool)
    accepted = {tool} if names is None else {tool, names.name, *names.other}
    if tool.startswith(_SERVER_TOOL):
        accepted.add(tool.replace(_SERVER_TOOL, _PLUGIN_TOOL, 1))
    if _PLAIN.fullmatch(matcher):
        return not accepted.isdisjoint(part.strip() for part in _SEPARATORS.split(matcher))
    pattern = re.compile(matcher)
    return any(pattern.search(name) for name in accepted)


def hook_arguments(tool: str, arguments: JsonObject, cwd: Path) -> JsonObject:
    """Return a call's arguments with the field names and units that hooks use."""
    names = _table().get(tool)
    if names is None:
        return arguments
    converted = {names.fields.get(name, name): value for name, value in arguments.items()}
    for name in names.paths:
        if isinstance(value := converted.get(name), str):
            converted[name] = str(cwd / value)
    for name in names.milliseconds:
        if isinstance(value := converted.get(name), int | float) and not isinstance(value, bool):
            converted[name] = value * _MILLISECONDS
    return converted


def hook_response(tool: str, arguments: JsonObject, result: str) -> JsonObject | str:
    """Return a call's result in the form that hooks read.

    Args:
        tool: our name of the tool.
        arguments: the arguments with the field names that hooks use.
    """
    match hook_name(tool):
        case "Bash":
            return {"stdout": result, "stderr": "", "interrupted": False, "isImage": False}
        case "Edit" | "Write" if "file_path" in arguments:
            camel_fields = {_camel_case(name): value for name, value in arguments.items()}
            return {**camel_fields, "success": True, "text": result}
        case _:
            return result


def _camel_case(name: str) -> str:
    head, *words = name.split("_")
    return head + "".join(word.capitalize() for word in words)


def program_arguments(tool: str, arguments: JsonObject) -> JsonObject:
    """Return a hook's arguments with our field names and units."""
    names = _table().get(tool)
    if names is None:
        return arguments
    field_names = {hook_field: field for field, hook_field in names.fields.items()}
    converted = dict(arguments)
    for name in names.milliseconds:
        if isinstance(value := converted.get(name), int | float) and not isinstance(value, bool):
            converted[name] = value / _MILLISECONDS
    return {field_names.get(name, name): value for name, value in converted.items()}
