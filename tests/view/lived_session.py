"""A session as somebody lives it, with everything real but the model, and the page of it.

`python -m tests.view.lived_session FOLDER` lives it in a new folder and writes `session.html` and
`session.zh.html` there, of which docs/pictures/view-*.png are pictures.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

from acp_agent.agent.resources import PermissionRequest
from acp_agent.config.localization import Language, translator_for
from acp_agent.content import TextBlock, image_block
from acp_agent.errors import ModelError
from acp_agent.events import Usage
from acp_agent.permissions.access import Ask
from acp_agent.session.store.records import SessionRecord, StoredEvent
from acp_agent.view.html import render
from acp_agent.view.reader import read_page
from tests.support.model_server import (
    Answer,
    Call,
    Cut,
    ModelServer,
    Pause,
    Status,
    Thought,
    answer,
)
from tests.support.open_session import MODEL, SECRET, Desk, open_desk

PRICES = '''"""Prices in cents."""

RATES = {"standard": 19, "reduced": 7, "none": 0}


def total(items):
    """The sum of all items."""
    sum = 0
    for item in items:
        sum += item.price
    return sum


def with_tax(price, kind):
    """The price with its tax."""
    return price + price * RATES[kind] / 100
'''
TEST = """import unittest
from collections import namedtuple
from prices import total, with_tax

Item = namedtuple("Item", "price count")


class Prices(unittest.TestCase):
    def test_a_total_counts_each_piece(self):
        self.assertEqual(total([Item(250, 2), Item(100, 1)]), 600)

    def test_tax_is_rounded_to_cents(self):
        self.assertEqual(with_tax(333, "standard"), 396)


if __name__ == "__main__":
    unittest.main()
"""
CONFIG = f'small_model = "{MODEL}"\n'  # no further request for a title
PLAN = ("Run the tests", "Read prices.py", "Mend what is wrong", "Run the tests again")
FOUND = """Two things are wrong in `prices.py`:

1. `total` forgets `item.count`, so two pieces cost as much as one.
2. `with_tax` gives a fraction of a cent.

| Test | Expected | Got |
|---|---:|---:|
| `test_a_total_counts_each_piece` | 600 | 350 |
| `test_tax_is_rounded_to_cents` | 396 | 396.27 |

I mend both.
"""
DONE = """Both tests pass now.

```python
return round(price + price * RATES[kind] / 100)
```

