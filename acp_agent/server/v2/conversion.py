"""Converts content and options between our types and those of version 2."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from acp_agent import content as content_types
from acp_agent.errors import InvalidInputError
from acp_agent.platform.decoding import json_decoder
from acp_agent.session.commands.command import Command
from acp_agent.session.settings import Option
from protocol.codec import typed_json
from protocol.v2 import types as acp

_CONTENT_DECODER: msgspec.json.Decoder[content_types.ContentBlock] = json_decoder(
    content_types.ContentBlock
)


def to_acp(block: content_types.ContentBlock) -> acp.ContentBlock:
    """Convert a block of ours to the protocol's; they have the same JSON."""
    if (
        isinstance(block, content_types.TextBlock)
        and block.annotations is None
        and block.meta is None
    ):
        return acp.TextContent(text=block.text)  # most blocks by far
    return typed_json.decode(msgspec.json.encode(block), acp.ContentBlock)


def from_acp(block: acp.ContentBlock) -> content_types.ContentBlock:
    """Convert a block of the protocol's to ours; they have the same JSON.

    Raises:
        msgspec.ValidationError: it is of a type that we do not know.
    """
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
    if isinstance(block, acp.OtherContentBlock):
        raise InvalidInputError(
            f"prompt: content of type {block.fields['type']!r} is not supported; send text, images "
            "or resources",
            field="prompt",
        )
    return from_acp(block)


def text(text: str) -> acp.TextContent:
    """Return text as content."""
    return acp.TextContent(text=text)


def to_call_content(content: Sequence[content_types.CallContent]) -> list[acp.ToolCallContent]:
    """Convert what a call shows."""
    return [convert_part(part) for part in content]


def convert_part(part: content_types.CallContent) -> acp.ToolCallContent:
    """Convert a part of what a call shows."""
    match part:
        case content_types.DiffPart():
            from acp_agent.server.v2.diffs import to_diff  # noqa: PLC0415 - not to open a session

            return to_diff(part)
        case content_types.TerminalPart():
            # The client's own terminals are no part of version 2: one that an earlier version's
            # client had is gone, and what it showed with it.
            return acp.Content(content=text("The command ran in a terminal of the editor's."))
        case content_types.ContentPart():
            return acp.Content(content=to_acp(part.content))


def to_locations(locations: Sequence[content_types.Location]) -> list[acp.ToolCallLocation]:
    """Convert locations in files."""
    return [acp.ToolCallLocation(path=location.path, line=location.line) for location in locations]


def config_options(options: Sequence[Option]) -> list[acp.SessionConfigOption]:
    """Return all options; the id gives the category, too (v2, Session Config Options)."""
    return [
        acp.SessionConfigSelect(
            config_id=option.id,
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


def available_commands(commands: Sequence[Command]) -> list[acp.AvailableCommand]:
    """Convert the slash commands."""
    return [
        acp.Command(
            name=command.name,
            description=command.description,
            input=None if command.hint is None else acp.TextCommandInput(hint=command.hint),
        )
        for command in commands
    ]
