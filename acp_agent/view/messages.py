"""The messages of a page: messages between sessions, notes, and answers of models."""

from __future__ import annotations

from collections.abc import Callable

from acp_agent import events
from acp_agent.content import TextBlock
from acp_agent.session.store.records import UnknownEvent
from acp_agent.view.blocks import TextCleaner
from acp_agent.view.page import AgentMessage, AgentThought, Note, Request
from acp_agent.view.sections import Anchors, Sections


class SessionMessages:
    """The messages between a session and others. Call `finish` after the last event.

    Args:
        about: called with each session that a note is about.
    """

    def __init__(
        self,
        clean: TextCleaner,
        add_note: Callable[[Note], Note],
        about: Callable[[str, Note], None],
    ) -> None:
        """Create the object without messages."""
        self._clean, self._add_note, self._about = clean, add_note, about
        self._entries: dict[str, tuple[Note, list[str]]] = {}

    def on_message(self, event: events.SessionMessageSent) -> None:
        """Add a sent message, or update it."""
        entry = self._entries.get(event.message)
        if entry is None:
            note = Note(key="session_message", values={"sender": "?", "recipient": "?"})
            entry = self._entries[event.message] = self._add_note(note), []
        note, pieces = entry
        for side, session in (("sender", event.sender), ("recipient", event.recipient)):
            if session is not None:
                note.values[side] = self._clean.line(session)
                self._about(session, note)
        if event.content is not None:
            pieces[:] = [block.text for block in event.content if isinstance(block, TextBlock)]

    def on_text(self, event: events.SessionMessageText) -> None:
        """Add a piece of a message's text."""
        entry = self._entries.get(event.message)
        if entry is not None:
            entry[1].append(event.text)

    def finish(self) -> None:
        """Set the texts of the notes."""
        for note, pieces in self._entries.values():
            note.text = self._clean.text("".join(pieces))


def make_note(event: object, clean: TextCleaner) -> Note | None:
    """Return the note for an event, without anchor and time; None if the page shows none."""
    match event:
        case events.NoticeShown():
            return Note(
                key="notice",
                values={"title": clean.line(event.title)},
                text=clean.text(event.description),
                severity=event.severity,
            )
        case events.ConfigChanged():
            values: dict[str, str | int] = {
                "option": clean.line(event.option),
                "value": clean.line(event.value),
            }
            return Note(key="option", values=values)
        case events.TitleChanged():
            return Note(key="title", values={"title": clean.line(event.title)})
        case events.DirectoriesChanged():
            folders = ", ".join((event.cwd, *event.directories))
            return Note(key="folders", values={"folders": clean.line(folders)})
        case events.SystemPromptWritten():
            return Note(key="system_prompt", text=clean.text(event.text), folded=True)
        case events.SystemPromptGiven():
            return Note(key=f"system_prompt_{event.mode}", text=clean.text(event.text), folded=True)
        case events.PromptRepeated():
            values = {"round": event.round, "rounds": event.rounds}
            return Note(key="round" if event.rounds else "step", values=values)
        case _:
            return _rare_note(event, clean)


def _rare_note(event: object, clean: TextCleaner) -> Note | None:
    match event:
        case events.PlanRemoved():
            return Note(key="plan_removed")
        case events.ContextTrimmed():
            return Note(key="trimmed")
        case events.LoopNoticed():
            return Note(
                key=f"loop_{event.step}",
                values={"rounds": event.rounds},
                text=clean.text(event.note),
                severity="warning",
            )
        case events.SubagentChanged():
            about = (event.title, event.state, event.stop_reason, event.error)
            return Note(
                key="subagent",
                values={
                    "session": clean.line(event.session),
                    "state": clean.line(", ".join(word for word in about if word)),
                },
                text=clean.text(event.description or ""),
                severity="error" if event.error else "info",
            )
        case UnknownEvent():
            return Note(key="unknown", values={"tag": clean.line(event.tag)})
        case _:
            return None


def background_ended(event: events.BackgroundCommandChanged, clean: TextCleaner) -> Note:
    """Return the note for the end of a background command."""
    key = "background_lost" if event.status == "lost" else "background_ended"
    if event.exit_code is not None:
        key = "background_exited"
    values: dict[str, str | int] = {
        "name": clean.line(event.name),
        "code": event.exit_code or 0,
        "signal": clean.line(event.signal or "?"),
    }
    return Note(key=key, values=values)


class Answers:
    """The requests and answers of a session. Call `finish` after the last event."""

    def __init__(self, sections: Sections, anchors: Anchors, clean: TextCleaner) -> None:
        """Create the object without answers."""
        self._sections, self._anchors, self._clean = sections, anchors, clean
        self._pieces: list[tuple[AgentMessage | AgentThought, list[str]]] = []
        self._answers: dict[str, list[AgentMessage]] = {}  # incomplete answers
        self._requests: dict[str, Request] = {}
        self._model = ""  # of the last answer

    def on_request(self, event: events.ModelAsked) -> None:
        """Begin a request to a model."""
        sections = self._sections
        request = Request(model=self._clean.line(event.model), asked=sections.at)
        sections.current.requests.append(request)
        sections.clock.begin_span("model", event.message, sections.at)
        self._requests[event.message] = request

    def on_text(self, event: events.AgentText | events.AgentThought) -> None:
        """Add a piece of an answer or of reasoning."""
        kind = AgentMessage if isinstance(event, events.AgentText) else AgentThought
        steps = self._sections.current.steps
        last = steps[-1] if steps else None
        goes_on = (
            isinstance(last, AgentMessage | AgentThought)
            and type(last) is kind
            and last.message == event.message
        )
        if not goes_on:
            self._begin_step(kind, event.message)
        self._pieces[-1][1].append(event.text)

    def on_answer(self, event: events.ModelAnswered) -> None:
        """End an answer, which is complete or was cut off."""
        steps = self._answers.pop(event.message, ())
        if not event.model:  # a message by the agent itself
            for step in steps:
                step.by_agent = True
            return
        sections = self._sections
        request = self._requests.get(event.message)
        if request is None:  # a request outside the conversation
            request = Request(model="")
            sections.current.requests.append(request)
        request.model, request.answered = self._clean.line(event.model), sections.at
        request.usage, request.cost = event.usage, event.cost
        request.complete, request.discarded = event.complete, event.discarded
        sections.clock.end_span("model", event.message, sections.at)
        for step in steps:
            step.discarded = event.discarded
            step.incomplete = not event.complete and not event.discarded

    def finish(self) -> None:
        """Set the texts of the steps, from joined pieces: a secret may be split between two."""
        for step, pieces in self._pieces:
            step.text = self._clean.text("".join(pieces).strip("\n"))

    def _begin_step(self, kind: type[AgentMessage | AgentThought], message: str) -> None:
        anchor = self._anchors.for_id(message)
        step = kind(anchor=anchor, at=self._sections.at, text="", message=message)
        if isinstance(step, AgentMessage):
            self._answers.setdefault(message, []).append(step)
            request = self._requests.get(message)
            if request is not None and request.model != self._model:
                step.model = self._model = request.model
        self._pieces.append((step, []))
        self._sections.add(step)
