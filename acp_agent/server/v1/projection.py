"""Turns a session's events into the updates of version 1, live and in a replay.

Source: Agent Client Protocol v1, SessionUpdate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import UNSET

from acp_agent.config.localization import ENGLISH, Translator, join_sentences
from acp_agent.content import CallContent, Location, TerminalPart, escaped, text_part
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    CompactionChanged,
    CompactionSummaryText,
    ModelAsked,
    NoticeShown,
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
    UsageReported,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, SessionId
from acp_agent.server.conversion import raw_input
from acp_agent.server.handshake import ClientProfile
from acp_agent.server.notices import CUT_CALL, interrupted_note
from acp_agent.server.v1.conversion import to_acp, to_call_content, to_locations
from protocol.v1 import types as acp

TAIL_CHARACTERS = (
    8_000  # characters of a running command's output that a client without live output sees
)


class Projector:
    """Turns one session's own events into updates. Needs every event from the first one on.

    Args:
        client: what the client can show.
        replay: whether the user's prompts are shown; live, the client shows them itself.
    """

    def __init__(
        self, client: ClientProfile, *, replay: bool, translate: Translator = ENGLISH
    ) -> None:
        self._client = client
        self._translate = translate
        self._replay = replay
        self._live_output: dict[CallId, str] = {}
        self._continued: dict[MessageId, MessageId] = {}  # answers shown as a part of another
        self._open_content: dict[CallId, Sequence[CallContent]] = {}  # of calls that have not ended
        self._children: dict[CallId, list[acp.ToolCallContent]] = {}  # references of open calls

        # By type and not by pattern: a replay projects thousands of events.
        self._by_type: dict[type, Callable[[Any], Sequence[acp.SessionUpdate]]] = {
            ModelAsked: self._model_asked,
            AgentText: self._agent_text,
            AgentThought: _thought,
            ToolOutput: self._tool_output,
            UserMessage: self._user_message,
            ToolCalled: self._tool_called,
            ToolStarted: self._tool_started,
            ToolShown: self._tool_shown,
            ToolEnded: self._tool_ended,
            PlanChanged: plan_by_id if client.plans else plan,
            PlanRemoved: plan_by_id if client.plans else plan,
            UsageReported: _usage,
            TitleChanged: _title,
            NoticeShown: self._notice,
            TurnEnded: lambda _: self.cut_off(),  # none is open unless writing failed
            TurnInterrupted: self._turn_interrupted,
            CompactionChanged: self._compaction,
            Rewound: self._rewound,
        }
        if client.compactions:
            self._by_type[CompactionSummaryText] = summary_chunk

    def project(self, event: AnyEvent) -> Sequence[acp.SessionUpdate]:
        """Return the updates that show `event`; none for one that only the journal needs."""
        show = self._by_type.get(type(event))
        if show is None:
            return ()
        if self._translate is not ENGLISH:
            from acp_agent.session.localize import localize  # noqa: PLC0415 - not in English

            event = localize(event, self._translate)
        return show(event)

    def _model_asked(self, event: ModelAsked) -> Sequence[acp.SessionUpdate]:
        if event.continues is not None:
            self._continued[event.message] = event.continues
        return ()

    def _agent_text(self, event: AgentText) -> Sequence[acp.SessionUpdate]:
        message = self._continued.get(event.message, event.message)
        return [acp.AgentMessageChunk(content=_text(event.text), message_id=message)]

    def _user_message(self, event: UserMessage) -> Sequence[acp.SessionUpdate]:
        if not self._replay:
            return []
        return [
            acp.UserMessageChunk(content=to_acp(block), message_id=event.message)
            for block in event.content
        ]

    def _tool_called(self, event: ToolCalled) -> Sequence[acp.SessionUpdate]:
        self._open_content[event.call] = event.content
        return [
            acp.ToolCall(
                tool_call_id=event.call,
                title=event.title,
                name=event.name,
                kind=event.kind,
                status="pending",
                content=to_call_content(event.content),
                locations=to_locations(event.locations),
                raw_input=raw_input(event.arguments),
            )
        ]

    def _tool_shown(self, event: ToolShown) -> Sequence[acp.SessionUpdate]:
        if event.call not in self._open_content:
            return ()
        if event.content is not None:
            self._open_content[event.call] = event.content
        return [
            _update(
                event.call,
                title=event.title,
                content=self._content(event.call, event.content),
                locations=event.locations,
            )
        ]

    def refer(self, call: CallId, child: SessionId) -> Sequence[acp.SessionUpdate]:
        """Show a reference to a child session in an open call; the client knows children."""
        if call not in self._open_content:
            return ()
        self._children.setdefault(call, []).append(acp.SessionReference(session_id=child))
        return [_update(call, content=self._content(call, self._open_content[call]))]

    def _content(
        self, call: CallId, content: Sequence[CallContent] | None
    ) -> list[acp.ToolCallContent] | None:
        """Return a call's content with its references to children; None stays unchanged."""
        if content is None:
            return None
        return [*to_call_content(content), *self._children.get(call, ())]

    def _tool_started(self, event: ToolStarted) -> Sequence[acp.SessionUpdate]:
        if event.call not in self._open_content:
            return ()  # the id is damaged, here or in the call
        if event.cwd is not None:
            self._live_output[event.call] = ""
        if event.cwd is None or not self._client.terminal_output:
            return [_update(event.call, status="in_progress")]
        return [
            _update(
                event.call,
                status="in_progress",
                content=[acp.Terminal(terminal_id=event.call)],
                meta={"terminal_info": {"terminal_id": event.call, "cwd": event.cwd}},
            )
        ]

    def _tool_output(self, event: ToolOutput) -> Sequence[acp.SessionUpdate]:
        if event.call not in self._live_output:
            return ()  # the command runs in the background; an ended call takes no output
        if self._client.terminal_output:
            data = {"terminal_id": event.call, "data": event.text}
            return [_update(event.call, meta={"terminal_output": data})]
        tail = (self._live_output[event.call] + event.text)[-TAIL_CHARACTERS:]
        self._live_output[event.call] = tail
        return [_update(event.call, content=to_call_content([text_part(_console(tail))]))]

    def _tool_ended(self, event: ToolEnded) -> Sequence[acp.SessionUpdate]:
        if self._open_content.pop(event.call, None) is None:
            return ()
        ran_command = self._live_output.pop(event.call, None) is not None
        meta = None
        content = self._content(event.call, event.content)
        self._children.pop(event.call, None)
        if ran_command and self._client.terminal_output:
            # The client has the whole output in the terminal, which stays as the content.
            ended_by_itself = event.exit_code is not None or event.signal is not None
            if content is None or (ended_by_itself and len(content) == 1):
                content = None
            elif ended_by_itself:  # more than its output
                content = [acp.Terminal(terminal_id=event.call), *content[1:]]
            else:  # the terminal does not show the reason
                content = [acp.Terminal(terminal_id=event.call), *content]
            meta = _terminal_exit(event.call, event.exit_code, event.signal)
        return [
            _update(
                event.call,
                status="failed" if event.failed else "completed",
                content=content,
                locations=event.locations,
                raw_output=event.raw_output,
                meta=meta,
            )
        ]

    def _notice(self, event: NoticeShown) -> Sequence[acp.SessionUpdate]:
        if event.message is not None and not self._client.notices:
            text = _text(f"_{event.title} {event.description}_")
            return [acp.AgentMessageChunk(content=text, message_id=event.message)]
        return [self._note(event.severity, event.title, event.description)]

    def _note(self, severity: str, title: str, description: str) -> acp.SessionUpdate:
        if self._client.notices:
            return acp.Notice(severity=severity, title=title, description=description or None)
        text = join_sentences(title, description)
        return acp.AgentThoughtChunk(content=_text(f"\n\n_{text}_\n\n"))

    def _compaction(self, event: CompactionChanged) -> Sequence[acp.SessionUpdate]:
        if self._client.compactions:
            return [compaction_update(event)]
        line = compaction_line(event, self._translate, live=not self._replay)
        return [] if line is None else [self._note("info", line, "")]

    def _rewound(self, event: Rewound) -> Sequence[acp.SessionUpdate]:
        if not (event.in_turn or self._replay or self._client.notices):
            return []  # between turns only notices may be shown; the requester has the response
        from acp_agent.server.notices import rewound_note  # noqa: PLC0415 - rare

        return [self._note("info", *rewound_note(event, self._translate))]

    def _turn_interrupted(self, event: TurnInterrupted) -> Sequence[acp.SessionUpdate]:
        updates = self.cut_off()
        title, text = interrupted_note(self._translate)
        if self._client.notices:
            updates.append(self._note("warning", title, text))
        else:
            note = f"_{title} {text}_"
            updates.append(acp.AgentMessageChunk(content=_text(note), message_id=event.message))
        return updates

    def cut_off(self) -> list[acp.SessionUpdate]:
        """Return the updates that end the open calls."""
        return [self.cut(call) for call in tuple(self._open_content)]

    def cut(self, call: CallId) -> acp.SessionUpdate:
        """Show that a call was cut off with its turn. Its content and output stay.

        The editor's own terminals are gone.
        """
        reason = to_call_content([text_part(self._translate(CUT_CALL))])
        before = self._open_content.pop(call, ())
        output = self._live_output.pop(call, None)
        if output is None:
            content_before = to_call_content(
                [part for part in before if not isinstance(part, TerminalPart)]
            )
            children = self._children.pop(call, ())
            return _update(call, status="failed", content=[*content_before, *children, *reason])
        if self._client.terminal_output:
            return _update(
                call,
                status="failed",
                content=[acp.Terminal(terminal_id=call), *reason],
                meta=_terminal_exit(call, None, None),
            )
        output_content = to_call_content([text_part(_console(output))]) if output else []
        return _update(call, status="failed", content=[*output_content, *reason])


