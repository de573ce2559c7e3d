"""Generate the JSON Schema of workflow files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from acp_agent.config.schema import schema_text
from acp_agent.extensions.workflows.parse import (
    MAX_PARALLEL_STEPS,
    MAX_RETRIES,
    MAX_STEPS,
    SETTINGS,
)
from acp_agent.extensions.workflows.types import StepMode

FILE_NAME = "workflow.schema.json"
Schema = dict[str, object]

_NAME = "^[A-Za-z_][A-Za-z0-9_-]{0,63}$"
_TEXT: Schema = {"type": "string"}
_SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}
_TEXTS: Schema = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_DURATION: Schema = {"type": ["string", "number"], "examples": ["90s", "10m", "1h30m", 60]}
_STEP = {"$ref": "#/$defs/step"}


def _with_description(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


def _object(fields: Mapping[str, Schema], **more: object) -> Schema:
    """Return the schema of an object with these fields; names may use `_` instead of `-`."""
    with_underscores = {name.replace("-", "_"): schema for name, schema in fields.items()}
    properties = {name: _or_null(schema) for name, schema in {**with_underscores, **fields}.items()}
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def _or_null(schema: Schema) -> Schema:
    """Return a schema that also accepts null, which counts as a missing field."""
    description = {"description": schema["description"]} if "description" in schema else {}
    bare = {name: value for name, value in schema.items() if name != "description"}
    return {**description, "anyOf": [bare, {"type": "null"}]}


_SETTING_SCHEMAS: dict[str, Schema] = {
    "agent": _with_description(_TEXT, "The agent that runs it."),
    "model": _with_description(
        {"type": "string", "pattern": r"^[^/\s]+/\S+$"}, "As provider/name."
    ),
    "mode": _with_description({"enum": list(get_args(StepMode))}, "The permission mode."),
}
_INPUT = _object(
    {"description": _TEXT, "default": _SCALAR, "required": {"type": "boolean"}, "type": {}}
)
_TRIGGERS = _object(
    {
        "files": _with_description(
            _TEXTS, "Patterns of files whose changes start a run; ! excludes."
        ),
        "every": _with_description(_DURATION, "The time between two runs."),
        "cron": _with_description(_TEXTS, "Schedules as in crontab(5), in local time."),
    }
)
STEP_SCHEMAS: dict[str, Schema] = {
    "id": _with_description(
        {"type": "string", "pattern": _NAME}, "The name of the step in this file."
    ),
    "prompt": _with_description({"type": "string", "minLength": 1}, "The text for the agent."),
    "skill": _with_description(
        {"type": "string", "pattern": "^[a-z0-9]+(?:-[a-z0-9]+)*$"}, "A skill, not a prompt."
    ),
    "with": _with_description(
        {"anyOf": [_TEXT, {"type": "object", "additionalProperties": _SCALAR}]},
        "The input of the skill.",
    ),
    "parallel": _with_description(
        {"type": "array", "items": _STEP, "minItems": 1, "maxItems": MAX_PARALLEL_STEPS},
        "Steps that run at the same time, not a prompt.",
    ),
    "for-each": _with_description(
        {"anyOf": [_TEXT, {"type": "array", "items": _SCALAR}]},
        "The step runs once for each item: a list, or a text with one item per line.",
    ),
    "if": _with_description(_SCALAR, "The condition on which the step runs."),
    "session": _with_description({"enum": ["new", "shared"]}, "`new`: in a session of its own."),
    "retry": _with_description(
        {"type": "integer", "minimum": 0, "maximum": MAX_RETRIES}, "How often it is retried."
    ),
    "timeout": _with_description(_DURATION, "The time limit of one attempt."),
    "continue-on-error": _with_description(
        {"type": "boolean"}, "Whether the run continues if the step fails."
    ),
    **_SETTING_SCHEMAS,
}
FILE_SCHEMAS: dict[str, Schema] = {
    "name": _with_description(_TEXT, "The name of the workflow. Without it: the file's."),
    "description": _with_description(_TEXT, "What it does."),
    "on": _with_description(_TRIGGERS, "What `acp-agent watch` starts it on."),
    "inputs": _with_description(
        {
            "type": "object",
            "propertyNames": {"pattern": _NAME},
            "additionalProperties": {"anyOf": [_INPUT, _SCALAR]},
        },
        "The inputs by name: a default, or an object.",
    ),
    "steps": _with_description(
        {"type": "array", "items": _STEP, "minItems": 1, "maxItems": MAX_STEPS}, "The steps."
    ),
    **{name: _SETTING_SCHEMAS[name] for name in SETTINGS},
}


def workflow_schema() -> str:
    """Return the schema as JSON text."""
    kinds = ("prompt", "skill", "parallel")
    step = _object(STEP_SCHEMAS, required=["id"], oneOf=[{"required": [kind]} for kind in kinds])
    schema = _object(FILE_SCHEMAS, required=["steps"])
    return schema_text({"title": "acp-agent: a workflow", **schema, "$defs": {"step": step}})
