"""Convert calls with the names and fields of other agents to calls of our tools.

`foreign_calls.toml` has the names. Nothing is guessed: a field without a counterpart is dropped
only if it does not change the effect of the call.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from acp_agent.content import JsonObject
from acp_agent.errors import ToolError
from acp_agent.platform.data_tables import read_table
from acp_agent.tools.calls.call_rewriting import (
    field_key,
    merge_edits,
    rewrite_call,
    split_call,
)
from acp_agent.tools.calls.foreign_values import COMPLETE, CONVERSIONS, FILTERS, NotConvertibleError
from acp_agent.tools.calls.value_types import coerce_values, decode_text

# Fields in which a model may wrap all the others.
_WRAPPERS = (
    *("arguments", "args", "input", "parameters", "params", "kwargs", "tool_input"),
    "action",  # of codex's `local_shell`
    "function",  # of a call in the form of OpenAI's API
)
_SEVERAL_FILES = {"read", "list", "grep", "edit"}  # tools whose calls may name several files
_NAME_FIELDS = {"name", "tool", "tool_name", "id", "type", "function", "recipient_name"}
# Commands of a tool with several, each by a field that only it has.
_COMMANDS = {
    "old_str": "str_replace",
    "insert_line": "insert",
    **dict.fromkeys(("file_text", "text", "content"), "create"),
}
_CALL_NUMBER = re.compile(r":\d+$")  # of a call, in Kimi's ids
_FIELD_NUMBER = re.compile(r"(?<=\w)_\d+$")
_TAGS_AFTER = re.compile(r"(?<=\w)<.*", re.DOTALL)  # of the model's template
_REPEATED = re.compile(r"^(.+?)\1+$")
_PREFIX = re.compile(r"^(?:\w+[.:/=])+")


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
    pair: tuple[str, ...] = ()  # the fields of an item that is a list of texts
    commands: Mapping[str, str] = {}
    templates: Mapping[str, str] = {}  # shell commands that replace other tools


class ForeignCall(Struct, frozen=True, kw_only=True):
    """A call with our names; `ignored` are the fields that our tool does not have."""

    tool: str
    values: JsonObject
    ignored: tuple[str, ...] = ()


def resolve_tool(
    name: str, tools: Collection[str], values: Mapping[str, object] | None = None
) -> str | None:
    """Return our tool for a name; None if there is none.

    Args:
        values: the arguments. `command`, or the other fields, say what a tool that does several
            things is to do; without them it is any of our tools for one of these.

    Raises:
        ToolError: no tool of ours does what the command asks for.
    """
    normalized = _normalize_name(name)
    for tool in tools:
        if field_key(tool) == normalized:
            return tool
    server_tools = [
        tool for tool in tools if normalized and field_key(tool.rpartition("__")[2]) == normalized
    ]
    if len(server_tools) == 1:
        return server_tools[0]
    resolved = _index().get(normalized)
    if resolved is not None and (commands := _table()[resolved].commands):
        if values is None:
            return next((ours for ours in commands.values() if ours in tools), None)
        implied = (name for field, name in _COMMANDS.items() if values.get(field))
        command = values.get("command", next(implied, None))
        if command is None:
            return None
        command = command.strip().lower() if isinstance(command, str) else command
        if command not in commands:
            raise ToolError(
                f"{name} has no command {str(command)[:60]!r} here",
                advice=f"it has {', '.join(commands)}; other tools are {', '.join(tools)}",
            )
        resolved = commands[str(command)]
    return resolved if resolved in tools else None


def translate_calls(
    name: str, tool: str, values: JsonObject, schema_of: Callable[[str], JsonObject]
) -> list[ForeignCall]:
    """Return the calls of our tools that a call stands for: more than one if it names more files.

    Args:
        schema_of: returns the schema of a tool's parameters.

    Raises:
        ToolError: the arguments contradict each other, or ask for what no tool can do.
    """
    properties: JsonObject = schema_of(tool).get("properties", {})
    for name_field in ("name", "tool", "tool_name"):
        tool_name = values.get(name_field) if name_field not in properties else None
        if isinstance(tool_name, str) and resolve_tool(tool_name, _table()) not in {None, tool}:
            raise _argument_error(
                tool, properties, f"{name_field!r} is {tool_name!r}, another tool"
            )
    values = unwrap_arguments(values, properties)
    try:
        tool, values = rewrite_call(_normalize_name(name), tool, values)
        fields = _table().get(tool, ToolNames()).fields
        targets = {field_key(field): target.partition(":")[0] for field, target in fields.items()}

        def target_of(field: str) -> str:
            return targets.get(field_key(field), field)

        is_edit = tool == "edit"
        pieces = [values]
        if tool in _SEVERAL_FILES:
            pieces = split_call(values, target_of, is_edit=is_edit)
    except ValueError as error:
        raise _argument_error(tool, properties, str(error)) from error
    calls = [translate(name, tool, piece, schema_of(tool)) for piece in pieces]
    if is_edit and len(calls) > 1:
        ignored = tuple(dict.fromkeys(field for call in calls for field in call.ignored))
        merged = merge_edits([call.values for call in calls])
        return [ForeignCall(tool=tool, values=each, ignored=ignored) for each in merged]
    return calls


def translate(name: str, tool: str, values: JsonObject, schema: JsonObject) -> ForeignCall:
    """Return a call of `tool` in its own fields, with values of their types.

    Raises:
        ToolError: the arguments contradict each other, or ask for what the tool cannot do.
    """
    properties: JsonObject = schema.get("properties", {})
    values = unwrap_arguments(values, properties)
    table = _table().get(tool, ToolNames())
    normalized = _normalize_name(name)
    template = next(
        (text for key, text in table.templates.items() if field_key(key) == normalized), None
    )
    if template is not None:
        return ForeignCall(
            tool=tool, values={"command": _fill_template(template, values, tool, properties)}
        )
    if commands := _table()[_index()[normalized]].commands if normalized in _index() else None:
        values = {key: value for key, value in values.items() if key != "command" or not commands}
    in_milliseconds = normalized in set(map(field_key, table.milliseconds))
    ignored: list[str] = []
    try:
        converted = dict(
            _convert_fields(values, table, properties, ignored, in_milliseconds=in_milliseconds)
        )
    except NotConvertibleError as error:
        raise _argument_error(tool, properties, str(error)) from error
    preset = next((fields for key, fields in table.set.items() if field_key(key) == normalized), {})
    explicit = {
        key: value for key, value in converted.items() if value is not None or key not in preset
    }
    return ForeignCall(
        tool=tool, values=coerce_values({**preset, **explicit}, schema), ignored=tuple(ignored)
    )


def only_call(name: str, values: JsonObject) -> tuple[str, JsonObject]:
    """Return the only call of OpenAI's `multi_tool_use.parallel`; any other call unchanged."""
    calls = values.get("tool_uses") if values.keys() == {"tool_uses"} else None
    if not name.endswith("parallel") or not isinstance(calls, list):
        return name, values
    match calls:
        case [{"recipient_name": str() as only, "parameters": dict() as arguments}]:
            return only, arguments
        case _:
            raise ToolError(
                f"there is no tool {name!r}", advice="make each call itself, all in one answer"
            )


