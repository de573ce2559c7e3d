"""The agent, the model and the user around random sequences of a client's actions.

    world = World(versions=(1, 2), home=home, folders=folders)
    world.do(world.begin())
    session = world.do(world.driver.new(world.folder()))
    world.pressed[session] = "reject_once"    # what the user does about questions
    world.close()

A question that the user answers later, or never, is a `Question` in `world.late`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tests.server.scripted_conduct import Conduct
from tests.server.session_driver import DRIVERS, SessionDriver
from tests.support.agent_process import AgentProcess
from tests.support.editor import Json, selected
from tests.support.model_server import ModelServer
from tests.support.warm_parent import shared_parent

MODEL = ("--model", "openai/gpt-5")
Result = TypeVar("Result")


class Question:
    """A question that the user answers later, or never."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()


class World:
    """The agent, the model and the user: what outlives a sequence.

    The client speaks the first of `versions`, and the next one each time that it comes back.
    """

    def __init__(self, versions: Sequence[int], home: Path, folders: Path) -> None:
        self.versions = versions
        self.visits = 0
        self.home = home
        self.folders = folders
        self.runner = asyncio.Runner()
        self.server = ModelServer()
        self.conduct = Conduct()
        self.server.otherwise = self.conduct.reply
        self.pressed: dict[str, str] = {}  # what the user does about questions, by session
        self.late: dict[str, Question] = {}
        self.number = 0
        self.sequences = 0
        self.agent: AgentProcess | None = None
        self._driver: SessionDriver | None = None
        self.do(self.server.start())

    def do(self, action: Coroutine[Any, Any, Result]) -> Result:
        return self.runner.run(action)

    @property
    def driver(self) -> SessionDriver:
        assert self._driver is not None
        return self._driver

    @property
    def running(self) -> AgentProcess:
        assert self.agent is not None
        return self.agent

    async def begin(self) -> None:
        """Start a sequence, with the agent of the one before where it will do."""
        if self.agent is not None and self.driver.version != self.versions[0]:
            await self.leave(kill=False)
        self.visits = 0
        await self.start()

    async def start(self) -> None:
        """Start an agent, unless a good one is there."""
        if self.agent is not None:
            return
        driver, editor = DRIVERS[self.versions[self.visits % len(self.versions)]]
        self.late.clear()
        self.agent = await AgentProcess.start(
            *MODEL,
            home=self.home,
            editor=editor(permission=self._permission),
            environ=self.server.environ(),
            launch=shared_parent().start,
        )
        self._driver = driver(self.agent)
        await self.driver.start()

    def folder(self) -> Path:
        """A new folder to work in."""
        self.sequences += 1
        folder = self.folders / f"sequence-{self.sequences}"
        folder.mkdir(parents=True)
        (folder / "greeting.py").write_text("print('Hello')\n")
        return folder

    async def leave(self, *, kill: bool) -> None:
        """End the connection in order, or with the agent's death."""
        agent, self.agent = self.running, None
        self.visits += 1
        if kill:
            await agent.kill()
        await agent.stop()

    async def drop(self) -> None:
        """Get rid of an agent that broke a rule."""
        if self.agent is not None:
            agent, self.agent = self.agent, None
            await agent.kill()
            await agent.stop(check=False)

    async def _permission(self, request: Json) -> Json:
        session = request["sessionId"]
        wanted = self.pressed.get(session, "allow_once")
        if wanted == "late":
            question = self.late[session]
            question.asked.set()
            wanted = await question.answered
        for option in request["options"]:
            if option["kind"] == wanted:
                return selected(option["optionId"])
        return {"outcome": "cancelled"}

    def close(self) -> None:
        try:
            self.do(self.drop())
            self.do(self.server.stop())
        finally:
            self.runner.close()
