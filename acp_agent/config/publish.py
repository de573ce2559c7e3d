"""Writes the configuration's JSON Schema, by which editors complete and check the TOML file.

`python -m acp_agent.config.publish schemas` writes `schemas/config.schema.json`.
"""

from __future__ import annotations

import sys

import msgspec

from acp_agent.config.schema_files import schema_text, write_files
from acp_agent.config.types import Config

FILE_NAME = "config.schema.json"
# Amounts that may be text as well (`acp_agent.config.amounts`), which the types do not say.
_AMOUNTS = {
    f"{scope}_{unit}": examples
    for scope in ("turn", "session", "day")
    for unit, examples in (("tokens", ("500k", "20M")), ("cost", ("$2", "0.50 USD")))
}


def config_schema() -> str:
    """The schema as JSON text, the same for the same types."""
    schema = msgspec.json.schema(Config)
    for name, amount in schema["$defs"]["BudgetConfig"]["properties"].items():
        if name in _AMOUNTS:
            amount["anyOf"].insert(1, {"type": "string", "examples": _AMOUNTS[name]})
    return schema_text({"title": "acp-agent configuration", **schema})


def main(arguments: list[str]) -> int:
    """Write the schema into the folder that is the one argument; an exit status."""
    return write_files("acp_agent.config.publish", arguments, {FILE_NAME: config_schema()})


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
