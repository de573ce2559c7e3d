"""Hypothesis strategies for the protocol's types, made from what msgspec knows about them."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from hypothesis import strategies as st
from msgspec import UNSET, Meta, UnsetType

from protocol.codec.tolerance import OpenUnion, UnknownVariant
from protocol.v1 import types as v1
from protocol.v2 import types as v2

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
MCP_ERRORS = st.fixed_dictionaries(
    {"code": st.integers(-(2**31), 2**31 - 1), "message": TEXT}, optional={"data": JSON, "x": JSON}
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=2)


@cache
def instances(kind: Any) -> st.SearchStrategy[Any]:
    """Values of the type `kind`, as a program may build them."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return st.deferred(lambda: _structs(kind))
    if isinstance(kind, type) and issubclass(kind, OpenUnion):
        if issubclass(kind, UnknownVariant):
            return st.builds(kind, MCP_ERRORS)
        return st.deferred(lambda: st.one_of(*map(instances, variants(kind))))
    return _plain(kind, {})


def variants(union: type[OpenUnion]) -> list[type]:
    """The known variants of an open union."""
    found: list[type] = []
    for child in union.__subclasses__():
        if child.__name__.startswith("_"):
            found.extend(variants(child))
        elif not issubclass(child, UnknownVariant):
            found.append(child)
    return sorted(found, key=lambda each: each.__name__)


def _structs(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    required: dict[str, st.SearchStrategy[Any]] = {}
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for field in msgspec.structs.fields(kind):
        target = required if field.required else optional
        target[field.name] = instances(field.type)
    if kind in {v1.SessionConfigSelect, v2.SessionConfigSelect}:
        version = v1 if kind is v1.SessionConfigSelect else v2
        required["options"] = st.one_of(
            st.lists(instances(version.SessionConfigSelectOption), min_size=1, max_size=2),
            st.lists(instances(version.SessionConfigSelectGroup), min_size=1, max_size=2),
        )
    if kind is v2.SessionConfigSelectGroup:  # a sender never leaves it empty
        required["options"] = st.lists(
            instances(v2.SessionConfigSelectOption), min_size=1, max_size=2
        )
    if kind is v1.AuthMethodAgent:
        del optional["type"]  # only ever taken over from a peer that sends one
    if kind is v1.SetSessionConfigOptionRequest:
        del optional["type"]
        pairs = st.tuples(st.just("boolean"), st.booleans()) | st.tuples(st.none(), TEXT)
        known = st.fixed_dictionaries(required, optional=optional)
        return st.builds(
            lambda fields, pair: kind(**(fields | {"type": pair[0], "value": pair[1]})),
            known,
            pairs,
        )
    if issubclass(kind, v1.CreateElicitationRequest | v2.CreateElicitationRequest):
        for name in ("session_id", "tool_call_id", "request_id"):
            del optional[name]
        if "url" in required:
            required["url"] = st.just("https://example.org/form")
        of_session = st.fixed_dictionaries(
            {"session_id": TEXT}, optional={"tool_call_id": st.none() | TEXT}
        )
        version = v1 if issubclass(kind, v1.CreateElicitationRequest) else v2
        of_request = st.fixed_dictionaries({"request_id": instances(version.RequestId)})
        return st.builds(
            lambda fields, scope: kind(**fields, **scope),
            st.fixed_dictionaries(required, optional=optional),
            of_session | of_request,
        )
    return st.fixed_dictionaries(required, optional=optional).map(lambda fields: kind(**fields))


def _plain(kind: Any, bounds: dict[str, Any]) -> st.SearchStrategy[Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        for meta in kind.__metadata__:
            if isinstance(meta, Meta):
                bounds = bounds | {
                    name: value
                    for name in ("ge", "le", "min_length")
                    if (value := getattr(meta, name)) is not None
                }
        inner = arguments[0]
        return _plain(inner, bounds) if bounds else instances(inner)
    if origin in {Union, types.UnionType}:
        return st.one_of(*(_plain(each, bounds) for each in arguments))
    if origin is Literal:
        return st.sampled_from(arguments)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return st.lists(instances(arguments[0]), min_size=bounds.get("min_length", 0), max_size=2)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if arguments[1] is Any:
            return OBJECTS
        return st.dictionaries(TEXT, instances(arguments[1]), max_size=2)
    simple = {
        str: st.text(
            st.characters(codec="utf-8"), min_size=bounds.get("min_length", 0), max_size=8
        ),
        int: st.integers(bounds.get("ge", -(2**63)), bounds.get("le", 2**63 - 1)),
        float: st.floats(bounds.get("ge"), bounds.get("le"), allow_nan=False, allow_infinity=False),
        bool: st.booleans(),
        type(None): st.none(),
        UnsetType: st.just(UNSET),
        Any: JSON,
    }
    return simple[kind] if kind in simple else instances(kind)
