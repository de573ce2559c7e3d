"""The JSON Schema of a tool's parameters, as short as it can be: it is sent with every request."""

from __future__ import annotations

from typing import cast

from pydantic import BaseModel

from acp_agent.content import JsonObject


def parameters_schema(params: type[BaseModel]) -> JsonObject:
    """A tool's parameters as the JSON Schema of an object.

    Without titles, defaults and definitions: each `$ref` is replaced by what it names, as not all
    providers follow references, and an optional value is described by its type alone.
    """
    schema = params.model_json_schema()
    definitions = cast("JsonObject", schema.pop("$defs", {}))
    schema.pop("description", None)  # the class's docstring; the tool has a description of its own
    return _lean_object(schema, definitions)


def _lean_object(schema: JsonObject, definitions: JsonObject) -> JsonObject:
    lean = _lean(schema, definitions)
    properties: JsonObject = lean.get("properties", {})
    lean["properties"] = {name: _lean(value, definitions) for name, value in properties.items()}
    return lean


def _lean(schema: JsonObject, definitions: JsonObject) -> JsonObject:
    kept = {key: value for key, value in schema.items() if key not in ("title", "default")}
    reference = kept.pop("$ref", None)
    if isinstance(reference, str):
        named = dict(definitions[reference.rpartition("/")[2]])
        named.pop("description", None)  # a docstring again
        return {**_lean_object(named, definitions), **kept}
    kinds = [kind for kind in kept.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) == 1:
        del kept["anyOf"]
        kept = {**kinds[0], **kept}
        return _lean(kept, definitions)
    if "items" in kept:
        kept["items"] = _lean(kept["items"], definitions)
    return kept