def _fill_template(
    template: str, values: JsonObject, tool: str, field_names: Collection[str]
) -> str:
    """Return the command that replaces a tool which we do not have."""
    table = _table()["template"]
    try:
        field_values = dict(_convert_fields(values, table, {"path", "source", "destination"}, []))
        return template.format_map(
            {key: shlex.quote(str(value)) for key, value in field_values.items()}
        )
    except (NotConvertibleError, KeyError) as error:
        raise _argument_error(tool, field_names, f"{error} is missing or unclear") from error


def unwrap_arguments(values: JsonObject, field_names: Collection[str]) -> JsonObject:
    """Return the arguments without an object around them, unless the tool has a field for that."""
    for wrapper in _WRAPPERS:
        inner = values.get(wrapper)
        if wrapper in field_names or inner is None:
            continue
        if isinstance(inner, str):
            inner = decode_text(inner)
        if isinstance(inner, list) and len(inner) == 1:
            (inner,) = inner
        naming = _NAME_FIELDS - set(field_names) - set(inner if isinstance(inner, dict) else ())
        outer_values = {
            key: value for key, value in values.items() if key not in {wrapper, *naming}
        }
        if isinstance(inner, dict) and not outer_values.keys() & inner.keys():
            return unwrap_arguments(outer_values | inner, field_names)
    return values


def _convert_fields(
    values: JsonObject,
    table: ToolNames,
    field_names: Collection[str],
    ignored: list[str],
    *,
    in_milliseconds: bool = False,
) -> Iterator[tuple[str, object]]:
    """Yield the arguments in our fields; those without a counterpart go to `ignored`."""
    names_by_key = {field_key(name): name for name in field_names}
    aliases = {
        field_key(source_field): target_field for source_field, target_field in table.fields.items()
    }
    values = _spread(_without_number(values), aliases)
    refused = {field_key(source_field): allowed for source_field, allowed in table.refused.items()}
    harmless = set(map(field_key, table.ignored))
    assigned: dict[str, tuple[str, object]] = {}  # by our field: the source field, and the value
    pending: list[tuple[str, str, str, object]] = []
    for source_field, value in values.items():
        key = field_key(source_field)
        exact_name = names_by_key.get(key) if source_field not in field_names else source_field
        target_field, _, conversion = (exact_name or aliases.get(key) or "").partition(":")
        # Our own field may need a conversion too, such as a command that is a list.
        if source_field in field_names and ":" in aliases.get(key, ""):
            conversion = aliases[key].partition(":")[2]
        if value is None and target_field in field_names and not conversion:
            yield target_field, None
        elif conversion:
            pending.append((source_field, target_field, conversion, value))
        elif target_field:
            _assign(assigned, target_field, source_field, value)
        elif value is None or key in harmless or _is_allowed(value, refused.get(key)):
            continue
        elif key in refused:
            raise NotConvertibleError(f"it has no {source_field!r}")
        else:
            ignored.append(source_field)
    built: set[str] = set()
    for source_field, target_field, conversion, value in pending:
        assigned_values = {name: item for name, (_, item) in assigned.items()} | {
            "_ms": in_milliseconds
        }
        for name, item in CONVERSIONS[conversion](target_field, value, assigned_values).items():
            if conversion in COMPLETE:
                built.add(name)
            if conversion in FILTERS or source_field == target_field != name:
                assigned[name] = (source_field, item)
            else:
                _assign(assigned, name, source_field, item)
    for name, (_, value) in assigned.items():
        items = None if name in built else table.items.get(name)
        yield name, value if items is None else _convert_items(value, _table()[items])