def _text(text: str) -> acp.TextContent:
    return acp.TextContent(text=text)


def _thought(event: AgentThought) -> Sequence[acp.SessionUpdate]:
    # Its own id: a client that joins chunks by id must not mix thoughts into the answer.
    thought = f"{event.message}_thought"
    return [acp.AgentThoughtChunk(content=_text(event.text), message_id=thought)]


def _title(event: TitleChanged) -> Sequence[acp.SessionUpdate]:
    return [acp.SessionInfoUpdate(title=event.title)]


def _console(text: str) -> str:
    text = escaped(text)
    fence = "```"
    while fence in text:
        fence += "`"
    newline = "" if text.endswith("\n") else "\n"
    return f"{fence}console\n{text}{newline}{fence}"


def _terminal_exit(call: CallId, exit_code: int | None, signal: str | None) -> dict[str, Any]:
    exit_data = {"terminal_id": call, "exit_code": exit_code, "signal": signal}
    return {"terminal_exit": exit_data}


def _update(
    call: CallId,
    *,
    status: acp.ToolCallStatus | None = None,
    title: str | None = None,
    content: Sequence[acp.ToolCallContent] | None = None,
    locations: Sequence[Location] | None = None,
    raw_output: Any = None,
    meta: dict[str, Any] | None = None,
) -> acp.ToolCallProgress:
    """Return an update of a call; fields that are None stay unchanged."""
    return acp.ToolCallProgress(
        tool_call_id=call,
        status=UNSET if status is None else status,
        title=UNSET if title is None else title,
        content=UNSET if content is None else content,
        locations=UNSET if locations is None else to_locations(locations),
        raw_output=UNSET if raw_output is None else raw_output,
        meta=meta,
    )


