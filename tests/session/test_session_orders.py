"""All that can be done with a session, by two clients in the same moments, in any order.

`make test` tries a few orders, `make test-orders` many. What has to hold of each of them is in
`Scene.check`.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from acp_agent.agent.resources import PermissionRequest
from acp_agent.content import TextBlock
from acp_agent.errors import AcpAgentError, SessionBusyError, SessionNotFoundError
from acp_agent.events import AnyEvent, Usage, UserMessage
from acp_agent.ids import CallId
from acp_agent.models.base import (
    CallDone,
    Failed,
    Finished,
    ModelRequest,
    StreamEvent,
    TextDelta,
    UserSide,
    UserText,
)
from acp_agent.permissions.access import Ask
from acp_agent.session.prompts import PromptResult
from acp_agent.session.session import Session
from tests.session.agent_and_skill import write_agent
from tests.session.children_at_work import what_is_open
from tests.session.shuffled_loop import ShuffledLoop
from tests.support.model_server import ModelServer
from tests.support.open_session import Desk, RecordingEditor

COUNT = int(os.environ.get("ACP_AGENT_ORDERS", "10"))
FIRST = int(os.environ.get("ACP_AGENT_ORDERS_SEED", "1"))
ACTIONS = 14
NOWHERE = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
CONFIG = 'titles = "prompt"\n[limits]\nmax_calls_all_sessions = 2\n'
BUDGET = "[budget]\nsession_tokens = 20_000\n"


class Wanderer:
    """A model in the test's own process that takes its time and does what is drawn."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self.heard = ""

    async def connect(self) -> None:
        pass

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        self.heard += "\n".join(_said(request))
        await self._while()
        kind = self._draw.choice(["text", "text", "list", "write", "task", "failed"])
        tools = {tool.name for tool in request.tools}
        if kind == "failed":
            yield [Failed(kind="bad_request", message="No.", status=400)]
            return
        if kind == "text" or not tools:
            for piece in ("One ", "two ", "three."):
                yield [TextDelta(piece)]
                await self._while()
        elif kind == "write":
            name = f"{self._draw.randrange(3)}.txt"
            yield [_call(0, "write", path=name, content=str(self._draw.random()))]
        elif kind == "task" and "task" in tools:
            work = {"agent": "explore", "title": "Look", "task": "Look around"}
            yield [_call(index, "task", **work) for index in range(2)]
        else:
            yield [_call(index, "list", path=".") for index in range(2)]
        await self._while()
        yield [Finished(stop="end_turn", usage=Usage(input=500, output=50))]

    async def _while(self) -> None:
        for _ in range(self._draw.randrange(6)):
            await asyncio.sleep(0)

    async def aclose(self) -> None:
        """Nothing is open."""


