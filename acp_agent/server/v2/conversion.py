"""Content of ours as the protocol's, and back: blocks, diffs, places."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from acp_agent import content as ours
from acp_agent.content import DiffPart
from acp_agent.server.v2.git_patch import FileChange, git_patch
from acp_agent.session.settings import Option
from protocol.codec import typed_json
from protocol.v2 import types as acp

_OURS: msgspec.json.Decoder[ours.ContentBlock] = msgspec.json.Decoder(ours.ContentBlock)


def to_acp(block: ours.ContentBlock) -> acp.ContentBlock:
    """A block of ours as one of the protocol's; they have the same JSON."""
    if isinstance(block, ours.TextBlock) and block.annotations is None and block.meta is None:
        return acp.TextContent(text=block.text)  # most blocks by far
    return typed_json.decode(msgspec.json.encode(block), acp.ContentBlock)


def from_acp(block: acp.ContentBlock) -> ours.ContentBlock:
    """A block of the protocol's as one of ours; they have the same JSON.

    Raises:
        msgspec.ValidationError: it is of a type that we do not know.
    """
    return _OURS.decode(typed_json.encode(block))


def text(text: str) -> acp.TextContent:
    """Words as content."""
    return acp.TextContent(text=text)


def shown(content: Sequence[ours.CallContent]) -> list[acp.ToolCallContent]:
    """What a call shows, as the protocol's content."""
    return [shown_part(part) for part in content]


def shown_part(part: ours.CallContent) -> acp.ToolCallContent:
    """A part of what a call shows."""
    match part:
        case ours.DiffPart():
            return diff_of(part)
        case ours.TerminalPart():
            # The client's own terminals are no part of version 2: one that an earlier version's
            # client had is gone, and what it showed with it.
            return acp.Content(content=text("The command ran in a terminal of the editor's."))
        case ours.ContentPart():
            return acp.Content(content=to_acp(part.content))


def places(locations: Sequence[ours.Location]) -> list[acp.ToolCallLocation]:
    """Places in files, as the protocol's locations."""
    return [acp.ToolCallLocation(path=place.path, line=place.line) for place in locations]


def diff_of(part: DiffPart) -> acp.Diff:
    """A text file that a call changes or makes."""
    change = FileChange(
        operation="add" if part.old_text is None else "modify",
        path=part.path,
        old=part.old_text,
        new=part.new_text,
    )
    return diff([change])


def diff(changes: Sequence[FileChange]) -> acp.Diff:
    """Changes, and a patch of those that text can show; without one where it can show none."""
    patch = git_patch(changes)
    return acp.Diff(
        changes=[_change(change) for change in changes],
        patch=acp.DiffPatch(format="git_patch", text=patch) if patch else None,
    )


def _change(change: FileChange) -> acp.DiffChange:
    path, file_type = change.path, "binary" if change.binary else "text"
    match change.operation:
        case "add":
            return acp.DiffAddChange(path=path, file_type=file_type)
        case "delete":
            return acp.DiffDeleteChange(path=path, file_type=file_type)
        case "modify":
            return acp.DiffModifyChange(path=path, file_type=file_type)
        case "move":
            old_path = change.old_path or path
            return acp.DiffMoveChange(path=path, old_path=old_path, file_type=file_type)
        case "copy":
            old_path = change.old_path or path
            return acp.DiffCopyChange(path=path, old_path=old_path, file_type=file_type)


def config_options(options: Sequence[Option]) -> list[acp.SessionConfigOption]:
    """All options; the id of each is also its category (v2, Session Config Options)."""
    return [
        acp.SessionConfigSelect(
            config_id=option.id,
            name=option.name,
            description=option.description,
            category=option.id,
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
