"""How the JSON Schemas that we publish are written."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path


def schema_text(schema: Mapping[str, object]) -> str:
    """A schema as JSON text, the same for the same schema."""
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def write_files(module: str, arguments: list[str], texts: Mapping[str, str]) -> int:
    """Write texts, by the names of their files, into the folder that is the one argument.

    Args:
        module: what was run with the arguments, by its name.
        arguments: as they were given.
        texts: what to write.

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