class Scene:
    """A session, two clients, and what they do to it."""

    def __init__(self, desk: Desk, draw: random.Random) -> None:
        self.desk = desk
        self.draw = draw
        self.session = desk.session.id
        self.editors = [desk.editor, RecordingEditor()]
        for editor in self.editors:
            editor.decide = self._decide
        self.model = Wanderer(draw)
        self.answered: list[str] = []  # what was said in turns that came to their own end
        self.known = {self.session}
        self.acting: list[asyncio.Task[None]] = []
        self.known_as(desk.session)

    async def _decide(self, asking: PermissionRequest, ask: Ask) -> str | None:
        for _ in range(self.draw.randrange(8)):
            await asyncio.sleep(0)
        return self.draw.choice(["allow_once", "allow_always", "reject_once", None])

    async def act(self, number: int) -> None:
        """One action, begun behind some others. What is refused is refused by an error of ours."""
        for _ in range(self.draw.randrange(40)):
            await asyncio.sleep(0)
        editor = self.draw.choice(self.editors)
        doing: list[Callable[[RecordingEditor, int], Awaitable[object]]] = [
            self.say, self.say, self.say, self.say, self.command, self.open, self.open, self.fork,
            self.close, self.cancel, self.cancel_call, self.leave, self.title, self.option,
            self.archive, self.delete, self.hang_up, self.hang_up,
        ]  # fmt: skip
        try:
            await self.draw.choice(doing)(editor, number)
        except SessionBusyError:
            raise  # nobody else is there
        except (AcpAgentError, asyncio.CancelledError):
            pass

    def known_as(self, session: Session) -> Session:
        """A session where nobody waits long for a client that does not come back."""
        self.known.add(session.id)
        session.client._timeout = 0.01
        return session

    def at(self, editor: RecordingEditor) -> Session:
        return self.desk.manager.get(self.session, editor)

    async def say(self, editor: RecordingEditor, number: int) -> None:
        words = f"words-{number}-{self.draw.random()}"
        loop = self.draw.choice(["", "", "/loop 2 "])
        said = await self._prompt(editor, loop + words)
        if said.began or not loop:  # else it is said that no loop can begin now
            self.answered.append(words)

    async def command(self, editor: RecordingEditor, number: int) -> None:
        lines = ["/status", "/compact", "/rewind", "/budget turn 50k", "/skill:none"]
        await self._prompt(editor, self.draw.choice(lines))

    async def _prompt(self, editor: RecordingEditor, text: str) -> PromptResult:
        said = await self.at(editor).prompts.submit(
            (TextBlock(text=text),), cancelled=lambda: False
        )
        if await said.turn.result() != "end_turn":
            raise AcpAgentError("it came to nothing")
        return said

    async def open(self, editor: RecordingEditor, number: int) -> None:
        manager = self.desk.manager
        session = self.known_as(await manager.open(self.session, str(self.desk.folder), []))

        async def settle() -> None:
            for _ in range(self.draw.randrange(8)):
                await asyncio.sleep(0)
            session.attach(editor)

        try:
            await session.core.journal.run_exclusively(settle)
        except BaseException:
            if session.client.current is None:
                manager.close_when_idle(session)
            raise

    async def fork(self, editor: RecordingEditor, number: int) -> None:
        self.known_as(await self.desk.manager.fork(self.session, str(self.desk.folder), [], editor))

    async def close(self, editor: RecordingEditor, number: int) -> None:
        await self.desk.manager.close(self.session, editor)

    async def cancel(self, editor: RecordingEditor, number: int) -> None:
        self.desk.manager.cancel(self.session, editor)

    async def cancel_call(self, editor: RecordingEditor, number: int) -> None:
        turn = self.at(editor).turn
        working = None if turn is None else turn._active
        calls = [] if working is None else list(cast("Any", working.tools.open_calls)._tasks)
        self.at(editor).turns.cancel_call(self.draw.choice([*calls, CallId("none")]))

    async def leave(self, editor: RecordingEditor, number: int) -> None:
        self.desk.manager.release(editor)

    async def title(self, editor: RecordingEditor, number: int) -> None:
        await self.desk.manager.set_title(self.session, f"Title {number}")

    async def option(self, editor: RecordingEditor, number: int) -> None:
        await self.at(editor).set_option("mode", self.draw.choice(["ask", "full"]))

    async def archive(self, editor: RecordingEditor, number: int) -> None:
        await self.desk.manager.archive(self.session)

    async def delete(self, editor: RecordingEditor, number: int) -> None:
        if self.draw.random() < 0.3:  # nothing can be done after it
            await self.desk.manager.delete(self.session)

    async def hang_up(self, editor: RecordingEditor, number: int) -> None:
        """Whoever does something else waits for it no more."""
        self.draw.choice(self.acting).cancel()

    async def check(self) -> None:
        """What has to hold when all is over."""
        services = self.desk.services
        for session in self.known:
            try:
                events = [item.event for item in await services.store.read_all(session)]
            except SessionNotFoundError:
                continue
            known: list[AnyEvent] = events  # type: ignore[assignment]  # none is of a newer version
            if session == self.session:
                assert what_is_open(known) == []
            said = [event for event in known if isinstance(event, UserMessage)]
            assert len({event.message for event in said}) == len(said)
            services.store.lease(session).release()
        for words in self.answered:
            assert words in self.model.heard, "words of a turn that came to its end were not heard"
        for slots in (services.turn_limit, services.call_limit):
            assert not slots._waiting
        assert services.call_limit._free == services.config.limits.max_calls_all_sessions
        assert services.turn_limit._free == services.config.limits.max_turns_all_sessions
        assert services.pending_requests.total().tokens == 0


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_no_order_of_events_loses_anything_or_leaves_it_open(seed: int, tmp_path: Path) -> None:
    faults: list[dict[str, Any]] = []
    with asyncio.Runner(loop_factory=lambda: ShuffledLoop(seed)) as runner:
        runner.get_loop().set_exception_handler(lambda _, context: faults.append(context))
        runner.run(_play(tmp_path, random.Random(seed)))
    assert faults == []


async def _play(folder: Path, draw: random.Random) -> None:
    config = CONFIG + draw.choice(["", BUDGET])
    desk = await Desk.open(folder, ModelServer(), config=config, environ=NOWHERE)
    write_agent(desk.folder)
    scene = Scene(desk, draw)
    desk.services.models.driver = lambda _: scene.model  # type: ignore[method-assign,assignment]
    async with asyncio.timeout(100):
        scene.acting = [asyncio.create_task(scene.act(number)) for number in range(ACTIONS)]
        for outcome in await asyncio.gather(*scene.acting, return_exceptions=True):
            if not isinstance(outcome, asyncio.CancelledError | None):
                raise outcome
        await desk.manager.close_all()
        await scene.check()
        await desk.aclose()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if left:  # a thread that sets up tools cannot be stopped
            await asyncio.wait(left)


def _said(request: ModelRequest) -> list[str]:
    return [
        part.text
        for message in request.messages
        if isinstance(message, UserSide)
        for part in message.parts
        if isinstance(part, UserText)
    ]


def _call(index: int, name: str, **arguments: str) -> CallDone:
    return CallDone(index=index, name=name, arguments=msgspec.json.encode(arguments).decode())
