"""What our own methods take and give. The published schemas are made of these types."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

MAX_BYTES = 8_000_000


class ExtensionType(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A message of ours; fields that are not known are left alone, as in the protocol."""

    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ExportSessionRequest(ExtensionType, frozen=True, kw_only=True):
    """Asks for a stored session, or an open one, as text."""

    session_id: Annotated[str, Meta(description="The session; it need not be open.")]
    format: Annotated[
        Literal["jsonl", "md"],
        Meta(description="The journal's events as JSON lines, or the conversation as Markdown."),
    ] = "jsonl"
    cursor: Annotated[
        str | None, Meta(description="`nextCursor` of the part before; none for the first.")
    ] = None
    max_bytes: Annotated[
        int,
        Meta(
            ge=1_000,
            le=MAX_BYTES,
            description="Size of a part at most, as UTF-8; a line that is longer is a part alone.",
        ),
    ] = 1_000_000


class ExportSessionResponse(ExtensionType, frozen=True, kw_only=True):
    """A part of a session as text, without secrets."""

    content: Annotated[str, Meta(description="The text; all parts joined are the export.")]
    next_cursor: Annotated[
        str | None, Meta(description="Asks for the next part; absent with the last.")
    ] = None


class SteerRequest(ExtensionType, frozen=True, kw_only=True):
    """Says something into the turn that runs (version 1 of the protocol).

    `_meta.steering.idleBehavior` may be `promptRequired`, which is what is done in any case.
    """

    session_id: Annotated[str, Meta(description="The session, open on this connection.")]
    prompt: Annotated[
        list[dict[str, Any]], Meta(description="Content blocks, as in session/prompt.")
    ]


class SteerResponse(ExtensionType, frozen=True, kw_only=True):
    """What became of the words."""

    outcome: Annotated[
        Literal["injected", "promptRequired"],
        Meta(description="They are part of the turn that runs; or nothing was said, as none runs."),
    ]
    reason: Annotated[
        Literal["noRunningTurn"] | None, Meta(description="With `promptRequired`.")
    ] = None


class PromptMarker(ExtensionType, frozen=True, kw_only=True):
    """What `_meta["acp-agent"]` of a session/prompt may say (version 1 of the protocol)."""

    while_running: Annotated[
        Literal["steer", "queue"],
        Meta(
            description="What to do while a turn runs: make the words part of it, or wait and "
            "begin the next turn with them."
        ),
    ] = "steer"
