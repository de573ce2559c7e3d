"""The points that a session can go back to: a pure function of its events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from acp_agent.content import TextBlock
from acp_agent.errors import InvalidInputError
from acp_agent.events import AnyEvent, CheckpointMade, Rewound, UserMessage

Kind = Literal["message", "rewind", "restore"]

TITLE_LENGTH = 80


class Point(Struct, frozen=True, kw_only=True):
    """How the session was right before a message of the user's began a turn, or before a rewind.

    Where a process died while it put files back, what they replaced is a point, too (`restore`):
    its files alone can go back.

    `number` counts them from 1. `files` is the checkpoint that has the files as they were, "" where
    the session changed none since. `current` is false for what a rewind took back. `at` is when it
    was, in milliseconds since 1970 (UTC), 0 where that is not known.
    """

    number: int
    id: str
    kind: Kind
    title: str
    files: str = ""
    current: bool = True
    at: int = 0


def points(history: Iterable[tuple[int, AnyEvent]]) -> list[Point]:
    """The points of a session, the oldest first; `history` has every event with its time."""
    found: list[tuple[str, Kind, str, int]] = []
    begun: tuple[str, int] | None = None  # a restore that has not ended: what it replaces, when
    files: dict[str, str] = {}
    without_files: list[str] = []
    line: list[str] = []
    left: dict[str, list[str]] = {}
    for at, event in history:
        if begun is not None and _is_apart(event, begun[0]):
            _cut_off(found, files, begun)
            begun = None
        match event:
            case UserMessage() if not (event.steering or event.local):
                found.append((event.message, "message", _title(event), at))
                without_files.append(event.message)
                line.append(event.message)
            case CheckpointMade(why="turn" | "restore"):
                files.update((point, event.checkpoint) for point in without_files)
                without_files.clear()
                begun = (event.checkpoint, at) if event.why == "restore" else None
            case Rewound():
                begun = None
                found.append((event.rewind, "rewind", event.title, at))
                if event.replaced:
                    files[event.rewind] = event.replaced
                else:
                    without_files.append(event.rewind)
                left[event.rewind] = list(line)
                if event.conversation:
                    line = _back(line, left, event)
            case _:
                pass
    if begun is not None:
        _cut_off(found, files, begun)
    now = set(line)
    return [
        Point(
            number=number,
            id=name,
            kind=kind,
            title=title,
            files=files.get(name, ""),
            current=kind != "message" or name in now,
            at=at,
        )
        for number, (name, kind, title, at) in enumerate(found, 1)
    ]


def _is_apart(event: AnyEvent, checkpoint: str) -> bool:
    """Whether an event cannot be part of the restore that began with a checkpoint."""
    match event:
        case UserMessage():
            return True
        case CheckpointMade():
            return event.why != "restore_end"
        case Rewound():  # one that found nothing to put back, as the restore had come to its end
            return event.replaced != checkpoint
        case _:
            return False


def _cut_off(
    found: list[tuple[str, Kind, str, int]], files: dict[str, str], begun: tuple[str, int]
) -> None:
    """Add the point of a restore that never ended."""
    checkpoint, at = begun
    found.append((checkpoint, "restore", "files were put back, and it was cut off", at))
    files[checkpoint] = checkpoint


def _back(line: list[str], left: dict[str, list[str]], event: Rewound) -> list[str]:
    """The messages that are left of the conversation; as `acp_agent.agent.rewinding` goes back."""
    if event.to in left and event.to != event.rewind:
        return list(left[event.to])
    for one in (line, *reversed(left.values())):
        if event.to in one:
            return one[: one.index(event.to) + event.keeps_words]
    return line


def find_point(known: Sequence[Point], wanted: str) -> Point:
    """A point by its id or its number.

    Raises:
        InvalidInputError: there is none such.
    """
    for point in known:
        if wanted in {point.id, str(point.number)}:
            return point
    raise InvalidInputError(
        f"point: there is no point {wanted[:80]!r} to go back to", field="point"
    )


def _title(event: UserMessage) -> str:
    for block in event.content:
        if isinstance(block, TextBlock) and block.text.strip():
            line = block.text.strip().splitlines()[0].strip()
            return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"
    return "(no words)"
