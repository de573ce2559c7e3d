"""The types of a protocol version beside the definitions of its schema."""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import jsonschema_rs
import msgspec

from protocol.codec.tolerance import OpenUnion
from tests.support import acp_schema

# What JSON-RPC wraps around the messages; protocol.jsonrpc speaks it.
_ENVELOPES = {
    f"{side}{kind}"
    for side in ("Agent", "Client", "Proxy")
    for kind in ("Request", "Response", "Notification")
}
# Any JSON: whoever defines an extension method gives it a type.
_EXTENSIONS = {"ExtRequest", "ExtResponse", "ExtNotification"}
# What all types derive from.
_BASES = {"Bare", "Upsert", "Wire"}


class SchemaTypes:
    """One version's types and its definitions, the unstable ones included.

    Args:
        version: `v1` or `v2`.
        modules: those that export the types.
        places: which definition a type's values validate against, where the schema has none of
            the type's name; None: they only ever stand inside another type's.
        definitions: which definition a type has its fields from, where the schema has none of its
            name, or more than that.
        merged: definitions without a type, whose fields are those of the types named.
        further: definitions without a type for a reason that the caller knows.
    """

    def __init__(
        self,
        version: str,
        *modules: ModuleType,
        places: dict[str, str | None],
        definitions: dict[str, str],
        merged: dict[str, list[str]],
        further: set[str],
    ) -> None:
        self.version = version
        self.places = places
        self.definitions = definitions
        self.merged = merged
        self.untyped = _EXTENSIONS | set(merged) | further
        found = {name: getattr(module, name) for module in modules for name in exports(module)}
        self.found = found
        self.exported = set(found)
        # Without the aliases of plain values, and of unions whose types are compared by themselves.
        self.structs: dict[str, type[Any]] = {
            name: kind
            for name, kind in found.items()
            if name in self.exported
            and isinstance(kind, type)
            and issubclass(kind, msgspec.Struct | OpenUnion)
            # Aliases of another type's definition are compared under that type's name.
            and name == kind.__name__
        }
        self.names = sorted(name for name in self.structs if not name.startswith("Other"))

    @property
    def defs(self) -> dict[str, Any]:
        """All definitions."""
        defs: dict[str, Any] = acp_schema.load(self.version, unstable=True)["$defs"]
        return defs

    @property
    def stable_defs(self) -> dict[str, Any]:
        """The definitions of the stable schema."""
        defs: dict[str, Any] = acp_schema.load(self.version)["$defs"]
        return defs

    def missing(self) -> set[str]:
        """The definitions that should have a type and have none."""
        return set(self.defs) - self.exported - self.untyped - _ENVELOPES

    def definition_of(self, name: str) -> dict[str, Any] | None:
        """The definition that a type has its fields from, with what it takes from others."""
        found = self.defs.get(self.definitions.get(name, name))
        if found is None:
            return None
        whole: dict[str, Any] = {"properties": {}, "required": []}
        for part in (*(self._target(each) for each in found.get("allOf", [])), found):
            whole["properties"] |= part.get("properties", {})
            whole["required"] = [*whole["required"], *part.get("required", [])]
        return whole

    def place_of(self, name: str) -> str | None:
        """The definition that values validate against: a union's where it holds the tag."""
        if name in self.places:
            return self.places[name]
        kind = self.structs[name]
        if issubclass(kind, msgspec.Struct) and kind.__struct_config__.tag is not None:
            wanted = {"$ref": f"#/$defs/{name}"}
            for union, definition in self.defs.items():
                for variant in definition.get("anyOf", []) + definition.get("oneOf", []):
                    tagged = any("const" in each for each in variant.get("properties", {}).values())
                    if tagged and wanted in variant.get("allOf", []):
                        return union
        return name

    @cache  # noqa: B019 - there are two objects of this class, for as long as the tests run
    def validator(self, name: str) -> jsonschema_rs.Validator:
        """Validates against a definition, and refuses what it does not know."""
        return jsonschema_rs.validator_for(
            {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$ref": f"#/$defs/{name}",
                "$defs": self.defs,
                "unevaluatedProperties": False,
            }
        )

    def unstable_fields(self, name: str) -> tuple[set[str], set[str]]:
        """The fields of a type that the schema calls unstable, and those that its code calls so.

        All of them where the whole type is called so.
        """
        kind = self.structs[name]
        definition = self.definition_of(name)
        assert definition is not None
        fields = set(definition["properties"]) - {"_meta"}
        theirs = {field for field in fields if _is_unstable(definition["properties"][field])} | (
            fields if self.definitions.get(name, name) not in self.stable_defs else set()
        )
        if says_unstable(kind):
            return theirs, fields
        encoded = {field.name: field.encode_name for field in msgspec.structs.fields(kind)}
        ours = set()
        for base in kind.__mro__[: kind.__mro__.index(msgspec.Struct)]:
            below = False
            for line in inspect.getsource(base).splitlines():
                word = line.strip()
                below |= word.startswith("# UNSTABLE from here on")
                field = word.partition(":")[0]
                if field in encoded and (below or "# UNSTABLE" in word):
                    ours.add(encoded[field])
        return theirs, ours

    def shared_fields(self, union: str) -> set[str]:
        """The fields that a union's own definition has: those of all variants, and the tags."""
        definition = self.defs[union]
        found = set(definition.get("properties", {}))
        for variant in definition.get("anyOf", []) + definition.get("oneOf", []):
            found |= set(variant.get("properties", {}))
        return found

    def unions(self) -> dict[str, list[dict[str, Any]]]:
        """The unions among the types: what tells each variant of theirs apart that has a name."""
        found = {}
        for name, definition in self.defs.items():
            tags = [
                tag
                for variant in definition.get("anyOf", []) + definition.get("oneOf", [])
                if (tag := _constants(variant))
            ]
            kind = self.found.get(name)
            if tags and not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
                found[name] = tags
        return found

    def methods(self, *, unstable: bool) -> dict[str, dict[str, set[str]]]:
        """By side and method: the names of the definitions of what goes in and comes out."""
        found: dict[str, dict[str, set[str]]] = {}
        for name, definition in (self.defs if unstable else self.stable_defs).items():
            if "x-method" in definition:
                side = found.setdefault(definition["x-side"], {})
                side.setdefault(definition["x-method"], set()).add(name)
        return found

    def _target(self, part: dict[str, Any]) -> dict[str, Any]:
        return self.defs[part["$ref"].rpartition("/")[2]] if "$ref" in part else part


def exports(module: ModuleType) -> set[str]:
    """What a module exports: what it defines, and all of what it imports with a star or `as`."""
    found: set[str] = set()
    body = ast.parse(inspect.getsource(module)).body
    checking = [node for each in body if isinstance(each, ast.If) for node in each.body]
    for node in (*body, *checking):
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            found |= {each.id for each in targets if isinstance(each, ast.Name)}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for name in node.names:
                if name.name == "*":
                    found |= exports(import_module(node.module))
                elif name.asname == name.name:
                    found.add(name.name)
    return {name for name in found if not name.startswith("_")} - _BASES


def says_unstable(kind: type) -> bool:
    """Whether a type's docstring says UNSTABLE, or that of its module."""
    module = sys.modules[kind.__module__].__doc__ or ""
    return "UNSTABLE." in (kind.__doc__ or "") or module.startswith("UNSTABLE")


def _constants(variant: dict[str, Any]) -> dict[str, Any]:
    properties = variant.get("properties", {})
    return {name: each["const"] for name, each in properties.items() if "const" in each}


def _is_unstable(definition: Any) -> bool:
    return isinstance(definition, dict) and definition.get("description", "").startswith(
        "**UNSTABLE**"
    )
