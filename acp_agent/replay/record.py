"""The file of a record: JSON lines, a head followed by events (docs/replay.md)."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from acp_agent.content import JsonObject
from acp_agent.errors import InvalidInputError
from acp_agent.events import AnyEvent, HookAnswered, ServerTool
from acp_agent.models.base import Message, ModelInfo
from acp_agent.permissions.access import Grant
from acp_agent.platform.decoding import decode_json
from acp_agent.tools.spec import ToolSpec

FORMAT = "acp-agent record"
VERSION = 1
SIZE_LIMIT = 256 * 1024 * 1024  # bytes of a file

# The sections of the configuration that change the course of a turn. They start no programs, make
# no network requests and read no files.
SETTINGS = (
    "context", "draft_folder", "limits", "permissions", "sandbox", "steering", "thought_level",
)  # fmt: skip


class Head(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first line: the setup of the session.

    `agent` is the version of the program, `settings` the user's settings among `SETTINGS`.
    `confined` says whether commands ran in the sandbox, `reversible` whether checkpoints could undo
    them, and `memory` whether there were notes for later sessions. `fallbacks` are models to use if
    another is unavailable, `files` the definitions and instructions that the session read, by path,
    and `tools` the tools of the requests; missing ones are not compared. `server_tools` are the
    tools of MCP servers, and `hooks` the answers of hooks. `grants` are remembered answers of
    earlier sessions that decided in this one; their project is empty.
    """

    format: str
    version: int
    agent: str = ""
    system_name: str = ""
    language: str = "en"
    confined: bool = False
    reversible: bool = False
    memory: bool = False
    settings: JsonObject = {}
    models: tuple[ModelInfo, ...] = ()
    fallbacks: tuple[str, ...] = ()
    files: dict[str, str] = {}
    tools: tuple[ToolSpec, ...] = ()
    server_tools: tuple[ServerTool, ...] = ()
    hooks: tuple[HookAnswered, ...] = ()
    grants: tuple[Grant, ...] = ()


class RecordedRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request to the model, as changes to the previous request.

    It begins with the first `kept` messages of the previous request in the same session, followed
    by `messages`. None: unknown.
    """

    kept: int = 0
    messages: tuple[Message, ...] = ()
    thought_level: str | None = None
    web_search: bool = False
    tools: tuple[str, ...] | None = None


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line: an event of the session; a `model_asked` event includes its request."""

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
    """Read a record. Raises InvalidInputError."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInputError(f"{path} is not a file", field="file")
        if status.st_size > SIZE_LIMIT:
            raise InvalidInputError(
                f"{path} is larger than {SIZE_LIMIT >> 20} MiB, the limit of a record", field="file"
            )
        lines = path.read_bytes().splitlines()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidInputError(f"cannot read {path} ({reason})", field="file") from None
    head = _decode_head(path, lines[0] if lines else b"")
    steps = tuple(
        _decode_line(path, number, line) for number, line in enumerate(lines[1:], 2) if line
    )
    return Record(head=head, steps=steps)


def _decode_head(path: Path, line: bytes) -> Head:
    try:
        fields: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise InvalidInputError(
            f"{path} is not a record of a session; make one with `acp-agent sessions record`",
            field="file",
        )
    if fields.get("version") != VERSION:
        raise InvalidInputError(
            f"{path} has version {fields.get('version')!r} of the format; this program supports "
            f"version {VERSION}",
            field="file",
        )
    return cast("Head", _decode_line(path, 1, line, Head))


def _decode_line(path: Path, number: int, line: bytes, kind: type[Any] = Step) -> Any:
    try:
        return decode_json(line, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(
            f"{path}, line {number}: the record is damaged: {error}", field="file"
        ) from None


def request_count(steps: Sequence[Step]) -> int:
    """Return the number of requests to models in a record."""
    return sum(1 for step in steps if step.request is not None)
