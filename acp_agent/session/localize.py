"""Translate this program's texts in events into the user's language.

The journal has these texts in English. Texts of the user, a model or a server are not translated.
"""

from __future__ import annotations

from msgspec.structs import replace

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.content import ContentPart, TextBlock, text_part
from acp_agent.events import (
    AnyEvent,
    ChildWorked,
    CompactionChanged,
    NoticeShown,
    PermissionDecided,
    SubagentChanged,
    ToolCalled,
    ToolEnded,
    ToolShown,
    TurnEnded,
)

_QUESTION_TOOL = "ask_user"  # a tool; the titles of its calls are the model's questions


def localize(event: AnyEvent, translate: Translator) -> AnyEvent:
    """Return the event with this program's texts in the user's language."""
    if translate is ENGLISH:
        return event
    match event:
        case ToolCalled() if event.name != _QUESTION_TOOL:
            return replace(event, title=localize_title(event.title, translate))
        case ToolShown(title=str(title)):
            return replace(event, title=localize_title(title, translate))
        case ToolEnded(failed=True, content=(ContentPart(content=TextBlock(text=text)),)):
            # The reason why a call did not run; other results are not our texts.
            return replace(event, content=(text_part(translate.rendered(text)),))
        case NoticeShown():
            title, description = map(translate.rendered, (event.title, event.description))
            return replace(event, title=title, description=description)
        case PermissionDecided():
            return replace(event, why=translate.rendered(event.why))
        case CompactionChanged() | TurnEnded() | SubagentChanged() if event.error:
            return replace(event, error=translate.rendered(event.error))
        case ChildWorked():
            did = localize(event.did, translate)
            return event if did is event.did else replace(event, did=did)
        case _:
            return event


def localize_title(title: str, translate: Translator) -> str:
    """Return a call's title in the user's language; a command line is not translated."""
    return title if title.startswith("`") else translate.rendered_title(title)
