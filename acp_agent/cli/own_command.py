"""What the user has to type to run this program again."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shlex import quote

from acp_agent.platform.programs import find_program


def own_command() -> str:
    """The program's name where the shell finds it, else its path, quoted for a shell.

    The path is as short as it can be told.
    """
    here = Path(sys.executable).with_name("acp-agent")
    if find_program("acp-agent") is not None or not here.exists():
        return "acp-agent"
    try:
        from_here = os.path.relpath(here)
    except FileNotFoundError:  # the folder that we are in is gone
        return quote(str(here))
    return quote(min(from_here, str(here), key=len))
