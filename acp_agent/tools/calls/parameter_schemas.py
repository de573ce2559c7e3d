"""The parameters of a tool as the JSON Schema for models."""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from pydantic import BaseModel

from acp_agent.content import JsonObject

_OMITTED_KEYWORDS = frozenset({"title", "default", "additionalProperties"})  # of a schema


@lru_cache(maxsize=256)  # some tools are created for each turn
def parameters_schema(params: type[BaseModel]) -> JsonObject:
    """Return a tool's parameters as a JSON Schema, which is shared: do not modify it.

    It has no titles, defaults and definitions. Each `$ref` is replaced by its definition, since not
    all providers follow references. Repeated descriptions are removed.
    """
    schema = params.model_json_schema()
    definitions = cast("JsonObject", schema.pop("$defs", {}))
    schema.pop("description", None)  # the class's docstring; the tool has a description of its own
    lean = _lean_object(schema, definitions)
    _drop_repeated(lean["properties"], set())
    return lean


def _drop_repeated(properties: JsonObject, repeated: set[tuple[str, str]]) -> None:
    """Remove descriptions that an earlier parameter of the same name has."""
    for name, schema in properties.items():
        key = (name, schema.get("description", ""))
        if key in repeated:
            del schema["description"]
        elif key[1]:
            repeated.add(key)
        for inner in (schema, schema.get("items", {})):
            _drop_repeated(inner.get("properties", {}), repeated)


def _lean_object(schema: JsonObject, definitions: JsonObject) -> JsonObject:
    lean = _lean(schema, definitions)
    properties: JsonObject = lean.get("properties", {})
    lean["properties"] = {name: _lean(value, definitions) for name, value in properties.items()}
    return lean


def _lean(schema: JsonObject, definitions: JsonObject) -> JsonObject:
    lean = {key: value for key, value in schema.items() if key not in _OMITTED_KEYWORDS}
    reference = lean.pop("$ref", None)
    if isinstance(reference, str):
        definition = dict(definitions[reference.rpartition("/")[2]])
        definition.pop("description", None)  # a docstring again
        return {**_lean_object(definition, definitions), **lean}
    types = [kind for kind in lean.get("anyOf", ()) if kind != {"type": "null"}]
    if len(types) == 1:
        del lean["anyOf"]
        lean = {**types[0], **lean}
        return _lean(lean, definitions)
    if "items" in lean:
        lean["items"] = _lean(lean["items"], definitions)
    return lean
