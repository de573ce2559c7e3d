"""Read prompts from JSON lines, as the streaming modes of Kimi's and Claude's commands do.

A line is `{"role": "user", "content": "…"}` or `{"type": "user", "message": {…}}` with such a
message; the content is a text or a list of blocks with a `text`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any, Literal, TextIO

import msgspec
from msgspec import Struct

from acp_agent.platform.decoding import convert, decode_json


class _Block(Struct, tag_field="type", tag="text"):
    text: str


class _Message(Struct):
    role: Literal["user"]
    content: str | list[_Block]


async def read_prompts(stream: TextIO) -> AsyncIterator[str | ValueError]:
    """Yield the prompt of each line, or an error for a line that is none, until the stream ends."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str] = asyncio.Queue()

    def read() -> None:
        for line in stream:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, "")

    # Not in the loop's pool, whose threads are waited for at the end.
    threading.Thread(target=read, daemon=True).start()
    number = 0
    while line := await lines.get():
        number += 1
        if line.strip():
            try:
                yield _prompt(line)
            except (msgspec.DecodeError, ValueError) as error:
                yield ValueError(f"line {number}: {error}")


def _prompt(line: str) -> str:
    value: Any = decode_json(line, Any)
    if isinstance(value, dict) and value.get("type") == "user":
        value = value.get("message")
    content = convert(value, _Message).content
    prompt = content if isinstance(content, str) else "\n".join(block.text for block in content)
    if not prompt.strip():
        raise ValueError("the prompt is empty")
    return prompt
