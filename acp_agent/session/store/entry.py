"""Events on their way into the journal."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from acp_agent.events import (
    AnyEvent,
    ConfigChanged,
    DirectoriesChanged,
    ModelAnswered,
    SessionStarted,
    TitleChanged,
    TurnStarted,
    Usage,
    UserMessage,
    of_a_child,
)
from acp_agent.session.store.codec import encode_event, repaired
from acp_agent.session.store.records import UnknownEvent


class Entry:
    """Events on their way into the journal: their bodies, and what they change in the session."""

    __slots__ = ("at", "bodies", "configured", "cwd", "directories", "title", "turns", "usage")

    def __init__(
        self,
        events: Sequence[AnyEvent | UnknownEvent],
        at: int,
        *,
        behind: Sequence[AnyEvent | UnknownEvent] = (),
    ) -> None:
        """Encode `events`, which happened at `at` (ms since 1970).

        Args:
            events: what is to be written.
            at: its time.
            behind: what is in the journal in front of them, where the session is made with both.

        Raises:
            InvalidInputError: one of them cannot be kept.
        """
        self.at = at
        self.bodies = [encode_event(event) for event in events]
        self.cwd: str | None = None
        self.directories: str | None = None
        self.title: str | None = None
        self.turns = 0
        self.configured = False
        self.usage = [
            (repaired(event.model), *_counts(event.usage), event.cost)
            for event in map(of_a_child, events)
            if isinstance(event, ModelAnswered) and event.usage
        ]
        for event in (*behind, *events):
            if isinstance(event, SessionStarted | DirectoriesChanged):
                self.cwd = repaired(event.cwd)
                folders = [repaired(folder) for folder in event.directories]
                self.directories = msgspec.json.encode(folders).decode()
            elif isinstance(event, TitleChanged):
                self.title = repaired(event.title)
            elif isinstance(event, ConfigChanged):
                self.configured = True
            elif isinstance(event, TurnStarted):
                self.turns += 1
            elif isinstance(event, UserMessage) and event.local and not event.steering:
                self.turns -= 1  # a command that the agent answers by itself is no conversation


def _counts(usage: Usage) -> tuple[int, ...]:
    return usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning
