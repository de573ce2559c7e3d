"""The types of both versions against the protocol's own schemas, both ways."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from protocol.codec import typed_json
from protocol.codec.tolerance import ON_ERROR, ON_NULL, SKIP_ITEMS, OpenUnion, UnknownVariant
from protocol.jsonrpc.methods import Method
from protocol.v1 import methods as v1_methods, unstable as v1_unstable
from protocol.v2 import methods as v2_methods, unstable as v2_unstable
from tests.protocol.schema_types import says_unstable
from tests.protocol.schema_values import values
from tests.protocol.type_strategies import instances, variants
from tests.protocol.versions import V1, V2

VERSIONS = {"v1": V1, "v2": V2}
# Fields of a type that its definition has elsewhere: in the union that it is a variant of, or in
# another part of itself.
ALLOWED = {
    ("v1", "AuthMethodAgent"): {"type"},
    ("v1", "SetSessionConfigOptionRequest"): {"type", "value"},
    ("v1", "ElicitationAcceptAction"): {"_meta"},
    ("v1", "ElicitationFormMode"): {"sessionId", "toolCallId", "requestId"},
    ("v1", "ElicitationUrlMode"): {"sessionId", "toolCallId", "requestId"},
    ("v1", "ErrorIdleStateUpdate"): {"error"},
    ("v2", "ElicitationFormMode"): {"sessionId", "toolCallId", "requestId"},
    ("v2", "ElicitationUrlMode"): {"sessionId", "toolCallId", "requestId"},
    ("v2", "ErrorIdleStateUpdate"): {"error"},
    ("v2", "SessionErrorUpdate"): {"state", "error"},
    **{
        ("v2", f"Session{state}Update"): {"state"}
        for state in ("Running", "RequiresAction", "UnknownState", "Idle")
    },
}
EVERY_TYPE = [(version, name) for version, types in VERSIONS.items() for name in types.names]
EVERY_STRUCT = [
    (version, name)
    for version, name in EVERY_TYPE
    if issubclass(VERSIONS[version].structs[name], msgspec.Struct)
]
each_version = pytest.mark.parametrize("version", VERSIONS)
each_type = pytest.mark.parametrize(("version", "name"), EVERY_TYPE)
each_struct = pytest.mark.parametrize(("version", "name"), EVERY_STRUCT)


@each_version
def test_every_definition_of_the_schema_has_a_type_of_its_name(version: str) -> None:
    assert VERSIONS[version].missing() == set()


@each_version
def test_every_type_is_in_the_schema_or_says_where_it_belongs(version: str) -> None:
    types = VERSIONS[version]
    assert set(types.names) - set(types.defs) - set(types.places) == set()
    assert set(types.untyped) <= set(types.defs)
    for definition, holders in types.merged.items():
        for holder in holders:
            ours = {field.encode_name for field in msgspec.structs.fields(types.structs[holder])}
            assert set(types.defs[definition]["properties"]) <= ours


@each_version
def test_every_variant_that_the_schema_names_is_known(version: str) -> None:
    types = VERSIONS[version]
    checked = 0
    for name, tags in types.unions().items():
        if name in types.untyped or name not in types.exported:
            continue
        union = types.found[name]
        for tag in tags:
            if isinstance(union, type) and issubclass(union, OpenUnion):
                value = {"state": "running"} | tag  # which a `state_update` is told apart by
                assert not issubclass(union.find_variant(value), UnknownVariant), (name, tag)
            else:
                known = {kind.__struct_config__.tag for kind in get_args(union)}
                assert set(tag.values()) <= known, name
            checked += 1
    assert checked > 20


@each_struct
def test_a_type_has_the_fields_of_its_definition(version: str, name: str) -> None:
    types = VERSIONS[version]
    definition = types.definition_of(name)
    if definition is None:
        return
    ours = {field.encode_name: field for field in msgspec.structs.fields(types.structs[name])}
    theirs = definition["properties"]
    extra = set(ours) - set(theirs)
    place = types.places.get(name)
    if place is not None:  # a variant also holds what all variants share
        extra -= types.shared_fields(place)
    assert extra == ALLOWED.get((version, name), set())
    assert set(theirs) <= set(ours)
    required = {field for field in theirs if ours[field].required}
    assert required == set(definition["required"])


@each_struct
def test_a_type_is_as_tolerant_as_its_definition(version: str, name: str) -> None:
    types = VERSIONS[version]
    definition = types.definition_of(name)
    if definition is None:
        return
    ours = {field.encode_name: field for field in msgspec.structs.fields(types.structs[name])}
    for field, schema in definition["properties"].items():
        marks: set[str] = set()
        for meta in getattr(ours[field].type, "__metadata__", ()):
            marks |= set((meta.extra or {}) if isinstance(meta, msgspec.Meta) else {})
        theirs = {
            mark
            for mark in (ON_ERROR, ON_NULL, SKIP_ITEMS)
            if isinstance(schema, dict) and schema.get(f"x-deserialize-{mark}")
        }
        assert marks == theirs, field


@each_struct
def test_unstable_types_are_marked(version: str, name: str) -> None:
    types = VERSIONS[version]
    definition = types.definition_of(name)
    if definition is None:
        return
    theirs, ours = types.unstable_fields(name)
    assert ours == theirs
    if types.definitions.get(name, name) not in types.stable_defs:
        assert says_unstable(types.structs[name])


@each_type
def test_encoded_values_match_the_schema_and_survive_a_round_trip_with_unknown_fields(
    version: str, name: str
) -> None:
    types = VERSIONS[version]
    kind = types.structs[name]
    place = types.place_of(name)

    @_examples(kind)
    @given(_values(kind))
    def check(value: object) -> None:
        encoded = typed_json.encode(value)
        assert b"\n" not in encoded
        if place is not None:
            types.validator(place).validate(msgspec.json.decode(encoded))
        again: object = typed_json.decode(encoded, kind)
        assert typed_json.encode(again) == encoded
        if isinstance(value, msgspec.Struct):
            _check_unknown_fields(value, kind)

    check()


def _check_unknown_fields(value: msgspec.Struct, kind: type[Any]) -> None:
    """Assert that a value with fields that nobody knows is decoded, and that metadata is kept."""
    plain = msgspec.json.decode(typed_json.encode(value))
    meta = {"vendor.example/x": [1, None, {"y": "z"}], "": None}
    keeps = "_meta" in {each.encode_name for each in msgspec.structs.fields(type(value))}
    sent = plain | {"later": {"a": [1]}} | ({"_meta": meta} if keeps else {})
    expected = plain | ({"_meta": meta} if keeps else {})
    decoded: object = typed_json.decode(msgspec.json.encode(sent), kind)
    assert msgspec.json.decode(typed_json.encode(decoded)) == expected


@each_type
def test_values_that_the_schema_allows_are_accepted_and_unchanged(version: str, name: str) -> None:
    types = VERSIONS[version]
    kind = types.structs[name]
    place = types.place_of(name)
    if name not in types.defs or place is None or name in types.places:
        return  # a part of a union's definition is tested with the union

    @_examples(kind)
    @given(values(version, name))
    def check(sent: dict[str, Any]) -> None:
        value: object = typed_json.decode(msgspec.json.encode(sent), kind)
        again = typed_json.encode(value)
        plain = msgspec.json.decode(again)
        types.validator(place).validate(plain)
        assert typed_json.encode(typed_json.decode(again, kind)) == again
        if isinstance(value, UnknownVariant):
            assert plain == sent
        elif isinstance(value, msgspec.Struct):
            patched = {
                field.encode_name
                for field in msgspec.structs.fields(value)
                if field.default is msgspec.UNSET
            }
            for field in patched & (set(sent) | set(plain)):
                assert (field in plain) == (field in sent), field
                assert (plain[field] is None) == (sent[field] is None), field

    check()


def _values(kind: type[Any]) -> st.SearchStrategy[Any]:
    members = [kind] if issubclass(kind, msgspec.Struct) else variants(kind)
    return st.one_of(*map(instances, members or [kind]))


def _examples(kind: type) -> settings:
    """Settings with as many examples as a type has fields, or a union variants.

    In `make fuzz`, ten times as many.
    """
    is_struct = issubclass(kind, msgspec.Struct)
    room = msgspec.structs.fields(kind) if is_struct else variants(kind)
    return settings(
        max_examples=(2 + len(room)) * (10 if "ACP_AGENT_FUZZ" in os.environ else 1),
        database=None,
        suppress_health_check=list(HealthCheck),
    )


# The tables by version, whether they are of the unstable part, and side.
TABLES: dict[tuple[str, bool], dict[str, list[Mapping[str, Method[Any, Any]]]]] = {
    ("v1", False): {
        "agent": [v1_methods.AGENT_METHODS],
        "client": [v1_methods.CLIENT_METHODS],
        "protocol": [v1_methods.PROTOCOL_METHODS],
    },
    ("v1", True): {
        "agent": [v1_unstable.UNSTABLE_AGENT_METHODS],
        "client": [v1_unstable.UNSTABLE_CLIENT_METHODS],
        "proxy": [v1_unstable.PROXY_METHODS, v1_unstable.PROXY_NOTIFICATIONS],
    },
    ("v2", False): {
        "agent": [v2_methods.AGENT_METHODS],
        "client": [v2_methods.CLIENT_METHODS],
        "protocol": [v2_methods.PROTOCOL_METHODS],
    },
    ("v2", True): {
        "agent": [v2_unstable.UNSTABLE_AGENT_METHODS],
        "client": [v2_unstable.UNSTABLE_CLIENT_METHODS],
        "proxy": [v2_unstable.PROXY_METHODS, v2_unstable.PROXY_NOTIFICATIONS],
    },
}


@pytest.mark.parametrize(("version", "unstable"), TABLES)
def test_the_method_tables_are_the_schema_s(version: str, *, unstable: bool) -> None:
    types = VERSIONS[version]
    theirs = types.methods(unstable=unstable)
    if unstable:
        for side, methods in types.methods(unstable=False).items():
            for name in methods:
                assert name not in TABLES[version, True].get(side, [{}])[0]
                del theirs[side][name]
    ours: dict[str, dict[str, set[str]]] = {}
    for side, tables in TABLES[version, unstable].items():
        for table in tables:
            for name, method in table.items():
                assert name == method.name
                ours.setdefault(side, {}).setdefault(name, set()).update(_names(method))
    assert ours == {side: methods for side, methods in theirs.items() if methods}


def _names(method: Method[Any, Any]) -> set[str]:
    if method.result is object:  # the result of a method that this one only wraps
        return {method.params.__name__, method.params.__name__.replace("Request", "Response")}
    return {kind.__name__ for kind in (method.params, method.result) if kind is not None}
