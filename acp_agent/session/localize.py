"""Translate this program's texts in events into the user's language.

The journal has these texts in English. Texts of the user, a model or a server are not translated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

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
    localizer = _BY_TYPE.get(type(event))
    return event if localizer is None else localizer(event, translate)


def localize_title(title: str, translate: Translator) -> str:
    """Return a call's title in the user's language; a command line is not translated."""
    return title if title.startswith("`") else translate.rendered_title(title)


def _localize_call(event: ToolCalled, translate: Translator) -> ToolCalled:
    if event.name == _QUESTION_TOOL:
        return event
    return msgspec.structs.replace(event, title=localize_title(event.title, translate))


def _localize_call_change(event: ToolShown, translate: Translator) -> ToolShown:
    if event.title is None:
        return event
    return msgspec.structs.replace(event, title=localize_title(event.title, translate))


def _localize_call_end(event: ToolEnded, translate: Translator) -> ToolEnded:
    """Translate the reason why a call did not run; other results are not our texts."""
    if not event.failed or event.content is None or len(event.content) != 1:
        return event
    part = event.content[0]
    if not (isinstance(part, ContentPart) and isinstance(part.content, TextBlock)):
        return event
    return msgspec.structs.replace(
        event, content=(text_part(translate.rendered(part.content.text)),)
    )


def _localize_notice(event: NoticeShown, translate: Translator) -> NoticeShown:
    return msgspec.structs.replace(
        event,
        title=translate.rendered(event.title),
        description=translate.rendered(event.description),
    )


def _localize_decision(event: PermissionDecided, translate: Translator) -> PermissionDecided:
    return msgspec.structs.replace(event, why=translate.rendered(event.why))


def _localize_error(
    event: CompactionChanged | TurnEnded | SubagentChanged, translate: Translator
) -> CompactionChanged | TurnEnded | SubagentChanged:
    return (
        msgspec.structs.replace(event, error=translate.rendered(event.error))
        if event.error
        else event
    )


def _localize_child_event(event: ChildWorked, translate: Translator) -> ChildWorked:
    child_event = localize(event.did, translate)
    return event if child_event is event.did else msgspec.structs.replace(event, did=child_event)


_BY_TYPE: Mapping[type, Callable[[Any, Translator], AnyEvent]] = {
    ToolCalled: _localize_call,
    ToolShown: _localize_call_change,
    ToolEnded: _localize_call_end,
    NoticeShown: _localize_notice,
    PermissionDecided: _localize_decision,
    CompactionChanged: _localize_error,
    TurnEnded: _localize_error,
    SubagentChanged: _localize_error,
    ChildWorked: _localize_child_event,
}
