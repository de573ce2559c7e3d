"""The file of a record: JSON lines, a head and then what happened (docs/replay.md)."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct, field

from acp_agent.content import JsonObject
from acp_agent.errors import InvalidInputError
from acp_agent.events import AnyEvent
from acp_agent.models.base import Message, ModelInfo
from acp_agent.tools.spec import ToolSpec

FORMAT = "acp-agent record"
VERSION = 1
SIZE_LIMIT = 256 * 1024 * 1024  # bytes of a file

# The sections of the configuration that change what a turn does. Nothing in them starts a program,
# asks an address or reads a file.
SETTINGS = (
    "context", "draft_folder", "limits", "permissions", "sandbox", "steering", "thought_level",
)  # fmt: skip


class Head(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first line: what the session ran with.

    `agent` is the version of the program, `settings` what its user configured of `SETTINGS`.
    `confined` says whether commands ran in the sandbox, `reversible` whether checkpoints could undo
    them, and `memory` whether there were notes for later sessions.
    `fallbacks` are the models that are asked where another cannot be had, `files` the definitions
    and instructions that it read, by path, and `tools` the tools of the requests; those that are
    missing are not compared.
    """

    format: str
    version: int
    agent: str = ""
    system_name: str = ""
    language: str = "en"
    confined: bool = False
    reversible: bool = False
    memory: bool = False
    settings: JsonObject = field(default_factory=dict)
    models: tuple[ModelInfo, ...] = ()
    fallbacks: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    tools: tuple[ToolSpec, ...] = ()


class RecordedRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request to the model, without what the request before it had already.

    It begins with the first `kept` messages of the one before, in the same session, and has
    `messages` after them. None: not known.
    """

    kept: int = 0
    messages: tuple[Message, ...] = ()
    thought_level: str | None = None
    web_search: bool = False
    tools: tuple[str, ...] | None = None


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line: an event of the session, with the request that a `model_asked` stands for."""

    event: AnyEvent
    request: RecordedRequest | None = None


class Record(Struct, frozen=True, kw_only=True):
    """A recorded session."""

    head: Head
    steps: tuple[Step, ...]


def write_lines(record: Record) -> Iterator[str]:
    """Yield the lines of a record's file."""
    for item in (record.head, *record.steps):
        yield msgspec.json.encode(item).decode() + "\n"


def read_record(path: Path) -> Record:
    """Read a record.

    Raises:
        InvalidInputError: it cannot be read, is no record, or is damaged; the message has the line.
    """
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise InvalidInputError(f"{path} is not a file", field="file")
        if about.st_size > SIZE_LIMIT:
            raise InvalidInputError(
                f"{path} is larger than {SIZE_LIMIT >> 20} MiB, the limit of a record", field="file"
            )
        lines = path.read_bytes().splitlines()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise InvalidInputError(f"cannot read {path} ({why})", field="file") from None
    head = _head(path, lines[0] if lines else b"")
    steps = tuple(_decoded(path, number, line) for number, line in enumerate(lines[1:], 2) if line)
    return Record(head=head, steps=steps)


def _head(path: Path, line: bytes) -> Head:
    try:
        seen: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        seen = None
    if not isinstance(seen, dict) or seen.get("format") != FORMAT:
        raise InvalidInputError(
            f"{path} is not a record of a session; make one with `acp-agent sessions record`",
            field="file",
        )
    if seen.get("version") != VERSION:
        raise InvalidInputError(
            f"{path} has version {seen.get('version')!r} of the format; this program supports "
            f"version {VERSION}",
            field="file",
        )
    return cast("Head", _decoded(path, 1, line, Head))


def _decoded(path: Path, number: int, line: bytes, kind: type[Any] = Step) -> Any:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(
            f"{path}, line {number}: the record is damaged: {error}", field="file"
        ) from None


def requests_of(steps: Sequence[Step]) -> int:
    """Return how many requests to models a record has."""
    return sum(1 for step in steps if step.request is not None)
