"""Writes the configuration's JSON Schema, by which editors complete and check the TOML file.

`python -m acp_agent.config.publish schemas` writes `schemas/config.schema.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec

from acp_agent.config.types import Config

FILE_NAME = "config.schema.json"


def config_schema() -> str:
    """The schema as JSON text, the same for the same types."""
    schema = msgspec.json.schema(Config)
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "acp-agent configuration",
        **schema,
    }
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def main(arguments: list[str]) -> int:
    """Write the schema into the folder that is the one argument; an exit status."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m acp_agent.config.publish FOLDER\n")
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE_NAME).write_text(config_schema(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
