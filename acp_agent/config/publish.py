"""Write the JSON Schema of the configuration file, for completion and checks in editors.

`python -m acp_agent.config.publish schemas` writes `schemas/config.schema.json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

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


def write_files(module: str, arguments: list[str], texts: Mapping[str, str]) -> int:
    """Write texts into the folder that is the only argument.

    Returns:
        An exit status.
    """
    if len(arguments) != 1:
        sys.stderr.write(f"usage: python -m {module} FOLDER\n")
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


def config_schema() -> str:
    """Return the schema as JSON text; the output is deterministic."""
    schema = msgspec.json.schema(Config)
    for name, amount in schema["$defs"]["BudgetConfig"]["properties"].items():
        if name in _AMOUNTS:
            amount["anyOf"].insert(1, {"type": "string", "examples": _AMOUNTS[name]})
    return schema_text({"title": "acp-agent configuration", **schema})


def main(arguments: list[str]) -> int:
    """Write the schema into the folder that is the only argument; return an exit status."""
    return write_files("acp_agent.config.publish", arguments, {FILE_NAME: config_schema()})


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
