"""What the tests of language servers share."""

from __future__ import annotations

import sys
from pathlib import Path

SCRIPTED = Path(__file__).parents[1] / "support" / "language_server.py"


def scripted_server(*arguments: str) -> str:
    """The configuration of the scripted server, for files that end in .txt."""
    command = ", ".join(f'"{part}"' for part in (sys.executable, str(SCRIPTED), *arguments))
    return (
        'mode = "full"\n'
        f'[language_servers.scripted]\ncommand = [{command}]\nextensions = [".txt"]\n'
    )
