"""Convert values of slightly different types to the types of a tool's parameters."""

from __future__ import annotations

from collections.abc import Collection

from acp_agent.content import JsonObject
from acp_agent.tools.calls.argument_json import read_json

_ABSENT = frozenset({"", "none", "null"})


def coerce_values(values: JsonObject, schema: JsonObject) -> JsonObject:
    """Return the arguments with values converted to the types of the schema, if unambiguous.

    For an optional field, null counts as absent, and so do an empty string and "null" if the field
    is no string.
    """
    properties: JsonObject = schema.get("properties", {})
    required: Collection[str] = schema.get("required", ())
    return {
        key: _coerce(value, properties.get(key) or {})
        for key, value in values.items()
        if key in required or key not in properties or not _is_absent(value, properties[key])
    }


def _is_absent(value: object, kind: JsonObject | None) -> bool:
    is_text = (kind or {}).get("type", "string") == "string"
    return value is None or (
        not is_text and isinstance(value, str) and value.strip().lower() in _ABSENT
    )


def _coerce(value: object, kind: JsonObject) -> object:
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
            number = decode_text(value.strip())
            return number if isinstance(number, int | float) else value
        case "array", str():
            items = decode_text(value) if value.lstrip().startswith("[") else [value]
            return items if isinstance(items, list) else value
        case "object", str() if value.lstrip().startswith("{"):
            return decode_text(value)
        case _:
            return value


def decode_text(text: str) -> object:
    """Return the value of JSON text; other text unchanged."""
    try:
        return read_json(text)
    except ValueError:
        return text
