"""What the user has to type to run this program again."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def own_command() -> str:
    """The program's name where the shell finds it, else its path, as short as it can be told."""
    here = Path(sys.executable).with_name("acp-agent")
    if shutil.which("acp-agent") is not None or not here.exists():
        return "acp-agent"
    return min(os.path.relpath(here), str(here), key=len)
