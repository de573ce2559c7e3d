"""An agent: who a subagent is, in a file."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from acp_agent.extensions.definitions.places import Source
from acp_agent.extensions.definitions.uses import Uses


class AgentSpec(Struct, frozen=True, kw_only=True):
    """An agent as its file has it, what it extends put in.

    Attributes:
        name: by which it is chosen.
        description: what it is good at, in one line.
        prompt: its system prompt.
        path: of its file.
        source: whose it is.
        uses: what it wants to be run with.
    """

    name: str
    description: str
    prompt: str
    path: Path
    source: Source
    uses: Uses = Uses()
