"""Tool schemas of MCP servers: cleaned for the model, and used to validate arguments.

A server's schema is untrusted: it is limited in size, references are inlined, and keywords that
only some providers accept are replaced or removed. The server must check those itself.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from referencing import Registry

from acp_agent.content import JsonObject

SIZE_LIMIT = 24_000  # bytes of a schema as JSON
_MAX_DEPTH = 24  # levels of a schema
_MAX_NODES = 4_000  # subschemas; one repeated by a reference counts each time
_MAX_MISTAKES = 5  # errors reported at once

_PROPERTY = re.compile(r"^[a-zA-Z0-9_.-]{1,64}$")  # the names that Anthropic accepts
_INVALID_CHARACTERS = re.compile(r"[^a-zA-Z0-9_.-]+")
_MAX_NAME_LENGTH = 60
# Names of types in programming languages, and in JSON Schema; "any" is no restriction.
_TYPES = {
    "int": "integer", "float": "number", "double": "number", "str": "string", "bool": "boolean",
    "list": "array", "dict": "object", "any": None,
}  # fmt: skip

_SCHEMAS = frozenset({"items", "additionalProperties", "not", "contains", "propertyNames"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_MAPS = frozenset({"properties", "dependentSchemas"})
_VALUES = frozenset(
    {
        "type", "enum", "const", "required", "description", "title", "default", "examples",
        "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
        "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
        "dependentRequired",
    }
)  # fmt: skip
# At the top level, providers accept only keywords for objects.
_NOT_AT_THE_TOP = frozenset({"anyOf", "oneOf", "allOf", "not", "enum", "const"})


class UnusableSchemaError(Exception):
    """No tool can be offered with this schema; the message says why."""


class ToolSchema:
    """A usable schema.

    Raises:
        UnusableSchemaError: the schema is invalid or exceeds the limits.
    """

    def __init__(self, schema: JsonObject) -> None:
        try:
            cleaned = _Cleaner(schema).clean()
        except RecursionError:
            raise UnusableSchemaError("its schema is too deep") from None
        if cleaned.get("type", "object") != "object":
            raise UnusableSchemaError("its parameters are no object")
        cleaned["type"] = "object"
        try:
            Draft202012Validator.check_schema(cleaned)
        except SchemaError as error:
            raise UnusableSchemaError(f"its schema is wrong at {_location(error.path)}") from None
        properties = _all_properties(cleaned)
        self._own_names = dict(zip(_model_names(list(properties)), properties, strict=True))
        model_names = {original: model_name for model_name, original in self._own_names.items()}
        self.for_model: JsonObject = _for_providers(
            {key: value for key, value in cleaned.items() if key not in _NOT_AT_THE_TOP}
            | {"properties": properties}
        )
        self.for_model["properties"] = {
            model_names[original]: schema
            for original, schema in self.for_model["properties"].items()
        }
        if required := self.for_model.get("required"):
            self.for_model["required"] = [model_names[original] for original in required]
        if len(msgspec.json.encode(self.for_model)) > SIZE_LIMIT:
            raise UnusableSchemaError(f"its schema is larger than {SIZE_LIMIT // 1_000} kB")
        # No reference is left; the empty registry ensures that none is ever resolved.
        self._validator = Draft202012Validator(cleaned, registry=Registry())

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters."""
        return list(self.for_model["properties"])

    def own_names(self, arguments: JsonObject) -> JsonObject:
        """Return a model's arguments with the names of the schema, which no model may accept."""
        return {self._own_names.get(name, name): value for name, value in arguments.items()}

    def mistakes(self, arguments: JsonObject) -> list[str]:
        """Return the errors in arguments, for the model to fix; empty if they are valid."""
        messages: list[str] = []
        for error in self._validator.iter_errors(arguments):
            if len(messages) == _MAX_MISTAKES:
                messages.append("and more")
                break
            location = _location(error.absolute_path)
            messages.append(
                f"{location}: {error.message[:200]}" if error.absolute_path else error.message[:200]
            )
        return messages


