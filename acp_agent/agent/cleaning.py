"""Takes secrets out of what a call shows, before it is journaled, shown or sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from acp_agent.content import CallContent, ContentPart, DiffPart, JsonObject, TextBlock, escaped
from acp_agent.events import (
    AnyEvent,
    ChildWorked,
    NoticeShown,
    PermissionDecided,
    PlanChanged,
    SubagentChanged,
    ToolCalled,
    ToolShown,
)
from acp_agent.workspace.scrub import scrub, scrub_known


def clean_content(
    content: tuple[CallContent, ...] | None, secrets: Sequence[str]
) -> tuple[CallContent, ...] | None:
    """Content whose texts have no secret in them.

    Diffs are the file that the user reviews, so only values that are known are taken out of them:
    what merely looks like a key stays as it is.
    """
    if content is None:
        return None
    return tuple(_clean_part(part, secrets) for part in content)


def clean_object(value: JsonObject | None, secrets: Sequence[str]) -> JsonObject | None:
    """A JSON object whose texts, however deep, have no secret in them."""
    if value is None:
        return None
    return {key: _clean_value(item, secrets) for key, item in value.items()}


def clean_json(text: str, secrets: Sequence[str]) -> str:
    """JSON text whose texts have no secret in them, however they are escaped.

    It stays as it was written where it has none; what is no JSON is cleaned as plain text.
    """
    try:
        value: object = json.loads(text)
        cleaned = _clean_value(value, secrets)
    except (ValueError, RecursionError):
        return scrub(text, secrets)
    return text if cleaned == value else json.dumps(cleaned, ensure_ascii=False)


def clean_words(text: str, secrets: Sequence[str]) -> str:
    """Words of others as a user is shown them: without secrets, and with nothing hidden in them."""
    return escaped(scrub(text, secrets))


def clean_event(event: AnyEvent, secrets: Sequence[str]) -> AnyEvent:
    """An event (`OTHERS_WORDS`) whose words may be shown as they are."""

    def clean(text: str) -> str:
        return clean_words(text, secrets)

    match event:
        case ToolCalled():
            return msgspec.structs.replace(event, title=clean(event.title))
        case ToolShown() if event.title is not None:
            return msgspec.structs.replace(event, title=clean(event.title))
        case NoticeShown():
            title, more = clean(event.title), clean(event.description)
            return msgspec.structs.replace(event, title=title, description=more)
        case PermissionDecided():
            return msgspec.structs.replace(event, why=clean(event.why))
        case PlanChanged():
            steps = (
                msgspec.structs.replace(step, content=clean(step.content)) for step in event.entries
            )
            return msgspec.structs.replace(event, entries=tuple(steps))
        case SubagentChanged():
            return msgspec.structs.replace(
                event,
                title=None if event.title is None else clean(event.title),
                description=None if event.description is None else clean(event.description),
                error=clean(event.error),
            )
        case ChildWorked():
            return msgspec.structs.replace(event, did=clean_event(event.did, secrets))
        case _:
            return event


def _clean_part(part: CallContent, secrets: Sequence[str]) -> CallContent:
    if isinstance(part, DiffPart):
        old = None if part.old_text is None else scrub_known(part.old_text, secrets)
        return DiffPart(part.path, scrub_known(part.new_text, secrets), old)
    if not (isinstance(part, ContentPart) and isinstance(part.content, TextBlock)):
        return part
    block = part.content
    return ContentPart(msgspec.structs.replace(block, text=clean_words(block.text, secrets)))


def _clean_value(value: Any, secrets: Sequence[str]) -> Any:  # JSON, of any kind
    if isinstance(value, str):
        return scrub(value, secrets)
    if isinstance(value, dict):
        return {scrub(key, secrets): _clean_value(item, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean_value(item, secrets) for item in value]
    return value
