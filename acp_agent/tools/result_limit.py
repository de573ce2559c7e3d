"""The bound of a tool's result: what is too long for the model is kept in a file."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from acp_agent.errors import WorkspaceError
from acp_agent.ids import CallId
from acp_agent.tools.base import RESULT_LIMIT
from acp_agent.workspace.file_io import replace_file

_NOTE = 600  # bytes that the note in the middle may take
_TAIL = 0.3  # the part of the room that the end of a result gets


async def limit_result(text: str, outputs: Path, call: CallId) -> str:
    """A result of at most `RESULT_LIMIT` bytes of UTF-8.

    A longer one keeps its head and its tail, cut at line ends where there are any, around a note
    that names the file below `outputs` which holds the whole.
    """
    raw = text.encode("utf-8", "replace")
    if len(raw) <= RESULT_LIMIT:
        return text
    name = re.sub(r"[^A-Za-z0-9_-]", "_", call)[:100]
    try:
        path = await asyncio.to_thread(_save, outputs, f"{name}.txt", text)
    except WorkspaceError as error:
        kept = f"the rest was not kept: {error}"
    else:
        kept = f"the whole is in {path}: use `grep` on it, or `read` with line and limit"
    room = RESULT_LIMIT - _NOTE
    tail_room = int(room * _TAIL)
    head = _up_to_a_line_end(raw[: room - tail_room].decode("utf-8", "ignore"))
    tail = _from_a_line_start(raw[-tail_room:].decode("utf-8", "ignore"))
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[… {left_out:,} characters are left out here; {kept[: _NOTE - 80]} …]\n{tail}"


def _save(outputs: Path, name: str, text: str) -> Path:
    path = outputs.resolve() / name
    replace_file(path, text.encode("utf-8", "replace"), shown=str(path))
    return path


def _up_to_a_line_end(text: str) -> str:
    end = text.rfind("\n")
    return text[:end] if end > len(text) // 2 else text


def _from_a_line_start(text: str) -> str:
    start = text.find("\n") + 1
    return text[start:] if 0 < start < len(text) // 2 else text
