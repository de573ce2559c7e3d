"""Remove secrets from the content of calls and events before it is stored, shown or sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from acp_agent.agent.remote_pictures import without_pictures
from acp_agent.content import (
    HIDDEN,
    CallContent,
    ContentPart,
    DiffPart,
    JsonObject,
    TextBlock,
    escaped,
)
from acp_agent.events import (
    AnyEvent,
    ChildWorked,
    HookAnswered,
    NoticeShown,
    PermissionDecided,
    PlanChanged,
    ServerToolsOffered,
    SubagentChanged,
    ToolCalled,
    ToolShown,
)
from acp_agent.workspace.file_io import display_name
from acp_agent.workspace.scrub import scrub, scrub_known

_MAX_LINES = 3  # lines that a warning names


def scrub_content(
    content: tuple[CallContent, ...] | None, secrets: Sequence[str]
) -> tuple[CallContent, ...] | None:
    """Remove secrets from the texts of content.

    The user reviews diffs, so only known secrets are removed from them. Text that only looks like a
    key stays.
    """
    if content is None:
        return None
    return tuple(_scrub_part(part, secrets) for part in content)


def hidden_in_diffs(content: Sequence[CallContent]) -> str:
    """Return up to three lines to which diffs add hidden characters, with these characters escaped.

    The diff itself is not escaped, because an editor may write the text that it shows.
    """
    lines: list[str] = []
    for part in content:
        if not isinstance(part, DiffPart) or escaped(part.new_text) == part.new_text:
            continue
        before = set((part.old_text or "").split("\n"))
        for number, line in enumerate(part.new_text.split("\n"), 1):
            hidden = [] if line in before else HIDDEN.findall(line.rstrip("\r"))
            if hidden:
                characters = " ".join(dict.fromkeys(map(escaped, hidden)))
                lines.append(f"{display_name(PurePath(part.path).name)}:{number}: {characters}")
    more = f" (+{len(lines) - _MAX_LINES})" if len(lines) > _MAX_LINES else ""
    return ", ".join(lines[:_MAX_LINES]) + more


def scrub_object(value: JsonObject | None, secrets: Sequence[str]) -> JsonObject | None:
    """Remove secrets from all texts in a JSON object."""
    if value is None:
        return None
    return {key: _scrub_value(item, secrets) for key, item in value.items()}


def scrub_json(text: str, secrets: Sequence[str]) -> str:
    """Remove secrets from JSON text, even if they are escaped.

    Text without secrets is returned unchanged. Invalid JSON is treated as plain text.
    """
    try:
        value: object = json.loads(text)
        scrubbed = _scrub_value(value, secrets)
    except (ValueError, RecursionError):
        return scrub(text, secrets)
    return text if scrubbed == value else json.dumps(scrubbed, ensure_ascii=False)


def safe_text(text: str, secrets: Sequence[str]) -> str:
    """Remove secrets from a text and escape hidden characters, so that it can be shown."""
    return escaped(scrub(text, secrets))


def scrub_event(event: AnyEvent, secrets: Sequence[str]) -> AnyEvent:
    """Make the texts in an event safe to show; see `safe_text`."""

    def safe(text: str) -> str:
        return safe_text(text, secrets)

    match event:
        case ToolCalled():
            return msgspec.structs.replace(event, title=safe(event.title))
        case ToolShown() if event.title is not None:
            return msgspec.structs.replace(event, title=safe(event.title))
        case NoticeShown():
            title, more = safe(event.title), safe(event.description)
            return msgspec.structs.replace(event, title=title, description=more)
        case PermissionDecided():
            return msgspec.structs.replace(event, why=safe(event.why), rule=safe(event.rule))
        case PlanChanged():
            steps = (
                msgspec.structs.replace(step, content=without_pictures(safe(step.content)))
                for step in event.entries
            )
            return msgspec.structs.replace(event, entries=tuple(steps))
        case SubagentChanged():
            return msgspec.structs.replace(
                event,
                title=None if event.title is None else without_pictures(safe(event.title)),
                description=None if event.description is None else safe(event.description),
                error=safe(event.error),
                role=scrub(event.role, secrets),
            )
        case HookAnswered():
            return msgspec.structs.replace(
                event,
                subject=scrub(event.subject, secrets),
                name=safe(event.name),
                answer=scrub_object(event.answer, secrets) or {},
            )
        case ServerToolsOffered():
            tools = (
                msgspec.structs.replace(
                    tool,
                    title=safe(tool.title),
                    description=scrub(tool.description, secrets),
                    parameters=scrub_object(tool.parameters, secrets) or {},
                )
                for tool in event.tools
            )
            return msgspec.structs.replace(event, tools=tuple(tools))
        case ChildWorked():
            return msgspec.structs.replace(event, did=scrub_event(event.did, secrets))
        case _:
            return event


def _scrub_part(part: CallContent, secrets: Sequence[str]) -> CallContent:
    if isinstance(part, DiffPart):
        old = None if part.old_text is None else scrub_known(part.old_text, secrets)
        path = scrub_known(part.path, secrets)
        return DiffPart(path, scrub_known(part.new_text, secrets), old)
    if not (isinstance(part, ContentPart) and isinstance(part.content, TextBlock)):
        return part
    block = part.content
    return ContentPart(msgspec.structs.replace(block, text=safe_text(block.text, secrets)))


def _scrub_value(value: Any, secrets: Sequence[str]) -> Any:  # JSON, of any kind
    if isinstance(value, str):
        return scrub(value, secrets)
    if isinstance(value, dict):
        return {scrub(key, secrets): _scrub_value(item, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [_scrub_value(item, secrets) for item in value]
    return value
