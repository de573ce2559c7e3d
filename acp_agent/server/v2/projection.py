"""Turns a session's events into the updates of version 2, which say what changed.

A replay combines the same updates (`replay`).

Source: Agent Client Protocol v2, SessionUpdate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import UNSET

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    BackgroundCommandChanged,
    CompactionChanged,
    CompactionSummaryText,
    ModelAsked,
    NoticeShown,
    PermissionAsked,
    PermissionDecided,
    PlanChanged,
    PlanRemoved,
    Rewound,
    TitleChanged,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    ToolShown,
    ToolStarted,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    UsageReported,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, SessionId, TurnId
from acp_agent.server.notices import interrupted_note
from acp_agent.server.v2.activity import Activity
from acp_agent.server.v2.calls import Calls
from acp_agent.server.v2.conversion import text, to_acp
from protocol.v2 import types as acp


class Projector:
    """Turns one session's own events into updates. Needs every event from the first one on."""

    def __init__(self, translate: Translator = ENGLISH) -> None:
        self._translate = translate
        self.activity = Activity(translate)
        self._calls = Calls(translate)
        self._continued: dict[MessageId, MessageId] = {}  # answers shown as a part of another

        # By type and not by pattern: a replay projects thousands of events.
        self._by_type: dict[type, Callable[[Any], Sequence[acp.SessionUpdate]]] = {
            AgentText: self._agent_text,
            AgentThought: _thought,
            ToolOutput: self._calls.add_output,
            UserMessage: _user_message,
            TurnStarted: lambda _: self.activity.turn_started(),
            ModelAsked: self._model_asked,
            TurnEnded: self._turn_ended,
            TurnInterrupted: self._turn_interrupted,
            ToolCalled: self._calls.show_call,
            PermissionAsked: lambda event: self.activity.call_waits(event.call),
            PermissionDecided: lambda event: self.activity.call_answered(event.call),
            ToolStarted: self._tool_started,
            ToolShown: self._calls.update_call,
            ToolEnded: self._tool_ended,
            BackgroundCommandChanged: self._background,
            PlanChanged: _plan,
            PlanRemoved: _plan_removed,
            UsageReported: _usage,
            TitleChanged: _title,
            NoticeShown: _notice,
            Rewound: self._rewound,
            CompactionChanged: _compaction,
            CompactionSummaryText: _compaction,
        }

    def project(self, event: AnyEvent) -> Sequence[acp.SessionUpdate]:
        """Return the updates that show `event`; none for one that only the journal needs."""
        show = self._by_type.get(type(event))
        if show is None:
            return ()
        if self._translate is not ENGLISH:
            from acp_agent.session.localize import localize  # noqa: PLC0415 - not in English

            event = localize(event, self._translate)
        return show(event)

    def missed_updates(self) -> Sequence[acp.SessionUpdate]:
        """Return the background terminals, for a client that did not see them start."""
        return self._calls.missed_updates()

    def refer(self, call: CallId, child: SessionId) -> Sequence[acp.SessionUpdate]:
        """Show a reference to a child session in an open call."""
        return self._calls.refer(call, child)

    def cut_off(self) -> Sequence[acp.SessionUpdate]:
        """Return the updates that end what was shown as running."""
        return [*self._calls.cut_all(), *self.activity.turn_ended(None)]

    def _model_asked(self, event: ModelAsked) -> Sequence[acp.SessionUpdate]:
        if event.continues is not None:
            self._continued[event.message] = event.continues
        return self.activity.model_asked()

    def _agent_text(self, event: AgentText) -> Sequence[acp.SessionUpdate]:
        message = self._continued.get(event.message, event.message)
        return self.activity.message_sent(
            acp.AgentMessageChunk(message_id=message, content=text(event.text))
        )

    def _tool_started(self, event: ToolStarted) -> Sequence[acp.SessionUpdate]:
        return [*self.activity.call_started(event.call), *self._calls.start_call(event)]

    def _background(self, event: BackgroundCommandChanged) -> Sequence[acp.SessionUpdate]:
        # The terminal is announced before a state lists it, and ended before one does not.
        updates = self._calls.background(event)
        if event.status == "running":
            return [*updates, *self.activity.command_backgrounded(event.call)]
        return [*updates, *self.activity.background_ended(event.call)]

    def _tool_ended(self, event: ToolEnded) -> Sequence[acp.SessionUpdate]:
        state_updates = self.activity.call_ended(event.call, cancelled=event.cancelled)
        return [*self._calls.end_call(event), *state_updates]

    def _turn_ended(self, event: TurnEnded) -> Sequence[acp.SessionUpdate]:
        return [*self._calls.cut_all(), *self.activity.turn_ended(event)]

    def _rewound(self, event: Rewound) -> Sequence[acp.SessionUpdate]:
        from acp_agent.server.notices import rewound_note  # noqa: PLC0415 - rare

        # A message and not a notice, as a replay has no notices.
        note = " ".join(rewound_note(event, self._translate)).strip()
        update_call = acp.AgentMessage(message_id=event.rewind, content=[text(f"_{note}_")])
        if event.in_turn:
            return [update_call]
        turn_end = TurnEnded(turn=TurnId(event.rewind), stop_reason="end_turn")
        return [*self.activity.turn_started(), update_call, *self.activity.turn_ended(turn_end)]

    def _turn_interrupted(self, event: TurnInterrupted) -> Sequence[acp.SessionUpdate]:
        return [
            *self.activity.turn_started(),  # if its end was shown but could not be written
            *(update for call in event.calls for update in self._calls.cut(call)),
            acp.AgentMessage(
                message_id=event.message,
                content=[text(f"_{' '.join(interrupted_note(self._translate))}_")],
            ),
            *self.activity.turn_ended(None),
        ]


