"""What a skill or an agent wants to be run with."""

from __future__ import annotations

from fnmatch import fnmatchcase

from msgspec import Struct

from acp_agent.config.types import ThoughtLevel

SMALL = "small"  # stands for the session's small model


class Uses(Struct, frozen=True, kw_only=True):
    """What a skill or an agent wants to be run with; None stands for what the session has.

    Attributes:
        model: "provider/name", or "small".
        thought_level: how much the model reasons.
        temperature: how much chance there is in its answers.
        max_output: the longest answer, in tokens.
        tools: only these tools of the session; None: all of them.
        without: these tools not, whatever `tools` says.
        max_requests: requests to the model in one run.
    """

    model: str | None = None
    thought_level: ThoughtLevel | None = None
    temperature: float | None = None
    max_output: int | None = None
    tools: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    max_requests: int | None = None

    def allows(self, tool: str) -> bool:
        """Whether a tool of the session is left to it. In both lists `*` stands for any letters."""
        if any(fnmatchcase(tool, pattern) for pattern in self.without):
            return False
        return self.tools is None or any(fnmatchcase(tool, pattern) for pattern in self.tools)
