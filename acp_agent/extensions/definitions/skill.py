"""A skill: instructions for a kind of work, in a file that the user or the model may choose."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from acp_agent.extensions.definitions.places import Source
from acp_agent.extensions.definitions.uses import Uses


class Skill(Struct, frozen=True, kw_only=True):
    """A skill of the Agent Skills standard (https://agentskills.io/specification).

    Attributes:
        name: that of its folder, too.
        description: what it does and when it is of use, in one line.
        text: the Markdown below the front matter.
        path: of its SKILL.md; what it names beside it is in the same folder.
        source: whose it is.
        hint: what may follow its command.
        uses: what it wants to be run with.
        by_model: whether the model may choose it.
        by_user: whether it is a command of the user's.
        apart: whether a subagent runs it, and not the conversation itself.
        agent: which agent runs it then; None leaves that to the program.
    """

    name: str
    description: str
    text: str
    path: Path
    source: Source
    hint: str | None = None
    uses: Uses = Uses()
    by_model: bool = True
    by_user: bool = True
    apart: bool = False
    agent: str | None = None
