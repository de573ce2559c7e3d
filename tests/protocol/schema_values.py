"""Hypothesis strategies for the JSON that a schema allows, made from the schema itself."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.protocol.type_strategies import JSON, OBJECTS, TEXT
from tests.support import acp_schema

Values = st.SearchStrategy[Any]


@cache
def values(version: str, name: str) -> Values:
    """What the definition `name` of a version's whole schema allows."""
    definition = acp_schema.load(version, unstable=True)["$defs"][name]
    return st.deferred(lambda: _values(version, definition))


def _values(version: str, node: Any) -> Values:
    if node is True:
        return JSON
    if "$ref" in node:
        return values(version, node["$ref"].rpartition("/")[2])
    if "const" in node:
        return st.just(node["const"])
    if "enum" in node:
        return st.sampled_from(node["enum"])
    parts = [_values(version, part) for part in node.get("allOf", ())]
    either = [_values(version, part) for part in node.get("anyOf", node.get("oneOf", ()))]
    if either:
        parts.append(st.one_of(*either))
    if "properties" in node:
        parts.insert(0, _objects(version, node))
    if len(parts) == 1:
        return parts[0]
    if parts:
        return st.tuples(*parts).map(_merged)
    kinds = node.get("type")
    if kinds is None:
        return JSON
    names = [kinds] if isinstance(kinds, str) else kinds
    return st.one_of(*(_plain(version, kind, node) for kind in names))


def _merged(parts: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for part in parts:
        whole |= part
    return whole


def _objects(version: str, node: dict[str, Any]) -> Values:
    required: dict[str, Values] = {}
    optional: dict[str, Values] = {}
    for name, definition in node["properties"].items():
        here = required if name in node.get("required", ()) else optional
        here[name] = _values(version, definition)
    if "not" in node:  # an open union's own words begin with an underscore
        tags = {name for part in _negated(node) for name in part["properties"]}
        required |= dict.fromkeys(tags, TEXT.map("_{}".format))
        if node.get("additionalProperties"):
            optional["_x"] = JSON
    return st.fixed_dictionaries(required, optional=optional)


def _negated(node: dict[str, Any]) -> list[dict[str, Any]]:
    return node["not"].get("anyOf") or [node["not"]]


def _plain(version: str, kind: str, node: dict[str, Any]) -> Values:
    match kind:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "string":
            least = node.get("minLength", 0)
            return st.text(st.characters(codec="utf-8"), min_size=least, max_size=8)
        case "integer":
            lowest = {"int32": -(2**31)}.get(node.get("format", ""), -(2**63))
            highest = {"int32": 2**31 - 1, "uint32": 2**32 - 1}.get(
                node.get("format", ""), 2**63 - 1
            )
            return st.integers(node.get("minimum", lowest), node.get("maximum", highest))
        case "number":
            limits = node.get("minimum"), node.get("maximum")
            return st.floats(*limits, allow_nan=False, allow_infinity=False)
        case "array":
            items = _values(version, node["items"])
            return st.lists(items, min_size=node.get("minItems", 0), max_size=2)
        case "object" if isinstance(node.get("additionalProperties"), dict):
            return st.dictionaries(TEXT, _values(version, node["additionalProperties"]), max_size=2)
        case _:
            return OBJECTS
