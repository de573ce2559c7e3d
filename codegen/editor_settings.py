"""Generate the published editor settings: what `acp-agent setup` writes into a new file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from acp_agent.cli.editors.catalog import editors
from acp_agent.cli.editors.plan import plan_setup

FILES: Final = {
    "zed": "settings.json",
    "jetbrains": "acp.json",
    "acpx": "config.json",
    "marimo": "marimo.toml",
    "codecompanion": "acp-agent-codecompanion.lua",
    "avante": "acp-agent-avante.lua",
    "agentic": "acp-agent-agentic.lua",
}
_COMMAND: Final = ("acp-agent",)


def published_settings(editor: str) -> bytes:
    """Return the settings of an editor, for an agent on the PATH."""
    catalog_entry = editors()[editor]
    with tempfile.TemporaryDirectory() as nothing:
        plan = plan_setup(
            catalog_entry, Path(nothing) / FILES[editor], catalog_entry.settings, _COMMAND
        )
    return plan.after or b""
