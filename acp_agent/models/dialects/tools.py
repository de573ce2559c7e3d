"""The tools of a request, as the forms need them: their names, and the types of their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from acp_agent.content import JsonObject
from acp_agent.models.dialects import json_text
from acp_agent.tools.spec import ToolSpec

_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),),
    "array": (list,), "object": (dict,),
}  # fmt: skip
_PYTHON = {"True": True, "False": False, "None": None}  # as models write them that learnt Python
_DEPTH = 16  # of references to definitions that are followed


class Tools:
    """The tools that a model may call."""

    def __init__(self, specs: Iterable[ToolSpec]) -> None:
        self._specs = {spec.name: spec for spec in specs}

    def __contains__(self, name: object) -> bool:
        return name in self._specs

    def __iter__(self) -> Iterator[ToolSpec]:
        return iter(self._specs.values())

    def typed(self, tool: str, argument: str, text: str) -> object:
        """The value of an argument that was written as bare text.

        It is what the tool's schema asks for, where the text can be that; else the text itself,
        which the tool then refuses with a reason.
        """
        spec = self._specs.get(tool)
        if spec is None:
            return text
        properties = spec.parameters.get("properties")
        schema = properties.get(argument) if isinstance(properties, dict) else None
        allowed = _types(schema, spec.parameters, _DEPTH)
        wanted = allowed - {"string"}
        if not wanted:
            return text
        bare = text.strip()
        value = _PYTHON[bare] if bare in _PYTHON else json_text.decode(bare)
        if value is json_text.NOTHING:
            return text
        for name in wanted:
            if isinstance(value, _TYPES[name]) and not (
                isinstance(value, bool) and name != "boolean"
            ):
                return value
        if "integer" in wanted and isinstance(value, float) and value.is_integer():
            return int(value)
        return text


def _types(schema: object, root: JsonObject, depth: int) -> set[str]:
    """The JSON types that a schema allows; none where it does not say."""
    if not isinstance(schema, dict) or depth == 0:
        return set()
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        found: object = root
        for step in reference[2:].split("/"):
            found = found.get(step) if isinstance(found, dict) else None
        return _types(found, root, depth - 1)
    given = schema.get("type")
    allowed = (
        {given} if isinstance(given, str) else set(given) if isinstance(given, list) else set()
    )
    for key in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(key) or ():
            allowed |= _types(part, root, depth - 1)
    return {name for name in allowed if name in _TYPES or name == "string"}
