"""Convert the events of a session to the data of its page; a pure function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from acp_agent import events
from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.ids import CallId, is_rewind_id
from acp_agent.session.localize import localize
from acp_agent.session.store.records import SessionRecord, StoredEvent, UnknownEvent
from acp_agent.view.blocks import TextCleaner, blocks
from acp_agent.view.calls import Calls
from acp_agent.view.messages import Answers, SessionMessages, background_ended, make_note
from acp_agent.view.page import (
    Block,
    Call,
    Child,
    Compaction,
    Note,
    Page,
    Plan,
    Rewind,
    Section,
    Spend,
    UserMessage,
)
from acp_agent.view.sections import Anchors, Sections, sum_times

TITLE_LENGTH: Final = 120  # characters of a turn's title


def read_page(
    record: SessionRecord,
    stored: Sequence[StoredEvent],
    *,
    secrets: Sequence[str],
    translate: Translator = ENGLISH,
) -> Page:
    """Return the data of a session's page.

    Args:
        record: the session.
        secrets: values that the page must not contain.
        translate: translates our own texts in the journal for the reader.
    """
    reader = _Reader(TextCleaner(secrets), Anchors())
    for item in stored:
        if isinstance(item.event, UnknownEvent):
            reader.read(item)
        else:
            reader.read(StoredEvent(item.seq, item.at, localize(item.event, translate)))
    return reader.page(record)


class _Reader:
    """Reads the events of a session, or of a child session of `parent`, once."""

    def __init__(
        self, clean: TextCleaner, anchors: Anchors, parent: Sections | None = None
    ) -> None:
        self._clean = clean
        self._anchors = anchors
        self._is_child = parent is not None
        self._sections = Sections(anchors, parent)
        self._answers = Answers(self._sections, self._anchors, self._clean)
        self._calls = Calls(self._clean)
        self._compactions: dict[str, tuple[Compaction, list[str]]] = {}
        self._children = _Children(clean, self._child_reader)
        self._messages = SessionMessages(clean, self._note, self._children.note_about)
        self._source = ""
        # Dispatch by type, not by pattern, because there are thousands of events.
        self._by_type: dict[type, Callable[[Any], None]] = {
            events.TurnStarted: self._sections.begin_turn,
            events.TurnEnded: self._turn_ended,
            events.TurnInterrupted: self._interrupted,
            events.UserMessage: self._user,
            events.ModelAsked: self._answers.on_request,
            events.ModelAnswered: self._answers.on_answer,
            events.AgentText: self._answers.on_text,
            events.AgentThought: self._answers.on_text,
            events.ToolCalled: self._called,
            events.ToolStarted: self._started,
            events.ToolOutput: self._calls.on_output,
            events.ToolShown: self._calls.on_change,
            events.ToolEnded: self._ended,
            events.BackgroundCommandChanged: self._background,
            events.PermissionAsked: self._permission_asked,
            events.PermissionDecided: self._permission_decided,
            events.PlanChanged: self._plan,
            events.UsageReported: self._usage,
            events.CompactionChanged: self._compaction,
            events.CompactionSummaryText: self._summary,
            events.PicturesDescribed: self._described,
            events.Rewound: self._rewound,
            events.SessionForked: self._forked,
            events.ChildWorked: self._child_worked,
            events.SubagentChanged: self._child_changed,
            events.SessionMessageSent: self._messages.on_message,
            events.SessionMessageText: self._messages.on_text,
        }

    def read(self, item: StoredEvent) -> None:
        """Read the next event."""
        self._sections.advance(item)
        handle = self._by_type.get(type(item.event))
        if handle is not None:
            handle(item.event)
        elif (note := make_note(item.event, self._clean)) is not None:
            self._note(note)

    def step(self, call: CallId) -> Call | None:
        """Return the step of a call in the session or its children; None if there is none."""
        return self._calls.step(call) or self._children.step(call)

    def page(self, record: SessionRecord) -> Page:
        """Return the page of all events read."""
        sections, clean, spend = self.finish(), self._clean, Spend()
        for section in sections:
            spend.add(section.spend)
        models = dict.fromkeys(r.model for s in sections for r in s.all_requests() if r.usage)
        times = [s.times for s in sections if s.times is not None and s.number is not None]
        return Page(
            session=clean.line(record.id),
            title=clean.line(record.title or ""),
            cwd=clean.line(record.cwd),
            directories=[clean.line(folder) for folder in record.directories],
            forked_from=self._source,
            created_at=record.created_at,
            updated_at=record.updated_at,
            models=list(models),
            sections=sections,
            spend=spend,
            times=sum_times(times, record.created_at, record.updated_at),
            omitted=clean.omitted,
        )

    def finish(self) -> list[Section]:
        """Return the sections of all events read."""
        self._children.finish()
        self._calls.finish()
        self._answers.finish()
        for compaction, pieces in self._compactions.values():
            compaction.summary = self._clean.text(compaction.summary or "".join(pieces))
            compaction.keeps = self._anchors.find(compaction.keeps)
        self._messages.finish()
        return self._sections.finish()

    # -- turns

    def _turn_ended(self, event: events.TurnEnded) -> None:
        outcome = "error" if event.error else event.stop_reason or "end_turn"
        self._sections.end_turn(outcome, self._clean.text(event.error))

    def _interrupted(self, event: events.TurnInterrupted) -> None:
        self._calls.on_interruption(event)
        self._sections.interrupt(event)

    def _usage(self, event: events.UsageReported) -> None:
        section = self._sections.current
        section.context_used, section.context_size = event.used, event.size

    # -- steps

    def _note(self, note: Note, *, link: str = "") -> Note:
        """Add a note to the page at the current event."""
        note.anchor, note.at = self._anchors.for_event(self._sections.seq), self._sections.at
        note.link = link
        self._sections.add(note)
        return note

    def _user(self, event: events.UserMessage) -> None:
        section, clean = self._sections.current, self._clean
        if event.local and not event.steering:
            section.local = True
        message = UserMessage(
            anchor=self._anchors.for_id(event.message),
            at=self._sections.at,
            blocks=blocks(event.content, clean),
            steering=event.steering,
            task=self._is_child,
            attached=clean.text(event.attached),
        )
        if not section.title:
            section.title = _title(message.blocks)
        self._sections.add(message, event.message)

    def _plan(self, event: events.PlanChanged) -> None:
        clean = self._clean
        entries = [
            events.PlanEntry(
                content=clean.line(entry.content), priority=entry.priority, status=entry.status
            )
            for entry in event.entries
        ]
        anchor = self._anchors.for_event(self._sections.seq)
        self._sections.add(Plan(anchor=anchor, at=self._sections.at, entries=entries))

    # -- calls

    def _called(self, event: events.ToolCalled) -> None:
        anchor = self._anchors.for_id(event.call)
        self._sections.add(self._calls.on_call(event, self._sections.at, anchor))

    def _started(self, event: events.ToolStarted) -> None:
        self._calls.on_start(event, self._sections.at)
        self._sections.clock.begin_span("tools", event.call, self._sections.at)

    def _ended(self, event: events.ToolEnded) -> None:
        self._calls.on_end(event, self._sections.at)
        self._sections.clock.end_span("tools", event.call, self._sections.at)

    def _background(self, event: events.BackgroundCommandChanged) -> None:
        self._calls.on_background(event)
        if event.status != "running":
            self._note(background_ended(event, self._clean), link=self._anchors.find(event.call))

    def _permission_asked(self, event: events.PermissionAsked) -> None:
        self._calls.on_question(event, self._sections.at)
        self._sections.clock.begin_span("user", event.call, self._sections.at)

    def _permission_decided(self, event: events.PermissionDecided) -> None:
        self._calls.on_decision(event, self._sections.at)
        self._sections.clock.end_span("user", event.call, self._sections.at)

    # -- changes of the conversation

    def _compaction(self, event: events.CompactionChanged) -> None:
        at, entry = self._sections.at, self._compactions.get(event.compaction)
        if entry is None:
            anchor = self._anchors.for_id(event.compaction)
            entry = Compaction(anchor=anchor, at=at, status=event.status), []
            self._compactions[event.compaction] = entry
            self._sections.add(entry[0])
        step = entry[0]
        step.status, step.error = event.status, self._clean.text(event.error)
        step.summary = event.summary
        step.keeps = event.keep_from or ""
        if event.status == "in_progress":
            self._sections.clock.begin_span("model", event.compaction, at)
        else:
            step.ended = at
            self._sections.clock.end_span("model", event.compaction, at)

    def _summary(self, event: events.CompactionSummaryText) -> None:
        entry = self._compactions.get(event.compaction)
        if entry is not None:
            entry[1].append(event.text)

    def _rewound(self, event: events.Rewound) -> None:
        self._sections.rewind(event)
        step = Rewind(
            anchor=self._anchors.for_id(event.rewind),
            at=self._sections.at,
            title=self._clean.line(event.title),
            target=self._anchors.find(event.to),
            undoes=is_rewind_id(event.to),
            conversation=event.conversation,
            keeps_words=event.keeps_words,
            files=bool(event.replaced),
            changed=event.changed,
        )
        self._sections.add(step)

    def _forked(self, event: events.SessionForked) -> None:
        self._source = self._clean.line(event.source)
        self._note(Note(key="forked", values={"source": self._source}))

    def _described(self, event: events.PicturesDescribed) -> None:
        if self._calls.on_description(event):
            return
        note = Note(
            key="pictures",
            values={"model": self._clean.line(event.model)},
            text=self._clean.text(event.text),
        )
        self._note(note, link=self._anchors.find(event.of))

    # -- child sessions

    def _child_reader(self) -> _Reader:
        return _Reader(self._clean, self._anchors, self._sections)

    def _child_worked(self, event: events.ChildWorked) -> None:
        reader = self._children.reader(event, self.step(event.call))
        reader.read(StoredEvent(self._sections.seq, self._sections.at, event.did))

    def _child_changed(self, event: events.SubagentChanged) -> None:
        note = make_note(event, self._clean)
        assert note is not None
        self._children.changed(event, self._note(note))


def _title(content: Sequence[Block]) -> str:
    words = " ".join(" ".join(block.text or block.label for block in content).split())
    return words if len(words) <= TITLE_LENGTH else f"{words[: TITLE_LENGTH - 1]}…"


class _Children:
    """The child sessions of a session. Call `finish` after the last event."""

    def __init__(self, clean: TextCleaner, new_reader: Callable[[], _Reader]) -> None:
        """Create the object without children.

        Args:
            clean: prepares the titles for the page.
            new_reader: returns a reader for the events of a child.
        """
        self._clean, self._new_reader = clean, new_reader
        self._entries: dict[tuple[str, str], tuple[Child, _Reader]] = {}
        self._titles: dict[str, str] = {}
        self._notes: list[tuple[str, Note]] = []

    def reader(self, event: events.ChildWorked, call: Call | None) -> _Reader:
        """Return the reader of a child's events; `call` gets the steps of the child."""
        key = event.call, event.session
        if key not in self._entries:
            child = Child(session=self._clean.line(event.session))
            self._entries[key] = child, self._new_reader()
            if call is not None:
                call.children.append(child)
        return self._entries[key][1]

    def step(self, call: CallId) -> Call | None:
        """Return the step of a call that a child made; another child may work for it."""
        steps = (reader.step(call) for _, reader in self._entries.values())
        return next((step for step in steps if step is not None), None)

    def changed(self, event: events.SubagentChanged, note: Note) -> None:
        """Record that a child began or changed; `note` describes the change."""
        if event.title:
            self._titles[event.session] = self._clean.line(event.title)
        self.note_about(event.session, note)

    def note_about(self, session: str, note: Note) -> None:
        """Record a note about a child; `finish` hides it if the page shows the child."""
        self._notes.append((session, note))

    def finish(self) -> None:
        """Add the children's steps to the page."""
        for (_, session), (child, reader) in self._entries.items():
            child.title = self._titles.get(session, "")
            for section in reader.finish():
                child.steps += section.steps
                child.requests += section.requests
                child.spend.add(section.spend)
                if section.number is not None:
                    child.outcome, child.error = section.outcome, section.error
        visible = {session for _, session in self._entries}
        for session, note in self._notes:
            if session in visible:
                note.key = ""
