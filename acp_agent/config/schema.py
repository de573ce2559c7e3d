"""Generate the JSON Schema of the configuration file, for completion and checks in editors."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec

from acp_agent.config.types import Config

FILE_NAME = "config.schema.json"
# Amounts that may also be text (`acp_agent.config.amounts`), which the types do not express.
_AMOUNTS = {
    f"{scope}_{unit}": examples
    for scope in ("turn", "session", "day")
    for unit, examples in (("tokens", ("500k", "20M")), ("cost", ("$2", "0.50 USD")))
}


def schema_text(schema: Mapping[str, object]) -> str:
    """Return a schema as JSON text; the output is deterministic."""
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def config_schema() -> str:
    """Return the schema as JSON text; the output is deterministic."""
    schema = msgspec.json.schema(Config)
    for name, amount in schema["$defs"]["BudgetConfig"]["properties"].items():
        if name in _AMOUNTS:
            amount["anyOf"].insert(1, {"type": "string", "examples": _AMOUNTS[name]})
    return schema_text({"title": "acp-agent configuration", **schema})