class _Cleaner:
    """Copies a schema keyword by keyword, with references replaced by their targets."""

    def __init__(self, schema: JsonObject) -> None:
        self._root = schema
        self._nodes = 0

    def clean(self) -> JsonObject:
        cleaned = self._clean_schema(self._root, 0, ())
        if not isinstance(cleaned, dict):
            raise UnusableSchemaError("its schema is no object")
        return cleaned

    def _clean_schema(
        self, schema: Any, depth: int, open_references: tuple[str, ...]
    ) -> Any:  # JSON, any kind
        self._nodes += 1
        if depth > _MAX_DEPTH or self._nodes > _MAX_NODES:
            raise UnusableSchemaError("its schema is too deep or too large")
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise UnusableSchemaError("its schema has something in it that is no schema")
        cleaned: JsonObject = {}
        reference = schema.get("$ref")
        if isinstance(reference, str):
            target = self._target(reference)
            # A recursive or external reference is omitted, so any value is accepted there.
            if isinstance(target, dict) and reference not in open_references:
                cleaned = self._clean_schema(target, depth + 1, (*open_references, reference))
        for key, value in _to_current_draft(schema).items():
            if key in _VALUES:
                if value is not None or key in {"const", "default"}:
                    cleaned[key] = value
            elif key in _SCHEMAS:
                cleaned[key] = self._clean_schema(value, depth + 1, open_references)
            elif key in _LISTS and isinstance(value, list):
                cleaned[key] = [
                    self._clean_schema(subschema, depth + 1, open_references) for subschema in value
                ]
            elif key in _MAPS and isinstance(value, dict):
                cleaned[key] = {
                    name: self._clean_schema(subschema, depth + 1, open_references)
                    for name, subschema in value.items()
                }
        return cleaned

    def _target(self, reference: str) -> Any:
        if reference != "#" and not reference.startswith("#/"):
            return None
        target: Any = self._root
        for step in reference[1:].split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            target = target.get(key) if isinstance(target, dict) else None
        return target


def _all_properties(schema: JsonObject) -> JsonObject:
    """Return the properties of a schema and of its alternatives, which models cannot be sent."""
    properties: JsonObject = dict(schema.get("properties", {}))
    for keyword in ("allOf", "anyOf", "oneOf"):
        for alternative in schema.get(keyword, ()):
            if isinstance(alternative, dict):
                properties = {**_all_properties(alternative), **properties}
    return properties


def _model_names(names: list[str]) -> list[str]:
    """Return unique names of parameters that every model accepts, in the same order."""
    used_names = {name for name in names if _PROPERTY.match(name)}
    model_names = []
    for name in names:
        plain = name
        if not _PROPERTY.match(name):
            base = _INVALID_CHARACTERS.sub("_", name).strip("_")[:_MAX_NAME_LENGTH] or "value"
            plain, number = base, 2
            while plain in used_names:
                plain, number = f"{base}_{number}", number + 1
            used_names.add(plain)
        model_names.append(plain)
    return model_names


def _for_providers(schema: Any) -> Any:  # JSON, any kind
    """Return a cleaned schema without forms that a provider refuses.

    OpenAI refuses arrays without `items`, Gemini boolean schemas and required properties that are
    not described; some models ignore `const`.
    """
    if isinstance(schema, bool):
        return {}
    accepted: JsonObject = {}
    for key, value in schema.items():
        if key in _SCHEMAS:
            is_rule = key == "additionalProperties" and isinstance(value, bool)
            accepted[key] = value if is_rule else _for_providers(value)
        elif key in _LISTS:
            accepted[key] = [_for_providers(subschema) for subschema in value]
        elif key in _MAPS:
            accepted[key] = {name: _for_providers(subschema) for name, subschema in value.items()}
        elif key == "const":
            accepted.setdefault("enum", [value])
        elif key != "enum" or value:
            accepted[key] = value
    entries = accepted.pop("prefixItems", ())
    kind = accepted.get("type")
    if (
        entries or kind == "array" or (isinstance(kind, list) and "array" in kind)
    ) and not accepted.get("items"):
        accepted["items"] = {"anyOf": entries} if entries else {}
    if "required" in accepted and "properties" in accepted:
        accepted["required"] = [
            name for name in accepted["required"] if name in accepted["properties"]
        ]
        if not accepted["required"]:
            del accepted["required"]
    return accepted


def _to_current_draft(schema: JsonObject) -> JsonObject:
    """Return a schema in which the keywords of older drafts have the form of the current one."""
    converted = dict(schema)
    kind = converted.get("type")
    if isinstance(kind, str) and kind in _TYPES:
        converted["type"] = _TYPES[kind]
    if isinstance(items := converted.get("items"), list):
        converted["prefixItems"] = items
        converted["items"] = converted.get("additionalItems", True)
    if converted.get("items") is True:
        del converted["items"]
    if "patternProperties" in converted and converted.get("additionalProperties") is False:
        del converted["additionalProperties"]  # the server checks both
    if converted.get("enum") == []:
        del converted["enum"]
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(converted.get(exclusive), bool):
            is_exclusive = converted.pop(exclusive)
            if is_exclusive and limit in converted:
                converted[exclusive] = converted.pop(limit)
    if isinstance(converted.get("required"), bool):
        del converted["required"]
    return converted


def _location(path: Any) -> str:  # a deque of keys and positions
    return ".".join(str(step)[:60] for step in path) or "the top"
