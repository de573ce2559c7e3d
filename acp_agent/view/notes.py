"""Events that a page tells in a line, and nothing else comes of."""

from __future__ import annotations

from msgspec import Struct, field

from acp_agent import events
from acp_agent.events import Severity
from acp_agent.session.store.records import UnknownEvent
from acp_agent.view.plain import Cleaner


class Said(Struct, frozen=True, kw_only=True):
    """What a note says; the fields are those of `page.Note`."""

    what: str
    values: dict[str, str | int] = field(default_factory=dict)
    text: str = ""
    folded: bool = False
    severity: Severity = "info"


def note_of(event: object, clean: Cleaner) -> Said | None:
    """The note for an event; None where the page has nothing to say of it."""
    match event:
        case events.NoticeShown():
            return Said(
                what="notice",
                values={"title": clean.line(event.title)},
                text=clean.text(event.description),
                severity=event.severity,
            )
        case events.ConfigChanged():
            values: dict[str, str | int] = {
                "option": clean.line(event.option),
                "value": clean.line(event.value),
            }
            return Said(what="option", values=values)
        case events.TitleChanged():
            return Said(what="title", values={"title": clean.line(event.title)})
        case events.DirectoriesChanged():
            folders = ", ".join((event.cwd, *event.directories))
            return Said(what="folders", values={"folders": clean.line(folders)})
        case events.SystemPromptWritten():
            return Said(what="system_prompt", text=clean.text(event.text), folded=True)
        case events.SystemPromptGiven():
            return Said(
                what=f"system_prompt_{event.mode}", text=clean.text(event.text), folded=True
            )
        case events.PromptRepeated():
            return Said(what="round", values={"round": event.round, "rounds": event.rounds})
        case _:
            return _rarer(event, clean)


def _rarer(event: object, clean: Cleaner) -> Said | None:
    match event:
        case events.PlanRemoved():
            return Said(what="plan_removed")
        case events.ContextTrimmed():
            return Said(what="trimmed")
        case events.LoopNoticed():
            return Said(
                what=f"loop_{event.step}",
                values={"rounds": event.rounds},
                text=clean.text(event.note),
                severity="warning",
            )
        case events.SubagentChanged():
            about = (event.title, event.state, event.stop_reason, event.error)
            return Said(
                what="subagent",
                values={
                    "session": clean.line(event.session),
                    "state": clean.line(", ".join(word for word in about if word)),
                },
                text=clean.text(event.description or ""),
                severity="error" if event.error else "info",
            )
        case UnknownEvent():
            return Said(what="unknown", values={"tag": clean.line(event.tag)})
        case _:
            return None


def background_ended(event: events.BackgroundCommandChanged, clean: Cleaner) -> Said:
    """The note for the end of a background command."""
    what = "background_lost" if event.status == "lost" else "background_ended"
    if event.exit_code is not None:
        what = "background_exited"
    values: dict[str, str | int] = {
        "name": clean.line(event.name),
        "code": event.exit_code or 0,
        "signal": clean.line(event.signal or "?"),
    }
    return Said(what=what, values=values)
