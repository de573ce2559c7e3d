"""Text of others made harmless for a terminal."""

from __future__ import annotations

from acp_agent.cli.output import visible
from acp_agent.content import escaped

_TAB = {9: "    "}


def unmasked(text: str) -> str:
    """`text` with control characters, and all that is hidden in it, written out."""
    return escaped(visible(text))


def inert(text: str) -> str:
    """The same with tabs as spaces, so that columns can be counted."""
    return unmasked(text).translate(_TAB)


def one_line(text: str, limit: int = 200) -> str:
    """The beginning of `text` as one inert line of at most `limit` characters."""
    line = " ".join(inert(text[: 4 * limit]).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
