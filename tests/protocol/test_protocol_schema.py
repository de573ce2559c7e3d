"""The types of version 1 against the protocol's own schema, both ways."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from protocol.codec import typed_json
from protocol.codec.marks import ON_ERROR, ON_NULL, SKIP_ITEMS
from protocol.codec.open_union import OpenUnion
from protocol.v1 import methods, types as wire
from tests.protocol.type_strategies import instances, variants
from tests.support import acp_schema

# What JSON-RPC wraps around the messages; protocol.jsonrpc speaks it.
ENVELOPES = {
    *("AgentRequest", "AgentResponse", "AgentNotification"),
    *("ClientRequest", "ClientResponse", "ClientNotification"),
}
# Any JSON: whoever defines an extension method gives it a type.
EXTENSIONS = {"ExtRequest", "ExtResponse", "ExtNotification"}
# Parts of other types, which hold their fields.
MERGED = {
    "ElicitationSessionScope": wire.ElicitationFormMode,
    "ElicitationRequestScope": wire.ElicitationFormMode,
}
EXPORTED = {name for name in vars(wire) if not name.startswith("_")} - {"annotations"}
# Aliases of plain values, or of unions of types that are compared by themselves.
STRUCTS = {
    name: kind
    for name in EXPORTED
    if isinstance(kind := getattr(wire, name), type)
    and issubclass(kind, msgspec.Struct | OpenUnion)
}
# Which definition a type of ours is an instance of, where the schema has none of that name.
PLACES = {
    "UserMessageChunk": "SessionUpdate",
    "AgentMessageChunk": "SessionUpdate",
    "AgentThoughtChunk": "SessionUpdate",
    "ToolCallProgress": "SessionUpdate",
    "CancelledPermissionOutcome": "RequestPermissionOutcome",
    "ElicitationDeclineAction": "CreateElicitationResponse",
    "ElicitationCancelAction": "CreateElicitationResponse",
    "ElicitationFormMode": "CreateElicitationRequest",
    "ElicitationUrlMode": "CreateElicitationRequest",
    "SessionConfigSelect": "SessionConfigOption",
    "SessionConfigBoolean": "SessionConfigOption",
    "SessionConfigSelectEntry": None,  # the items of SessionConfigSelectOptions
}
# Aliases of another type's definition are compared under that type's name.
NAMES = sorted(
    name for name, kind in STRUCTS.items() if name == kind.__name__ and not name.startswith("Other")
)


def schema_of(name: str) -> dict[str, Any]:
    return acp_schema.load()["$defs"][name]


@cache
def validator(name: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$ref": f"#/$defs/{name}",
            "$defs": acp_schema.load()["$defs"],
            "unevaluatedProperties": False,
        }
    )


def place_of(name: str) -> str | None:
    """The definition that values of a type validate against: a union's where it holds the tag."""
    if name in PLACES:
        return PLACES[name]
    kind = STRUCTS[name]
    if not issubclass(kind, msgspec.Struct) or kind.__struct_config__.tag is None:
        return name
    for union, definition in acp_schema.load()["$defs"].items():
        for variant in definition.get("anyOf", []) + definition.get("oneOf", []):
            tagged = any("const" in each for each in variant.get("properties", {}).values())
            if tagged and {"$ref": f"#/$defs/{name}"} in variant.get("allOf", []):
                return union
    return name


def test_every_definition_of_the_schema_has_a_type_of_its_name() -> None:
    missing = set(acp_schema.load()["$defs"]) - EXPORTED
    assert missing == ENVELOPES | EXTENSIONS | set(MERGED) | {"ErrorCode"}


def test_every_type_is_in_the_schema_or_says_where_it_belongs() -> None:
    strangers = set(NAMES) - set(acp_schema.load()["$defs"]) - set(PLACES)
    assert strangers == set()


