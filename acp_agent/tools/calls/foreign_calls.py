"""Convert calls with the names and fields of other agents to calls of our tools.

`foreign_calls.toml` has the names. Nothing is guessed: a field without a counterpart is dropped
only if it does not change the effect of the call.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

from acp_agent.content import JsonObject
from acp_agent.errors import ToolError
from acp_agent.platform.first_use import first_use
from acp_agent.tools.calls.argument_json import read_json
from acp_agent.tools.calls.foreign_values import COMPLETE, CONVERSIONS, FILTERS, NotConvertibleError

# Fields that a model may put around all the others.
_WRAPPERS = (
    *("arguments", "args", "input", "parameters", "params", "kwargs", "tool_input"),
    "action",  # of codex's `local_shell`
)
_NAMING = {"name", "tool", "tool_name", "id", "type", "function", "recipient_name"}
_NUMBER = re.compile(r":\d+$")  # of a call, in Kimi's ids
_TAGS_AFTER = re.compile(r"(?<=\w)<.*", re.DOTALL)  # of the model's template
_PREFIX = re.compile(r"^(?:\w+[.:/])+")
_SEPARATORS = re.compile(r"[\s_-]+")


class ToolNames(Struct, frozen=True, forbid_unknown_fields=True):
    """The names that other agents use for a tool and its fields; see `foreign_calls.toml`."""

    names: tuple[str, ...] = ()
    fields: Mapping[str, str] = {}
    ignored: tuple[str, ...] = ()
    refused: Mapping[str, tuple[Any, ...]] = {}  # values are whatever JSON has
    items: Mapping[str, str] = {}
    milliseconds: tuple[str, ...] = ()
    set: Mapping[str, JsonObject] = {}
    plain: str = ""  # the field of an item that is no object
    commands: Mapping[str, str] = {}
    templates: Mapping[str, str] = {}  # commands that do the work of other tools


class ForeignCall(Struct, frozen=True, kw_only=True):
    """A call in our names; `ignored` are fields of the model that our tool does not have."""

    tool: str
    values: JsonObject
    ignored: tuple[str, ...] = ()


def known_tool(name: str, tools: Collection[str], command: object = None) -> str | None:
    """Return our tool for a name; None if there is none.

    Args:
        name: the name in a call.
        tools: the names of the tools there are.
        command: which of several things the call does, for tools that have a command.

    Raises:
        ToolError: no tool of ours does what the command asks for.
    """
    bare = _bare(name)
    for tool in tools:
        if _key(tool) == bare:
            return tool
    of_servers = [tool for tool in tools if bare and _key(tool.rpartition("__")[2]) == bare]
    if len(of_servers) == 1:
        return of_servers[0]
    found = _index().get(bare)
    if found is not None and (commands := _table()[found].commands):
        if command is None:
            return None
        if command not in commands:
            raise ToolError(
                f"{name} has no command {str(command)[:60]!r} here",
                advice=f"it has {', '.join(commands)}; other tools are {', '.join(tools)}",
            )
        found = commands[str(command)]
    return found if found in tools else None


def translate(name: str, tool: str, values: JsonObject, schema: JsonObject) -> ForeignCall:
    """Return a call of `tool` in its own fields, with values of their types.

    Args:
        name: the name in the call.
        tool: our tool.
        values: the arguments in the call.
        schema: the parameters of the tool, a JSON Schema.

    Raises:
        ToolError: the arguments contradict each other, or ask for what the tool cannot do.
    """
    own: JsonObject = schema.get("properties", {})
    for naming in ("name", "tool", "tool_name"):
        named = values.get(naming) if naming not in own else None
        if isinstance(named, str) and known_tool(named, _table()) not in {None, tool}:
            raise _unclear(tool, own, f"{naming!r} is {named!r}, another tool")
    values = unwrapped(values, own)
    table = _table().get(tool, ToolNames())
    bare = _bare(name)
    template = next((one for key, one in table.templates.items() if _key(key) == bare), None)
    if template is not None:
        return ForeignCall(tool=tool, values={"command": _filled(template, values, tool, own)})
    if commands := _table()[_index()[bare]].commands if bare in _index() else None:
        values = {key: value for key, value in values.items() if key != "command" or not commands}
    in_milliseconds = bare in set(map(_key, table.milliseconds))
    ignored: list[str] = []
    try:
        found = dict(_fields(values, table, own, ignored, in_milliseconds=in_milliseconds))
    except NotConvertibleError as error:
        raise _unclear(tool, own, str(error)) from error
    set_by_name = next((one for key, one in table.set.items() if _key(key) == bare), {})
    given = {key: one for key, one in found.items() if one is not None or key not in set_by_name}
    return ForeignCall(
        tool=tool, values=coerced({**set_by_name, **given}, schema), ignored=tuple(ignored)
    )


def _filled(template: str, values: JsonObject, tool: str, own: Collection[str]) -> str:
    """Return the command that replaces a tool which we do not have."""
    table = _table()["template"]
    try:
        given = dict(_fields(values, table, {"path", "source", "destination"}, []))
        return template.format_map({key: shlex.quote(str(one)) for key, one in given.items()})
    except (NotConvertibleError, KeyError) as error:
        raise _unclear(tool, own, f"{error} is missing or unclear") from error


def unwrapped(values: JsonObject, own: Collection[str]) -> JsonObject:
    """Return the arguments without an object around them, unless the tool has a field for that."""
    for wrapper in _WRAPPERS:
        inner = values.get(wrapper)
        if wrapper in own or inner is None:
            continue
        if isinstance(inner, str):
            inner = _decoded(inner)
        if isinstance(inner, list) and len(inner) == 1:
            (inner,) = inner
        naming = _NAMING - set(own) - set(inner if isinstance(inner, dict) else ())
        around = {key: value for key, value in values.items() if key not in {wrapper, *naming}}
        if isinstance(inner, dict) and not around.keys() & inner.keys():
            return around | inner
    return values


def coerced(values: JsonObject, schema: JsonObject) -> JsonObject:
    """Return the arguments with values of the types in the schema, if that changes no meaning.

    Null counts as not given if the field is optional.
    """
    own: JsonObject = schema.get("properties", {})
    required: Collection[str] = schema.get("required", ())
    return {
        key: _coerced(value, own.get(key) or {})
        for key, value in values.items()
        if value is not None or key in required or key not in own
    }


def _fields(
    values: JsonObject,
    table: ToolNames,
    own: Collection[str],
    ignored: list[str],
    *,
    in_milliseconds: bool = False,
) -> Iterator[tuple[str, object]]:
    """Yield the arguments in our fields; those without a counterpart go to `ignored`."""
    own_names = {_key(one): one for one in own}
    aliases = {_key(theirs): ours for theirs, ours in table.fields.items()}
    values = _spread(values, aliases)
    refused = {_key(theirs): allowed for theirs, allowed in table.refused.items()}
    harmless = set(map(_key, table.ignored))
    found: dict[str, tuple[str, object]] = {}  # by our field: theirs, and the value
    converted: list[tuple[str, str, str, object]] = []
    for theirs, value in values.items():
        key = _key(theirs)
        target = own_names.get(key) if theirs not in own else theirs
        ours, _, conversion = (target or aliases.get(key) or "").partition(":")
        if theirs in own and ":" in aliases.get(key, ""):  # such as a command that is a list
            conversion = aliases[key].partition(":")[2]
        if value is None and ours in own and not conversion:
            yield ours, None
        elif conversion:
            converted.append((theirs, ours, conversion, value))
        elif ours:
            _set(found, ours, theirs, value)
        elif value is None or key in harmless or _is_allowed(value, refused.get(key)):
            continue
        elif key in refused:
            raise NotConvertibleError(f"it has no {theirs!r}")
        else:
            ignored.append(theirs)
    built: set[str] = set()
    for theirs, ours, conversion, value in converted:
        given = {name: one for name, (_, one) in found.items()} | {"_ms": in_milliseconds}
        for name, one in CONVERSIONS[conversion](ours, value, given).items():
            if conversion in COMPLETE:
                built.add(name)
            if theirs == ours or conversion in FILTERS:
                found[name] = (theirs, one)
            else:
                _set(found, name, theirs, one)
    for name, (_, value) in found.items():
        items = None if name in built else table.items.get(name)
        yield name, value if items is None else _items(value, _table()[items])


def _spread(values: JsonObject, aliases: Mapping[str, str]) -> JsonObject:
    """Return the arguments with the fields of the only object in a list."""
    for theirs, value in values.items():
        alone = value[0] if isinstance(value, list) and len(value) == 1 else value
        if aliases.get(_key(theirs), "").endswith(":only") and isinstance(alone, dict):
            return {key: one for key, one in values.items() if key != theirs} | alone
    return values


def _set(found: dict[str, tuple[str, object]], ours: str, theirs: str, value: object) -> None:
    earlier, before = found.setdefault(ours, (theirs, value))
    if before != value:
        raise NotConvertibleError(f"{earlier!r} and {theirs!r} are given, with different values")


def _is_allowed(value: object, allowed: tuple[Any, ...] | None) -> bool:
    return allowed is not None and any(value == one for one in allowed)


def _items(value: object, table: ToolNames) -> object:
    """Return a list of objects in our fields; other values unchanged."""
    if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
        value = _decoded(value)
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return value
    own = {ours.partition(":")[0] for ours in table.fields.values()}
    plain = table.plain
    items = [{plain: one} if plain and isinstance(one, str) else one for one in value]
    return [dict(_fields(one, table, own, [])) if isinstance(one, dict) else one for one in items]


def _coerced(value: object, kind: JsonObject) -> object:
    match kind.get("type"), value:
        case "string", int() | float() if not isinstance(value, bool):
            return str(value)
        case "string", str() if "enum" in kind and value not in kind["enum"]:
            return value.strip().lower() if value.strip().lower() in kind["enum"] else value
        case "boolean", str() if value.strip().lower() in {"true", "false"}:
            return value.strip().lower() == "true"
        case "integer", float() if value.is_integer():
            return int(value)
        case (("integer" | "number"), str()):
            number = _decoded(value.strip())
            return number if isinstance(number, int | float) else value
        case "array", str():
            items = _decoded(value) if value.lstrip().startswith("[") else [value]
            return items if isinstance(items, list) else value
        case "object", str() if value.lstrip().startswith("{"):
            return _decoded(value)
        case _:
            return value


def _decoded(text: str) -> object:
    try:
        return read_json(text)
    except ValueError:
        return text


def _unclear(tool: str, own: Collection[str], why: str) -> ToolError:
    return ToolError(
        f"wrong arguments of {tool}: {why}",
        advice=f"its parameters are {', '.join(own)}",
        shown=f"the model called {tool} with wrong arguments",
    )


def _bare(name: str) -> str:
    """Return a name without what models add: `functions.read:0`, `read<|channel|>`, `read()`."""
    bare = _NUMBER.sub("", _TAGS_AFTER.sub("", name.strip()))
    bare = _PREFIX.sub("", bare.removesuffix("()").strip("`'\"<> "))
    for prefix in _table()["prefixes"].names:
        bare = bare.removeprefix(f"{prefix}__")
    return _key(bare)


def _key(name: str) -> str:
    """Return a name for comparison: without case and separators. `-i` and `i` stay different."""
    start = "-" if name.startswith("-") else ""
    return start + _SEPARATORS.sub("", name).lower()


@cache
def _table() -> dict[str, ToolNames]:
    text = (files(__package__) / "foreign_calls.toml").read_text("utf-8")
    with first_use:
        return msgspec.convert(tomllib.loads(text), dict[str, ToolNames])


@cache
def _index() -> dict[str, str]:
    """Return our tools by the names that other agents use."""
    return {
        _key(name): tool
        for tool, table in _table().items()
        for name in (*table.names, *table.templates)
    }
