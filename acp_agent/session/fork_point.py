"""Where in a session a fork of it ends."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from acp_agent.errors import InvalidInputError
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    ModelAnswered,
    ModelAsked,
    ThoughtSealed,
    ToolCalled,
    ToolEnded,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId
from acp_agent.session.store.records import UnknownEvent

_OF_A_MESSAGE = (UserMessage, ModelAsked, AgentText, AgentThought, ThoughtSealed, ModelAnswered)


class ForkPoint(Struct, frozen=True, kw_only=True):
    """A message, and whether the fork has it."""

    message: MessageId
    inclusive: bool

    def length(self, events: Sequence[AnyEvent | UnknownEvent]) -> int:
        """How many of a session's events come before the point.

        With the message come the ends of its calls, and the end of the turn where it is the last.

        Raises:
            InvalidInputError: there is no such message.
        """
        first = last = -1
        calls: set[CallId] = set()
        for place, event in enumerate(events):
            match event:
                case ToolCalled() if event.message == self.message:
                    calls.add(event.call)
                case ToolEnded() if event.call in calls:
                    pass
                case _ if isinstance(event, _OF_A_MESSAGE) and event.message == self.message:
                    first = place if first < 0 else first
                case _:
                    continue
            last = place
        if first < 0:
            key = "through" if self.inclusive else "before"
            raise InvalidInputError(
                f"_meta.acp-agent.{key}: there is no message {self.message[:80]!r} in the session",
                field=f"_meta.acp-agent.{key}",
            )
        if not self.inclusive:
            return first - 1 if isinstance(events[first - 1], TurnStarted) else first
        for place in range(last + 1, len(events)):
            if isinstance(events[place], TurnStarted | UserMessage | ModelAsked):
                return place
        return len(events)
