"""Converts content and options between our types and those of version 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec

from acp_agent import content as content_types
from acp_agent.errors import InvalidInputError
from acp_agent.platform.decoding import json_decoder
from acp_agent.session.settings import Option
from protocol.codec import typed_json
from protocol.v1 import types as acp

_CONTENT_DECODER: msgspec.json.Decoder[content_types.ContentBlock] = json_decoder(
    content_types.ContentBlock
)


def to_acp(block: content_types.ContentBlock) -> acp.ContentBlock:
    """Convert a block of ours to the protocol's; they have the same JSON."""
    expected = cast("type[acp.ContentBlock]", acp.ContentBlock)
    return typed_json.decode(msgspec.json.encode(block), expected)


def from_acp(block: acp.ContentBlock) -> content_types.ContentBlock:
    """Convert a block of the protocol's to ours; they have the same JSON."""
    return _CONTENT_DECODER.decode(typed_json.encode(block))


def prompt_block(block: acp.ContentBlock) -> content_types.ContentBlock:
    """Convert a block of a prompt.

    Raises:
        InvalidInputError: blocks of its type are not supported.
    """
    if isinstance(block, acp.AudioContent):
        raise InvalidInputError(
            "prompt: audio is not supported; send text, images or resources", field="prompt"
        )
    return from_acp(block)


def to_call_content(content: Sequence[content_types.CallContent]) -> list[acp.ToolCallContent]:
    """Convert what a call shows."""
    return [_convert_part(part) for part in content]


def to_locations(locations: Sequence[content_types.Location]) -> list[acp.ToolCallLocation]:
    """Convert locations in files."""
    return [acp.ToolCallLocation(path=location.path, line=location.line) for location in locations]


def _convert_part(part: content_types.CallContent) -> acp.ToolCallContent:
    match part:
        case content_types.DiffPart():
            return acp.Diff(path=part.path, old_text=part.old_text, new_text=part.new_text)
        case content_types.TerminalPart():
            return acp.Terminal(terminal_id=part.terminal_id)
        case content_types.ContentPart():
            return acp.Content(content=to_acp(part.content))


def config_options(options: Sequence[Option]) -> list[acp.SessionConfigOption]:
    """Return all options; the id gives the category, too (Agent Client Protocol v1)."""
    return [
        acp.SessionConfigSelect(
            id=option.id,
            name=option.name,
            description=option.description,
            category=option.category,
            current_value=option.current,
            options=[
                acp.SessionConfigSelectOption(
                    value=value.id, name=value.name, description=value.description
                )
                for value in option.values
            ],
        )
        for option in options
    ]


def mode_state(options: Sequence[Option]) -> acp.SessionModeState:
    """Return the mode alone, for clients without config options."""
    mode = next(option for option in options if option.id == "mode")
    return acp.SessionModeState(
        current_mode_id=mode.current,
        available_modes=[
            acp.SessionMode(id=value.id, name=value.name, description=value.description)
            for value in mode.values
        ],
    )
