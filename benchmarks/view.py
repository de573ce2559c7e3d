"""A session of 10,000 events as a page: made from the store, and opened in Chromium.

The second row is left out where there is no Chromium.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from acp_agent.content import DiffPart, Location, TextBlock, text_part
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    ModelAnswered,
    ModelAsked,
    PermissionDecided,
    SessionStarted,
    ToolCalled,
    ToolEnded,
    ToolKind,
    ToolOutput,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Usage,
    UsageReported,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, SessionId, TurnId
from acp_agent.session.store.store import Store
from acp_agent.view.html import render
from acp_agent.view.reader import read_page
from benchmarks.table import Row, row
from tests.editors.end_to_end.devtools import chromium, open_browser

SESSION = SessionId("sess_benchmark")
EVENTS = 10_000
ROUNDS = 7
REQUESTS = 5  # of a turn

_SAID = (
    "The parser reads a line and **splits** it. I look at `parser.py` first:\n\n"
    "1. what a comment is\n2. what an empty line is\n\n```python\nline.split()\n```\n"
)
_OUTPUT = "tests/test_parser.py::test_a_comment_is_left_out PASSED\n" * 40
_OLD = "".join(f"    line {number} of the parser\n" for number in range(200))
_NEW = _OLD.replace("line 40 ", "a new line 40 ").replace("line 150 of", "line 150 out of")


def busy_session() -> list[AnyEvent]:
    """A session of 10,000 events as a day of work makes them: 137 turns."""
    events: list[AnyEvent] = [SessionStarted(cwd="/project")]
    number = 0
    while len(events) < EVENTS:
        number += 1
        turn = TurnId(f"turn_{number}")
        words = (TextBlock(text=f"Now do part {number} of the parser."),)
        events += [
            TurnStarted(turn=turn),
            UserMessage(message=MessageId(f"msg_user{number}"), content=words),
        ]
        for request in range(REQUESTS):
            events += _request(f"{number}x{request}", number * 1_000)
        events.append(TurnEnded(turn=turn, stop_reason="end_turn"))
    return events[:EVENTS]


def _request(name: str, sent: int) -> list[AnyEvent]:
    message = MessageId(f"msg_{name}")
    usage = Usage(input=sent, cache_read=sent * 9 // 10, output=200)
    return [
        ModelAsked(message=message, model="openai/gpt-5"),
        AgentThought(message=message, text="What does it do with comments? " * 6),
        AgentText(message=message, text=_SAID),
        ModelAnswered(message=message, model="openai/gpt-5", usage=usage, cost=0.01),
        UsageReported(used=sent, size=1_000_000),
        *_call(f"{name}c", message, "shell", "execute", '{"command": "make test"}'),
        *_call(f"{name}e", message, "edit", "edit", '{"path": "parser.py"}'),
    ]


def _call(
    name: str, message: MessageId, tool: str, kind: ToolKind, arguments: str
) -> list[AnyEvent]:
    call, path = CallId(f"call_{name}"), "/project/src/parser.py"
    diff = (DiffPart(path, _NEW, _OLD),) if kind == "edit" else (text_part("1 passed"),)
    output = [ToolOutput(call=call, text=_OUTPUT)] if kind == "execute" else []
    return [
        ToolCalled(
            call=call,
            message=message,
            name=tool,
            arguments=arguments,
            title=f"{tool} src/parser.py",
            kind=kind,
            locations=(Location(path, 1),),
        ),
        PermissionDecided(call=call, allowed=True, by="mode", why="full access"),
        ToolStarted(call=call),
        *output,
        ToolEnded(call=call, result="Done: 1 passed.", content=diff),
    ]


def rows() -> list[Row]:
    """The rows of the page."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_rows(Path(folder)))


async def _rows(folder: Path) -> list[Row]:
    path = folder / "session.html"
    store = await Store.open(folder / "sessions.db")
    await store.create(SESSION, busy_session())
    made = [await _make(store, path) for _ in range(ROUNDS)]
    await store.close()
    size = path.stat().st_size / 1e6
    found = [row(f"make the page of 10,000 events ({size:.1f} MB)", "ms", made)]
    if chromium() is not None:
        name = "open the page of 10,000 events in Chromium"
        found.append(row(name, "ms", await opening_times(path), plus=2_000))
    return found


async def _make(store: Store, path: Path) -> float:
    began = time.perf_counter()
    page = read_page(await store.get(SESSION), await store.read_all(SESSION), secrets=["a-secret"])
    with path.open("w", encoding="utf-8") as file:
        file.writelines(render(page, language="en"))
    return (time.perf_counter() - began) * 1e3


async def opening_times(path: Path, rounds: int = ROUNDS) -> list[float]:
    """Milliseconds from the browser's going to a page until it has drawn it, of each round."""
    times: list[float] = []
    async with open_browser() as page:
        for _ in range(rounds):
            began = time.perf_counter()
            await page.open(path.as_uri())
            await page.painted()
            times.append((time.perf_counter() - began) * 1e3)
    return times
