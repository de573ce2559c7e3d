"""Writes plugins, and says what a session would find of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from acp_agent.extensions.definitions.locations import DefinitionFolders, find_folders
from acp_agent.extensions.plugins.manifest import MCP_SCHEMA, SCHEMA

MANIFEST = f'{{"$schema": "{SCHEMA}", "name": "hello"}}'
SKILL = "---\nname: greet\ndescription: Greets the user.\n---\nSay the word 4711."


def write_plugin(folder: Path, files: Mapping[str, str]) -> Path:
    """Write the files of a plugin; returns its folder."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("SCHEMA", SCHEMA).replace("MCP", MCP_SCHEMA))
    return folder


def places_of(top: Path) -> DefinitionFolders:
    """The places of a user and a project below a folder."""
    (top / "project" / ".git").mkdir(parents=True, exist_ok=True)
    return find_folders(top / "project", user=top / "user", home=top / "home")
