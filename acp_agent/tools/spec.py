"""A tool as a model sees it. Separate from the tools, so that drivers do not import them."""

from __future__ import annotations

from functools import cached_property

import msgspec

from acp_agent.content import JsonObject


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A tool as a model sees it. `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: JsonObject

    @cached_property
    def size(self) -> int:
        """Bytes of the name, the description and the schema. Cached: each turn measures them."""
        texts = (self.name, self.description)
        size = sum(len(text.encode("utf-8", "replace")) for text in texts)
        return size + len(msgspec.json.encode(self.parameters))
