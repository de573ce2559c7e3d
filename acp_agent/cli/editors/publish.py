"""Write the published editor settings: what `acp-agent setup` writes into a new file.

They are in editor-plugins. `make schemas` runs this, and a test compares the files with it.
"""

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


def write(folder: Path) -> None:
    """Write each file into the folder of its editor below `folder`."""
    for editor, name in FILES.items():
        path = folder / editor / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(published_settings(editor))


if __name__ == "__main__":
    write(Path(__file__).parents[3] / "editor-plugins")
