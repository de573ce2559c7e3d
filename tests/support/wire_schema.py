"""The protocol's own schema as validators of single messages, compiled once in a process."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any, Literal

import jsonschema_rs
import pytest

Json = dict[str, Any]
Side = Literal["agent", "client", "protocol"]
Kind = Literal["Request", "Response", "Notification"]


class WireSchema:
    """Validators of one protocol version, by method and kind of message.

    They are stricter than a receiver has to be. Fields that the schema does not know are refused
    wherever it names the fields of an object: the protocol reserves them, and extensions belong
    below `_meta`. Where an enumeration or a union is open, a value that the schema does not name
    has to begin with an underscore: the others are reserved, too.
    """

    def __init__(self, schema: Json) -> None:
        self._defs: Json = {
            name: _closed(definition) for name, definition in schema["$defs"].items()
        }
        self._names: dict[tuple[str, str, str], str] = {}
        for name, definition in schema["$defs"].items():
            for kind in ("Request", "Response", "Notification"):
                if "x-method" in definition and name.endswith(kind):
                    key = (definition["x-method"], definition["x-side"], kind)
                    self._names[key] = name
        self._validators: dict[str, jsonschema_rs.Validator] = {}

    def knows(self, method: str, side: str, kind: str) -> bool:
        """Whether the schema has a `kind` of this method that is handled by `side`."""
        return (method, side, kind) in self._names

    def methods(self, side: Side) -> set[str]:
        """The names of the methods that a side handles."""
        return {method for method, where, _ in self._names if where == side}

    def updates(self) -> set[str]:
        """The kinds of session update."""
        variants = self._defs["SessionUpdate"]
        return {
            variant["properties"]["sessionUpdate"]["const"]
            for variant in variants.get("anyOf") or variants["oneOf"]
            if "const" in variant["properties"]["sessionUpdate"]
        }

    def problem(self, method: str, side: str, kind: str, instance: object) -> str | None:
        """What is wrong with params or a result; None where nothing is."""
        name = self._names[method, side, kind]
        validator = self._validators.get(name)
        if validator is None:
            root = {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$ref": f"#/$defs/{name}",
                "$defs": self._defs,
                "unevaluatedProperties": False,
            }
            validator = self._validators[name] = jsonschema_rs.validator_for(root)
        for error in validator.iter_errors(instance):
            place = "/".join(str(part) for part in error.instance_path) or "(root)"
            return f"{name} at {place}: {error.message[:600]}"
        return None


@cache
def wire_schema(version: str = "v1") -> WireSchema | None:
    """The schema of a protocol version, its unstable part included.

    None where Node.js is missing, which brings it.
    """
    from tests.support import acp_schema

    try:
        return WireSchema(acp_schema.load(version, unstable=True))
    except pytest.skip.Exception:
        return None


def _closed(node: Any) -> Any:
    """A copy of a schema that allows no other fields where it refers to a type."""
    node = copy.deepcopy(node)
    _close(node, composes=True)
    return node


def _close(node: Any, *, composes: bool) -> None:
    if not isinstance(node, dict):
        return
    for key in ("allOf", "anyOf", "oneOf"):
        for part in node.get(key, ()):
            if part.get("title") == "other":
                _reserve(part)
            if not part.keys() - {"title", "description"}:
                part["additionalProperties"] = True  # it may be anything, and stays so
            _close(part, composes=True)
    for part in node.get("properties", {}).values():
        _close(part, composes=False)
    _close(node.get("items"), composes=False)
    _close(node.get("additionalProperties"), composes=False)
    refers = any(key in node for key in ("$ref", "allOf", "anyOf", "oneOf"))
    if refers and not composes:
        node["unevaluatedProperties"] = False


def _reserve(other: Json) -> None:
    """Leave an open variant to values that begin with an underscore."""
    for part in (other, *other.get("properties", {}).values()):
        if part.get("type") == "string":
            part["pattern"] = "^_"