How tax is rounded is told in [the docs of `round`](https://docs.python.org/3/library/functions.html#round).
"""


async def live(folder: Path, *, pace: float = 0.0) -> tuple[SessionRecord, list[StoredEvent]]:
    """Live through the session in `folder`; gives what the store holds of it.

    Args:
        folder: one that is there; the project and the agent's own files go there.
        pace: how long the model and the user take for a step, in seconds.
    """
    async with ModelServer() as server, open_desk(folder, server, config=CONFIG) as desk:
        (desk.folder / "prices.py").write_text(PRICES)
        (desk.folder / "test_prices.py").write_text(TEST)
        await _Life(desk, server, pace).live()
        session = desk.session.id
        store = desk.services.store
        return await store.get(session), await store.read_all(session)


class _Life:
    """What the user and the model do."""

    def __init__(self, desk: Desk, server: ModelServer, pace: float) -> None:
        self._desk, self._server, self._pace = desk, server, pace
        self._sent = 6_200
        desk.editor.decide = self._decide
        self._wish = "allow_once"

    async def live(self) -> None:
        """All of it."""
        await self._mend()
        await self._look()
        await self._refuse()
        await self._fail()
        await self._watch()
        await self._desk.say("/compact what was wrong with the prices")
        await self._take_back()

    async def _decide(self, asking: PermissionRequest, ask: Ask) -> str:
        await asyncio.sleep(self._pace)
        return self._wish

    def _answer(self, *steps: object, sent: int = 900, output: int = 180) -> Answer:
        before, self._sent = self._sent, self._sent + sent
        usage = Usage(input=self._sent, cache_read=before, output=output)
        return answer(Pause(self._pace), *steps, usage=usage)  # type: ignore[arg-type]  # steps

    def _plan(self, done: int) -> Call:
        states = ["completed"] * done + ["in_progress"] + ["pending"] * len(PLAN)
        todos = [
            {"content": content, "status": state, "priority": "high" if place == 2 else "medium"}
            for place, (content, state) in enumerate(zip(PLAN, states, strict=False))
        ]
        return Call("todo", {"todos": todos})

    async def _mend(self) -> None:
        test = Call("shell", {"command": "python3 -m unittest -v test_prices"})
        self._server.add(
            self._answer(
                Thought("The tests will say what is wrong. "),
                Thought("I run them before I read anything."),
                "I run the tests first.",
                self._plan(0),
                test,
            ),
            self._answer(Call("read", {"path": "prices.py"}), self._plan(1), sent=2_400),
            self._answer(
                FOUND,
                Call(
                    "edit",
                    {
                        "path": "prices.py",
                        "old": "    sum = 0\n    for item in items:\n        sum += item.price\n"
                        "    return sum\n",
                        "new": "    return sum(item.price * item.count for item in items)\n",
                    },
                ),
                Call(
                    "edit",
                    {
                        "path": "prices.py",
                        "old": "return price + price * RATES[kind] / 100",
                        "new": "return round(price + price * RATES[kind] / 100)",
                    },
                ),
                sent=1_500,
                output=520,
            ),
            self._answer(test, self._plan(3), sent=700),
            self._answer(self._plan(4), sent=600),
            self._answer(DONE, sent=200),
        )
        await self._desk.say("The tests of prices.py fail. Find out why, and mend it.")

    async def _look(self) -> None:
        self._server.add(
            self._answer("The bar on the right is the one that is too high.", sent=1_900)
        )
        await self._desk.say(
            TextBlock(text="What is odd in this picture?"), image_block(picture(), "image/png")
        )

    async def _refuse(self) -> None:
        self._wish = "reject_once"
        self._server.add(
            self._answer(Call("shell", {"command": "git push --force origin main"}), sent=300),
            self._answer("I leave the remote alone.", sent=200),
        )
        await self._desk.say("Publish it.")
        self._wish = "allow_once"

    async def _fail(self) -> None:
        self._server.add(
            self._answer("It should be in", Cut(), sent=300),
            Status(code=429, message="slow down", headers={"Retry-After": "0"}),
            self._answer("There is none: `prices.py` writes no log.", sent=0),
            Status(code=400, message="the prompt was refused"),
        )
        await self._desk.say("Where is the log?")
        with contextlib.suppress(ModelError):
            await self._desk.say("And the other one?")

    async def _watch(self) -> None:
        self._server.add(
            self._answer(
                Call(
                    "shell",
                    {
                        "command": "for i in 1 2 3; do echo tick $i; sleep 0.1; done",
                        "background": True,
                    },
                ),
                sent=300,
            ),
            self._answer(Call("background", {"action": "wait", "id": "1", "seconds": 5}), sent=300),
            self._answer("It ticked three times.", sent=200),
        )
        await self._desk.say("Watch the ticker for a moment.")
        self._server.add(
            answer(
                "## What was wrong\n\n- `total` forgot the count\n- `with_tax` did not round\n\n"
                f"Both are mended in `{self._desk.folder}/prices.py`. The key was {SECRET}.",
                usage=Usage(input=self._sent, output=90),
            )
        )

    async def _take_back(self) -> None:
        self._sent = 7_000
        self._server.add(
            self._answer(
                Call("write", {"path": "README.md", "content": "# Prices\n\nAll of them.\n"}),
                sent=400,
            ),
            self._answer("It has a README now.", sent=200),
        )
        await self._desk.say("Write a README.")
        await self._desk.session.resources.checkpoints.wait_saved()
        points = await self._desk.session.resources.rewinder.points()
        last = [point for point in points if point.kind == "message"][-1]
        await self._desk.say(f"/rewind {last.number} both")
        self._server.add(self._answer("There is none now, as you wish.", sent=300))
        await self._desk.say("No README, please.")


def picture() -> bytes:
    """A small PNG: three bars."""
    rows = b""
    for y in range(60):
        row = bytearray()
        for x in range(120):
            bar = x // 40
            dark = 10 <= x % 40 < 30 and y > (40, 30, 6)[bar]
            row += bytes((47, 109, 181) if dark else (245, 246, 248))
        rows += b"\0" + bytes(row)

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", 120, 60, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def main(folder: Path) -> None:
    """Live through the session in a new folder, and write the pages there."""
    folder.mkdir()
    record, stored = asyncio.run(live(folder, pace=0.4))
    write(folder, record, stored)


def write(target: Path, record: SessionRecord, stored: Sequence[StoredEvent]) -> None:
    """Write the pages of a session."""
    names: dict[Language, str] = {"en": "session.html", "zh": "session.zh.html"}
    for language, name in names.items():
        page = read_page(record, stored, secrets=[SECRET], translate=translator_for(language))
        (target / name).write_text("".join(render(page, language=language)), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
