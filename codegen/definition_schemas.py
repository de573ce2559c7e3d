"""Generate the JSON Schemas of the front matter of skills and agents."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from acp_agent.config.schema import schema_text
from acp_agent.extensions.definitions.fields import (
    FIELD_ALIASES,
    AgentFields,
    RunFields,
    SkillFields,
)

# By file name.
PUBLISHED: Mapping[str, tuple[str, type[RunFields]]] = {
    "skill.schema.json": ("the front matter of a skill's SKILL.md", SkillFields),
    "agent.schema.json": ("the front matter of an agent's file", AgentFields),
}


def definition_schema(name: str) -> str:
    """Return the schema of a file as JSON text; the output is deterministic."""
    title, kind = PUBLISHED[name]
    (_, definitions) = msgspec.json.schema_components([kind])
    schema = definitions.pop(kind.__name__)
    properties = schema["properties"]
    # No field accepts null: a field without a value counts as not given, except for `tools`, where
    # it would be unclear whether all or no tools are meant.
    properties["tools"]["anyOf"].remove({"type": "null"})
    for alias, field_name in FIELD_ALIASES.items():
        if field_name not in properties:  # a field of the other kind
            continue
        properties[alias] = {
            **properties[field_name],
            "description": f"Another name of {field_name}.",
        }
    for field in properties.values():
        field.pop("default", None)
    if kind is AgentFields:
        schema["anyOf"] = [{"required": ["description"]}, {"required": ["extends"]}]
    if definitions:  # types used by fields
        schema["$defs"] = definitions
    return schema_text({**schema, "title": f"acp-agent: {title}"})
