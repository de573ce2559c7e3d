"""The transcript that hooks read: the conversation as JSON lines.

A line is an object with `type` ("user" or "assistant") and `message`, whose `content` is a text or
a list of blocks of Anthropic's Messages API. Secrets are removed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from msgspec import DecodeError, json

from acp_agent.agent.context import Context
from acp_agent.agent.context_view import Entry
from acp_agent.agent.scrub_events import scrub_object
from acp_agent.content import JsonObject
from acp_agent.hooks.tool_names import hook_arguments, hook_name
from acp_agent.models.base import (
    AnswerCall,
    AnswerSearch,
    AnswerText,
    AnswerThought,
    ModelSide,
    ToolResult,
    UserText,
)
from acp_agent.platform.posix import make_private_folder

_PICTURE = "[Picture]"  # stands for a picture


class TranscriptFile:
    """The transcript of one conversation. Only its end is written, unless the rest has changed.

    Args:
        secrets: returns values that are removed.
        of_agent: whether it is the conversation of an agent that works for the session.
    """

    def __init__(
        self,
        path: Path,
        *,
        session: str,
        cwd: Path,
        model: Callable[[], str],
        secrets: Callable[[], Sequence[str]],
        of_agent: bool = False,
    ) -> None:
        self._path = path
        self._session = session
        self._cwd = cwd
        self._model = model
        self._secrets = secrets
        self._of_agent = of_agent
        self._written_entries: list[Entry] = []
        self._parent: str | None = None
        self._lock = asyncio.Lock()

    async def update(self, context: Context) -> str:
        """Write the new messages of the conversation; return the path, or "" if that fails."""
        async with self._lock:
            entries, count = list(context.entries), len(self._written_entries)
            continues = count <= len(entries) and all(
                entry is written_entry
                for entry, written_entry in zip(entries[:count], self._written_entries, strict=True)
            )
            if not continues:
                count, self._parent = 0, None
            if continues and count == len(entries) and count:
                return str(self._path)
            lines = b"".join(
                json.encode(line) + b"\n"
                for entry in entries[count:]
                for line in self._lines(entry)
            )
            try:
                await asyncio.to_thread(_write, self._path, lines, truncate=not count)
            except OSError:
                return ""
            self._written_entries = entries
            return str(self._path)

    def _lines(self, entry: Entry) -> Iterator[JsonObject]:
        message = entry.message
        if isinstance(message, ModelSide):
            content = [*self._blocks(message)]
            if content:
                answer = {"id": entry.id or f"msg_{uuid4().hex}", "type": "message"}
                answer |= {"model": self._model()}
                yield self._line("assistant", content, answer)
            return
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        for result in results:
            block: JsonObject = {"type": "tool_result", "tool_use_id": result.call}
            block |= {"content": result.text, "is_error": result.failed}
            yield self._line("user", [block], {})
        texts = [
            part.text if isinstance(part, UserText) else _PICTURE
            for part in message.parts
            if not isinstance(part, ToolResult)
        ]
        if texts:
            yield self._line("user", "\n\n".join(texts), {})

    def _blocks(self, message: ModelSide) -> Iterator[JsonObject]:
        for part in message.parts:
            match part:
                case AnswerText(text=text) if text:
                    yield {"type": "text", "text": text}
                case AnswerThought(text=text) if text:
                    yield {"type": "thinking", "thinking": text, "signature": ""}
                case AnswerCall():
                    yield {
                        "type": "tool_use",
                        "id": part.call,
                        "name": hook_name(part.name),
                        "input": hook_arguments(part.name, _arguments(part.arguments), self._cwd),
                    }
                case AnswerSearch(text=text):
                    yield {"type": "text", "text": text}

    def _line(self, role: str, content: object, fields: JsonObject) -> JsonObject:
        line: JsonObject = {
            "parentUuid": self._parent,
            "isSidechain": self._of_agent,
            "userType": "external",
            "cwd": str(self._cwd),
            "sessionId": self._session,
            "type": role,
            "message": {
                **fields,
                **(scrub_object({"role": role, "content": content}, self._secrets()) or {}),
            },
            "uuid": str(uuid4()),
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        self._parent = line["uuid"]
        return line


def _arguments(text: str) -> JsonObject:
    try:
        arguments = json.decode(text)
    except (DecodeError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _write(path: Path, lines: bytes, *, truncate: bool) -> None:
    make_private_folder(path.parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags | (os.O_TRUNC if truncate else os.O_APPEND), 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - by descriptor, whose flags count
        file.write(lines)
