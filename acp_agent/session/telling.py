"""Events as they are shown: what the journal has of our own texts, in the user's language.

The journal keeps them in English, whoever reads them later, so that they are said in the same words
live and in a replay. What the user, a model or a server wrote stays as it is.
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

_ASKS = "ask_user"  # whose titles are the model's questions


def told(event: AnyEvent, translate: Translator) -> AnyEvent:
    """The event with its texts of ours in the user's language; itself where it has none."""
    if translate is ENGLISH:
        return event
    tell = _BY_TYPE.get(type(event))
    return event if tell is None else tell(event, translate)


def title_in(title: str, translate: Translator) -> str:
    """A call's title in the user's language; a command line stays what it is."""
    return title if title.startswith("`") else translate.rendered_title(title)


def _titled(event: ToolCalled, translate: Translator) -> ToolCalled:
    if event.name == _ASKS:
        return event
    return msgspec.structs.replace(event, title=title_in(event.title, translate))


def _retitled(event: ToolShown, translate: Translator) -> ToolShown:
    if event.title is None:
        return event
    return msgspec.structs.replace(event, title=title_in(event.title, translate))


def _ended(event: ToolEnded, translate: Translator) -> ToolEnded:
    """Why a call did not run; what it gave is none of our texts."""
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
    did = told(event.did, translate)
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
