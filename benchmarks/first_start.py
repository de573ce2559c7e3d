"""Start the agent once, so that it writes the module cache, which later starts use.

python -m benchmarks.first_start
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import acp_agent
from acp_agent.platform.module_cache import FILE_NAME
from benchmarks.agent import Agent

_DEADLINE = 60.0  # seconds
_STEP = 0.1  # seconds


def main() -> None:
    """Write the file, or print that it did not appear within a minute."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # it is what is to be written
    file = Path(acp_agent.__file__).parent / "__pycache__" / FILE_NAME
    file.unlink(missing_ok=True)
    with Agent("--model", "demo/demo") as agent, tempfile.TemporaryDirectory() as cwd:
        agent.initialize()
        agent.new_session(cwd)
        deadline = time.monotonic() + _DEADLINE
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(_STEP)
    if not file.exists():
        print("The module cache was not written; the agent starts more slowly without it.")


if __name__ == "__main__":
    main()