def _usage(event: UsageReported) -> Sequence[acp.SessionUpdate]:
    cost = None if event.cost is None else acp.Cost(amount=event.cost, currency=event.currency)
    return [acp.UsageUpdate(used=event.used, size=event.size, cost=cost)]


def plan(event: PlanChanged | PlanRemoved) -> Sequence[acp.SessionUpdate]:
    """Return the one plan of a session, empty if it was removed (v1, Agent Plan)."""
    return [acp.Plan(entries=_entries(event) if isinstance(event, PlanChanged) else [])]


def plan_by_id(event: PlanChanged | PlanRemoved) -> Sequence[acp.SessionUpdate]:
    """Return a plan for a client that advertises `plan` (v1, PlanUpdate, PlanRemoved)."""
    if isinstance(event, PlanRemoved):
        return [acp.PlanRemoved(plan_id=event.plan_id)]
    return [acp.PlanUpdate(plan=acp.PlanItems(plan_id=event.plan_id, entries=_entries(event)))]


def _entries(event: PlanChanged) -> list[acp.PlanEntry]:
    return [
        acp.PlanEntry(content=entry.content, priority=entry.priority, status=entry.status)
        for entry in event.entries
    ]


def compaction_update(event: CompactionChanged) -> acp.CompactionUpdate:
    """Return the state of a compaction (v1, CompactionUpdate)."""
    return acp.CompactionUpdate(
        compaction_id=event.compaction,
        status=event.status,
        summary=[acp.TextContent(text=event.summary)] if event.summary else UNSET,
        error=event.error or UNSET,
    )


def compaction_line(event: CompactionChanged, translate: Translator, *, live: bool) -> str | None:
    """Return a line about a compaction for a client that shows none; None without news.

    Live, the start is shown too, as a compaction may take a minute or more.
    """
    match event.status:
        case "in_progress" if live:
            return translate("Summarising earlier parts of the conversation for the model …")
        case "completed":
            return translate("Earlier parts of the conversation were summarised for the model.")
        case "failed":
            line = translate(
                "Earlier parts of the conversation could not be summarised for the model."
            )
            return f"{line} {event.error}".strip()
        case _:
            return None


def summary_chunk(event: CompactionSummaryText) -> Sequence[acp.SessionUpdate]:
    """Return a piece of the summary (v1, CompactionSummaryChunk)."""
    return [
        acp.CompactionSummaryChunk(
            compaction_id=event.compaction, content=acp.TextContent(text=event.text)
        )
    ]