def _without_number(values: JsonObject) -> JsonObject:
    """Return the arguments with `old_str` for `old_str_1`, if no field has another number."""
    numbers = [match[0] for field in values if (match := _FIELD_NUMBER.search(field))]
    if set(numbers) != {"_1"} or len(values) > len(
        {_FIELD_NUMBER.sub("", name) for name in values}
    ):
        return values
    return {_FIELD_NUMBER.sub("", field): value for field, value in values.items()}


def _spread(values: JsonObject, aliases: Mapping[str, str]) -> JsonObject:
    """Return the arguments with the fields of the only object in a list."""
    for source_field, value in values.items():
        only_item = value[0] if isinstance(value, list) and len(value) == 1 else value
        if aliases.get(field_key(source_field), "").endswith(":only") and isinstance(
            only_item, dict
        ):
            return {key: item for key, item in values.items() if key != source_field} | only_item
    return values


def _assign(
    assigned: dict[str, tuple[str, object]], target_field: str, source_field: str, value: object
) -> None:
    earlier_field, earlier_value = assigned.setdefault(target_field, (source_field, value))
    if earlier_value != value:
        raise NotConvertibleError(
            f"{earlier_field!r} and {source_field!r} are given, with different values"
        )


def _is_allowed(value: object, allowed: tuple[Any, ...] | None) -> bool:
    return allowed is not None and any(value == allowed_value for allowed_value in allowed)


def _convert_items(value: object, table: ToolNames) -> object:
    """Return a list of objects in our fields; other values unchanged."""
    if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
        value = decode_text(value)
    if isinstance(value, dict):
        is_numbered = bool(value) and all(key.isdecimal() for key in value)
        value = list(value.values()) if is_numbered else [value]
    if not isinstance(value, list):
        return value
    value = [entry for entry in value if entry is not None]
    field_names = {target_field.partition(":")[0] for target_field in table.fields.values()}
    items = [_named_fields(entry, table) for entry in value]
    return [
        dict(_convert_fields(entry, table, field_names, [])) if isinstance(entry, dict) else entry
        for entry in items
    ]


def _named_fields(entry: object, table: ToolNames) -> object:
    """Return an item that is a text or a list of texts as an object; any other one unchanged."""
    if isinstance(entry, str) and table.plain:
        return {table.plain: entry}
    if isinstance(entry, list) and len(entry) == len(table.pair) > 0:
        texts = [text for text in entry if isinstance(text, str)]
        return dict(zip(table.pair, texts, strict=True)) if len(texts) == len(entry) else entry
    return entry


def _argument_error(tool: str, field_names: Collection[str], reason: str) -> ToolError:
    return ToolError(
        f"wrong arguments of {tool}: {reason}",
        advice=f"its parameters are {', '.join(field_names)}",
        shown=f"the model called {tool} with wrong arguments",
    )


def _normalize_name(name: str) -> str:
    """Return a name without what models add: `functions.read:0`, `read()`, `ReadTool`, `readread`.

    The last comes from services that send the name with each piece of a call.
    """
    bare = _CALL_NUMBER.sub("", _TAGS_AFTER.sub("", name.strip()))
    bare = _PREFIX.sub("", bare.removesuffix("()").strip("`'\"<> "))
    for prefix in _table()["prefixes"].names:
        bare = bare.removeprefix(f"{prefix}__")
    key = field_key(bare)
    forms = (key, key.removesuffix("tool"), _REPEATED.sub(r"\1", key))
    return next((form for form in forms if form in _index() or form in _table()), key)


@cache
def _table() -> dict[str, ToolNames]:
    return read_table(__package__, "foreign_calls.toml", dict[str, ToolNames])


@cache
def _index() -> dict[str, str]:
    """Return our tools by the names that other agents use."""
    return {
        field_key(name): tool
        for tool, table in _table().items()
        for name in (*table.names, *table.templates)
    }
