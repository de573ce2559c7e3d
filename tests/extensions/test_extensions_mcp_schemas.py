"""A server's schemas: bounded, cleaned, and used to check arguments without trusting them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from acp_agent.extensions.mcp.schemas import SIZE_LIMIT, ToolSchema, UnusableSchemaError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
KEYWORDS = st.sampled_from(
    [
        "type",
        "properties",
        "items",
        "anyOf",
        "$ref",
        "enum",
        "required",
        "pattern",
        "not",
        "minimum",
    ]
)


@given(st.dictionaries(KEYWORDS, JSON | st.dictionaries(KEYWORDS, JSON)), JSON)
def test_any_schema_is_usable_or_refused(schema: dict[str, Any], value: Any) -> None:
    try:
        usable = ToolSchema(schema)
    except UnusableSchemaError:
        return
    assert usable.for_model["type"] == "object"
    assert len(json.dumps(usable.for_model).encode()) < 4 * SIZE_LIMIT
    usable.mistakes({"a": value})


def test_references_are_replaced_and_those_that_lead_elsewhere_are_anything() -> None:
    schema = {
        "type": "object",
        "properties": {
            "color": {"$ref": "#/$defs/color", "description": "Which"},
            "web": {"$ref": "http://127.0.0.1:9/schema.json"},
            "tree": {"$ref": "#/$defs/tree"},
        },
        "$defs": {
            "color": {"type": "string", "enum": ["red"]},
            "tree": {"type": "object", "properties": {"child": {"$ref": "#/$defs/tree"}}},
        },
    }
    usable = ToolSchema(schema)
    properties = usable.for_model["properties"]
    assert properties["color"] == {"type": "string", "enum": ["red"], "description": "Which"}
    assert properties["web"] == {}
    assert properties["tree"]["properties"]["child"] == {}
    assert "$" not in json.dumps(usable.for_model)
    assert usable.mistakes({"color": "blue"}) == ["color: 'blue' is not one of ['red']"]
    assert usable.mistakes({"color": "red", "web": 7, "tree": {"child": 3}}) == []


def test_checks_that_only_the_server_can_do_are_left_to_it() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    usable = ToolSchema(schema)
    assert usable.mistakes({"a": "a" * 60 + "!"}) == []  # and does not take for ever


def test_alternatives_at_the_top_are_checked_and_not_sent() -> None:
    one, other = {"required": ["a"]}, {"required": ["b"]}
    properties: dict[str, Any] = {"a": {}, "b": {}}
    usable = ToolSchema({"type": "object", "properties": properties, "anyOf": [one, other]})
    assert "anyOf" not in usable.for_model
    assert usable.mistakes({"a": 1}) == []
    assert usable.mistakes({}) != []


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "array"}, "no object"),
        ({"type": "object", "properties": {"a": {"type": "strnig"}}}, "wrong at"),
        ({"type": "object", "description": "x" * 30_000}, "larger than 24 kB"),
        ({"type": "object", "properties": {"a": 7}}, "no schema"),
    ],
)
def test_a_schema_that_no_tool_can_have_is_refused_with_the_reason(
    schema: dict[str, Any], why: str
) -> None:
    with pytest.raises(UnusableSchemaError, match=why):
        ToolSchema(schema)


def test_names_that_no_model_accepts_are_replaced_in_both_directions() -> None:
    names = ["file path", "file_path", "größe", "$filter", "x" * 70, "日本"]
    schemas: dict[str, Any] = {name: {"type": "string"} for name in names}
    usable = ToolSchema({"type": "object", "properties": schemas, "required": ["größe"]})
    sent = list(usable.for_model["properties"])
    assert sent == ["file_path_2", "file_path", "gr_e", "filter", "x" * 60, "value"]
    assert usable.for_model["required"] == ["gr_e"]
    arguments = usable.own_names(dict.fromkeys(sent, "text") | {"other": 1})
    assert arguments == dict.fromkeys(names, "text") | {"other": 1}
    assert usable.mistakes(arguments) == []
    assert "größe" in usable.mistakes({"gr_e": "text"})[0]


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": ["array", "null"]}, {"type": ["array", "null"], "items": {}}),
        ({"const": "x"}, {"enum": ["x"]}),
        (True, {}),
        ({"type": "int"}, {"type": "integer"}),
        ({"type": "any", "description": None, "enum": []}, {}),
        (
            {"type": "object", "required": ["b"], "properties": {}},
            {"type": "object", "properties": {}},
        ),
        ({"$ref": "#anchor"}, {}),
    ],
)
def test_forms_that_a_provider_refuses_are_replaced(schema: object, sent: object) -> None:
    usable = ToolSchema({"type": "object", "properties": {"a": schema}})
    assert usable.for_model["properties"]["a"] == sent


@pytest.mark.parametrize("key", ["items", "prefixItems"])
def test_tuples_are_sent_as_lists_and_checked_as_tuples(key: str) -> None:
    pair = [{"type": "string"}, {"type": "number"}]
    schema = {"type": "array", key: pair}
    usable = ToolSchema({"type": "object", "properties": {"a": schema}})
    assert usable.for_model["properties"]["a"] == {"type": "array", "items": {"anyOf": pair}}
    assert usable.mistakes({"a": ["x", 1]}) == []
    assert usable.mistakes({"a": [1, "x"]}) != []


def test_properties_that_match_a_pattern_are_left_to_the_server() -> None:
    schema = {"patternProperties": {"^x": {"type": "string"}}, "additionalProperties": False}
    assert ToolSchema({"type": "object", **schema}).mistakes({"x1": "text"}) == []


def test_a_schema_that_unfolds_without_end_is_refused() -> None:
    definitions = {
        f"d{level}": {
            "type": "object",
            "properties": {name: {"$ref": f"#/$defs/d{level + 1}"} for name in "abcdefgh"},
        }
        for level in range(12)
    }
    with pytest.raises(UnusableSchemaError, match="too deep or too large"):
        ToolSchema({"type": "object", "$ref": "#/$defs/d0", "$defs": definitions})
