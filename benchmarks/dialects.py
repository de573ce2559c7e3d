"""The speed of extracting tool calls from text, per dialect.

An answer of about a megabyte, calls and prose by turns, in pieces as a socket gives them (4 KB) and
as a model writes them (4 characters). On its own: `python -m benchmarks dialects`.
"""

from __future__ import annotations

import json
import time

from acp_agent.models.dialects.driver import FORMS, select_forms
from acp_agent.models.dialects.form import Tools
from acp_agent.models.dialects.scanner import Scanner
from acp_agent.models.dialects.writers import writer
from acp_agent.tools.spec import ToolSpec
from benchmarks.table import Row, row

SIZE = 1_000_000  # characters
ROUNDS = 3
PROSE = "The parser reads a line at a time, `strip`s it, and a < b holds for each [item]. " * 4
CODE = 'def parse(line):\n    """Read \\"one\\" line."""\n    return {"words": line.split()}\n' * 8
TOOLS = Tools(
    [
        ToolSpec(
            name="write",
            description="Write a file.",
            parameters={
                "type": "object",
                "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            },
        )
    ]
)


def _answer(dialect: str) -> str:
    arguments = json.dumps({"path": "src/parser.py", "content": CODE})
    # Llama's calls are the whole of an answer.
    prose = "" if dialect == "llama" else f"\n\n{PROSE}\n\n"
    one = writer(dialect).calls([(0, "write", arguments)]) + ("; " if dialect == "llama" else prose)
    return one * (SIZE // len(one))


def _seconds(dialect: str, pieces: list[str]) -> float:
    start = time.perf_counter()
    scanner = Scanner(select_forms(dialect), TOOLS)
    for piece in pieces:
        scanner.feed(piece)
    scanner.end()
    taken = time.perf_counter() - start
    assert scanner.calls > 100
    return taken


def _cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def rows() -> list[Row]:
    """Milliseconds a megabyte of each dialect; at most 1,000 is what is asked for."""
    found = []
    for dialect in (*FORMS, "auto"):
        text = _answer(dialect)
        large, small = _cut(text, 4096), _cut(text, 4)
        scale = 1_000 * SIZE / len(text)
        reads = [_seconds(dialect, large) * scale for _ in range(ROUNDS)]
        words = [_seconds(dialect, small) * scale for _ in range(ROUNDS)]
        found.append(row(f"1 MB of {dialect}, 4 KB at a time", "ms", reads, plus=1_000))
        found.append(row(f"1 MB of {dialect}, 4 characters at a time", "ms", words, plus=1_000))
    return found