def _user_message(event: UserMessage) -> Sequence[acp.SessionUpdate]:
    content = [to_acp(block) for block in event.content]
    return [acp.UserMessage(message_id=event.message, content=content)]


def _thought(event: AgentThought) -> Sequence[acp.SessionUpdate]:
    # Its own id: thoughts and answer are two messages of the protocol.
    thought = f"{event.message}_thought"
    return [acp.AgentThoughtChunk(message_id=thought, content=text(event.text))]


def _plan(event: PlanChanged) -> Sequence[acp.SessionUpdate]:
    entries = [
        acp.PlanEntry(content=entry.content, priority=entry.priority, status=entry.status)
        for entry in event.entries
    ]
    return [acp.PlanUpdate(plan=acp.PlanItems(plan_id=event.plan_id, entries=entries))]


def _plan_removed(event: PlanRemoved) -> Sequence[acp.SessionUpdate]:
    # Removal is unstable: a client without it keeps an empty plan.
    empty = acp.PlanUpdate(plan=acp.PlanItems(plan_id=event.plan_id, entries=[]))
    return [empty, acp.PlanRemoved(plan_id=event.plan_id)]


def _usage(event: UsageReported) -> Sequence[acp.SessionUpdate]:
    if event.cost is None:
        return [acp.UsageUpdate(used=event.used, size=event.size)]
    cost = acp.Cost(amount=event.cost, currency=event.currency)
    return [acp.UsageUpdate(used=event.used, size=event.size, cost=cost)]


def _title(event: TitleChanged) -> Sequence[acp.SessionUpdate]:
    return [acp.SessionInfoUpdate(title=event.title)]


def _notice(event: NoticeShown) -> Sequence[acp.SessionUpdate]:
    if event.message is not None:  # a replay has no notices
        note = text(f"_{event.title} {event.description}_")
        return [acp.AgentMessage(message_id=event.message, content=[note])]
    description = event.description or None
    return [acp.Notice(severity=event.severity, title=event.title, description=description)]


def _compaction(event: CompactionChanged | CompactionSummaryText) -> Sequence[acp.SessionUpdate]:
    if isinstance(event, CompactionChanged):
        return compaction_update(event)
    return summary_chunk(event)


def compaction_update(event: CompactionChanged) -> Sequence[acp.SessionUpdate]:
    """Return the state of a compaction; a summary replaces its chunks."""
    return [
        acp.CompactionUpdate(
            compaction_id=event.compaction,
            status=event.status,
            summary=[text(event.summary)] if event.summary else UNSET,
            error=event.error or UNSET,
        )
    ]


def summary_chunk(event: CompactionSummaryText) -> Sequence[acp.SessionUpdate]:
    """Return a piece of the summary."""
    return [acp.CompactionSummaryChunk(compaction_id=event.compaction, content=text(event.text))]
