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

_ASKS = "ask_user"  # a tool; the titles of its calls are the model's questions


def localize(event: AnyEvent, translate: Translator) -> AnyEvent:
    """Return the event with this program's texts in the user's language."""
    if translate is ENGLISH:
        return event
    localize_one = _BY_TYPE.get(type(event))
    return event if localize_one is None else localize_one(event, translate)


def localized_title(title: str, translate: Translator) -> str:
    """Return a call's title in the user's language; a command line is not translated."""
    return title if title.startswith("`") else translate.rendered_title(title)


def _titled(event: ToolCalled, translate: Translator) -> ToolCalled:
    if event.name == _ASKS:
        return event
    return msgspec.structs.replace(event, title=localized_title(event.title, translate))


def _retitled(event: ToolShown, translate: Translator) -> ToolShown:
    if event.title is None:
        return event
    return msgspec.structs.replace(event, title=localized_title(event.title, translate))


def _ended(event: ToolEnded, translate: Translator) -> ToolEnded:
    """Translate the reason why a call did not run; other results are not our texts."""
    if not event.failed or event.content is None or len(event.content) != 1:
        return event
    part = event.content[0]
    if not (isinstance(part, ContentPart) and isinstance(part.content, TextBlock)):
        return event
    return msgspec.structs.replace(
        event, content=(text_part(translate.rendered(part.content.text)),)
    )


def _notice(event: NoticeShown, translate: Translator) -> NoticeShown:
    return msgspec.structs.replace(
        event,
        title=translate.rendered(event.title),
        description=translate.rendered(event.description),
    )


def _decided(event: PermissionDecided, translate: Translator) -> PermissionDecided:
    return msgspec.structs.replace(event, why=translate.rendered(event.why))


def _with_error(
    event: CompactionChanged | TurnEnded | SubagentChanged, translate: Translator
) -> CompactionChanged | TurnEnded | SubagentChanged:
    return (
        msgspec.structs.replace(event, error=translate.rendered(event.error))
        if event.error
        else event
    )


def _of_a_child(event: ChildWorked, translate: Translator) -> ChildWorked:
    did = localize(event.did, translate)
    return event if did is event.did else msgspec.structs.replace(event, did=did)


_BY_TYPE: Mapping[type, Callable[[Any, Translator], AnyEvent]] = {
    ToolCalled: _titled,
    ToolShown: _retitled,
    ToolEnded: _ended,
    NoticeShown: _notice,
    PermissionDecided: _decided,
    CompactionChanged: _with_error,
    TurnEnded: _with_error,
    SubagentChanged: _with_error,
    ChildWorked: _of_a_child,
}