@pytest.mark.parametrize("name", NAMES)
def test_a_type_has_the_fields_of_its_definition(name: str) -> None:
    kind = STRUCTS[name]
    if not issubclass(kind, msgspec.Struct) or name not in acp_schema.load()["$defs"]:
        return
    definition = schema_of(name)
    ours = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    theirs = definition.get("properties", {})
    extra = set(ours) - set(theirs)
    if name in PLACES:  # a variant also holds what all variants share
        extra -= set(schema_of(PLACES[name] or "")["properties"])
    allowed = {
        "AuthMethodAgent": {"type"},
        "SetSessionConfigOptionRequest": {"type", "value"},
        "ElicitationAcceptAction": {"_meta"},
        "ElicitationFormMode": {"sessionId", "toolCallId", "requestId"},
        "ElicitationUrlMode": {"sessionId", "toolCallId", "requestId"},
    }
    assert extra == allowed.get(name, set())
    assert set(theirs) <= set(ours)
    required = {field for field in theirs if ours[field].required}
    assert required == set(definition.get("required", []))


@pytest.mark.parametrize("name", NAMES)
def test_a_type_is_as_tolerant_as_its_definition(name: str) -> None:
    kind = STRUCTS[name]
    if not issubclass(kind, msgspec.Struct) or name not in acp_schema.load()["$defs"]:
        return
    ours = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for field, definition in schema_of(name).get("properties", {}).items():
        marks: set[str] = set()
        for meta in getattr(ours[field].type, "__metadata__", ()):
            marks |= set((meta.extra or {}) if isinstance(meta, msgspec.Meta) else {})
        theirs = {
            mark
            for mark in (ON_ERROR, ON_NULL, SKIP_ITEMS)
            if definition.get(f"x-deserialize-{mark}")
        }
        assert marks == theirs, field


@pytest.mark.parametrize("name", NAMES)
def test_what_we_encode_validates_and_comes_back_the_same(name: str) -> None:
    kind = STRUCTS[name]
    place = place_of(name)
    members = variants(kind) if not issubclass(kind, msgspec.Struct) else [kind]

    @settings(
        max_examples=12,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(*map(instances, members)))
    def check(value: object) -> None:
        encoded = typed_json.encode(value)
        assert b"\n" not in encoded
        if place is not None:
            validator(place).validate(msgspec.json.decode(encoded))
        again = typed_json.decode(encoded, kind)
        assert typed_json.encode(again) == encoded

    check()


@pytest.mark.parametrize("name", NAMES)
def test_fields_nobody_knows_are_tolerated_and_metadata_is_kept(name: str) -> None:
    kind = STRUCTS[name]
    members = variants(kind) if not issubclass(kind, msgspec.Struct) else [kind]

    @settings(max_examples=3, deadline=None, database=None)
    @given(st.one_of(*map(instances, members)))
    def check(value: Any) -> None:
        plain = msgspec.json.decode(typed_json.encode(value))
        meta = {"vendor.example/x": [1, None, {"y": "z"}], "": None}
        keeps = "_meta" in {each.encode_name for each in msgspec.structs.fields(type(value))}
        sent = plain | {"later": {"a": [1]}} | ({"_meta": meta} if keeps else {})
        expected = plain | ({"_meta": meta} if keeps else {})
        decoded = typed_json.decode(msgspec.json.encode(sent), kind)
        assert msgspec.json.decode(typed_json.encode(decoded)) == expected

    check()


def test_the_method_tables_are_the_schema_s() -> None:
    theirs: dict[str, dict[str, set[str]]] = {"agent": {}, "client": {}, "protocol": {}}
    for name, definition in acp_schema.load()["$defs"].items():
        if "x-method" in definition:
            theirs[definition["x-side"]].setdefault(definition["x-method"], set()).add(name)
    ours = {
        "agent": methods.AGENT_METHODS,
        "client": methods.CLIENT_METHODS,
        "protocol": methods.PROTOCOL_METHODS,
    }
    for side, table in ours.items():
        named = {
            name: {kind.__name__ for kind in (method.params, method.result) if kind is not None}
            for name, method in table.items()
        }
        assert named == theirs[side]
        assert all(name == method.name for name, method in table.items())
