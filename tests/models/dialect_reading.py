"""Reads answers in the dialects; shared by the tests of dialects."""

from __future__ import annotations

from collections.abc import Iterable

from acp_agent.models.base import CallDone, StreamEvent, TextDelta, ThoughtDelta
from acp_agent.models.dialects.driver import select_forms
from acp_agent.models.dialects.form import Tools
from acp_agent.models.dialects.scanner import Scanner
from acp_agent.tools.spec import ToolSpec

READ = ToolSpec(
    name="read",
    description="Read a file. Large ones are cut.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "whole": {"type": "boolean"},
            "ratio": {"type": "number"},
            "tags": {"$ref": "#/$defs/Tags"},
        },
        "required": ["path"],
        "$defs": {"Tags": {"type": "array", "items": {"type": "string"}}},
    },
)
WRITE = ToolSpec(
    name="write",
    description="Write a file.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    },
)
TOOLS = Tools([READ, WRITE])

Seen = list[tuple[str, ...]]


def seen(events: Iterable[StreamEvent]) -> Seen:
    """What was told, with the pieces of text and of reasoning put together."""
    told: Seen = []
    for event in events:
        match event:
            case TextDelta() | ThoughtDelta():
                kind = "text" if isinstance(event, TextDelta) else "thought"
                if told and told[-1][0] == kind:
                    told[-1] = (kind, told[-1][1] + event.text)
                else:
                    told.append((kind, event.text))
            case CallDone():
                told.append(("call", event.name, event.arguments))
            case _:
                pass
    return told


def read(dialect: str, *pieces: str, cut: bool = False) -> Seen:
    """What comes of an answer in pieces."""
    scanner = Scanner(select_forms(dialect), TOOLS)
    events = [event for piece in pieces for event in scanner.feed(piece)]
    return seen([*events, *scanner.end(cut=cut)])
