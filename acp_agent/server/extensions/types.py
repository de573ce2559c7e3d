"""Types of our own methods. The published schemas are generated from them."""

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


class ListCheckpointsRequest(ExtensionType, frozen=True, kw_only=True):
    """Asks where a session that is open can go back to."""

    session_id: Annotated[str, Meta(description="The session, open on this connection.")]


class CheckpointPoint(ExtensionType, frozen=True, kw_only=True):
    """The session as it was right before a message of the user began a turn, or before a rewind.

    One of the kind `restore` is how the files were before a restore that was cut off; nothing but
    they can go back to it.
    """

    point_id: Annotated[str, Meta(description="The id of the message, rewind or checkpoint.")]
    number: Annotated[int, Meta(description="Its number, as /rewind has it.")]
    kind: Literal["message", "rewind", "restore"]
    title: Annotated[str, Meta(description="The first line of the message.")]
    at: Annotated[str, Meta(description="When it was, RFC 3339.")]
    files: Annotated[
        bool,
        Meta(
            description="Whether files are saved; without them none was changed since, or they "
            "are no longer saved."
        ),
    ]
    current: Annotated[
        bool, Meta(description="Whether it is part of the conversation that the model is sent.")
    ]


class NotKeptFile(ExtensionType, frozen=True, kw_only=True):
    """A file or folder that a checkpoint does not have."""

    path: Annotated[str, Meta(description="Relative to the session's folder, or absolute.")]
    reason: Annotated[str, Meta(description="Why, in words.")]


class ListCheckpointsResponse(ExtensionType, frozen=True, kw_only=True):
    """The points, the oldest first, and what the newest checkpoint does not have."""

    points: list[CheckpointPoint]
    not_kept: list[NotKeptFile]
    not_kept_count: Annotated[int, Meta(description="All of them; `notKept` has 20 at most.")]


class RestoreCheckpointRequest(ExtensionType, frozen=True, kw_only=True):
    """Takes a session back to a point, or tells what that would change."""

    session_id: Annotated[
        str, Meta(description="The session, open on this connection, in which no turn runs.")
    ]
    point_id: Annotated[str, Meta(description="The point, as listed.")]
    what: Annotated[
        Literal["files", "conversation", "both"],
        Meta(description="What goes back: the files, what the model is sent, or both."),
    ]
    dry_run: Annotated[
        bool, Meta(description="Tell what would be changed, and change nothing.")
    ] = False
    force: Annotated[
        bool,
        Meta(
            description="Restore files that someone else than the session changed since, too; by "
            "default they are left unchanged."
        ),
    ] = False


class RestoredFile(ExtensionType, frozen=True, kw_only=True):
    """A file that is changed."""

    path: Annotated[str, Meta(description="Relative to the session's folder, or absolute.")]
    change: Literal["add", "modify", "delete"]
    by_others: Annotated[
        bool, Meta(description="Whether someone else than the session changed it since.")
    ] = False


class UntouchedFile(ExtensionType, frozen=True, kw_only=True):
    """A file that is left unchanged."""

    path: Annotated[str, Meta(description="Relative to the session's folder, or absolute.")]
    reason: Annotated[str, Meta(description="Why, in words.")]
    by_others: Annotated[
        bool,
        Meta(description="Whether that is because someone else changed it; `force` restores it."),
    ] = False


class RestoreCheckpointResponse(ExtensionType, frozen=True, kw_only=True):
    """What was changed, or would be: the first of them, and how many there are."""

    changes: list[RestoredFile]
    change_count: Annotated[int, Meta(description="All of them; `changes` has 1,000 at most.")]
    untouched: list[UntouchedFile]
    not_kept: Annotated[
        list[NotKeptFile],
        Meta(description="What the point's checkpoint does not have, changed since or not."),
    ]
    not_kept_count: Annotated[int, Meta(description="All of them; `notKept` has 20 at most.")]
    rewind_id: Annotated[
        str | None, Meta(description="The point that undoes it; absent where nothing was done.")
    ] = None


class ListResourcesRequest(ExtensionType, frozen=True, kw_only=True):
    """Asks what a prompt can name as `@server:uri`, so that a client can complete it."""

    session_id: Annotated[str, Meta(description="The session, open on this connection.")]
    typed: Annotated[
        str, Meta(description="What the user has typed, from `@` on, to complete templates too.")
    ] = ""


class NamedResource(ExtensionType, frozen=True, kw_only=True):
    """A resource of an MCP server."""

    mention: Annotated[str, Meta(description="What stands in a prompt to attach it.")]
    name: Annotated[str, Meta(description="What the server calls it.")]
    incomplete: Annotated[
        bool, Meta(description="A variable of a template follows: complete it again.")
    ] = False


class ListResourcesResponse(ExtensionType, frozen=True, kw_only=True):
    """The resources that are known now, by server."""

    resources: Annotated[list[NamedResource], Meta(description="At most 1,000.")]


class ForkMarker(ExtensionType, frozen=True, kw_only=True):
    """What `_meta["acp-agent"]` of a session/fork may say; one of the two."""

    before: Annotated[
        str | None, Meta(description="The fork has what came before this message.")
    ] = None
    through: Annotated[
        str | None, Meta(description="The fork has everything up to this message, and that.")
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
    """What happened to the message."""

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
