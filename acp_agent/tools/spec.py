"""A tool as a model sees it. Separate from the tools, so that drivers do not import them."""

from __future__ import annotations

from msgspec import Struct

from acp_agent.content import JsonObject


class ToolSpec(Struct, frozen=True, kw_only=True):
    """A tool as a model sees it. `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: JsonObject
