"""The agents of the VS Code extension, as its setting `acpAgent.agents` has them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.editors.end_to_end.code_server import PLUGIN, ROOT


def agent(home: Path, *arguments: str, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The real one, with a home of its own."""
    variables = {
        "HOME": str(home),
        "ACP_AGENT_HOME": str(home / "acp-agent"),
        "PYTHONPATH": str(ROOT),
        **(environ or {}),
    }
    return {"command": sys.executable, "args": ["-m", "acp_agent", *arguments], "env": variables}


def bad_agent(how: str, *more: str) -> dict[str, Any]:
    """One that does as little or as badly as `how` says: see the extension's `tests/agents`."""
    script = PLUGIN / "tests" / "agents" / "agent.mjs"
    return {"command": "node", "args": [str(script), how, *more]}
