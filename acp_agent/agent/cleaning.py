"""Takes secrets out of what a call shows, before it is journaled, shown or sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from acp_agent.content import CallContent, ContentPart, DiffPart, JsonObject, TextBlock
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


def _clean_part(part: CallContent, secrets: Sequence[str]) -> CallContent:
    if isinstance(part, DiffPart):
        old = None if part.old_text is None else scrub_known(part.old_text, secrets)
        return DiffPart(part.path, scrub_known(part.new_text, secrets), old)
    if not (isinstance(part, ContentPart) and isinstance(part.content, TextBlock)):
        return part
    block = part.content
    return ContentPart(msgspec.structs.replace(block, text=scrub(block.text, secrets)))


def _clean_value(value: Any, secrets: Sequence[str]) -> Any:  # JSON, of any kind
    if isinstance(value, str):
        return scrub(value, secrets)
    if isinstance(value, dict):
        return {key: _clean_value(item, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean_value(item, secrets) for item in value]
    return value
