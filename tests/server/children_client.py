"""A client of either version, with or without child sessions, and a project that has an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from tests.server.server_session import OPENAI
from tests.support.agent_process import AgentProcess, StartAgent
from tests.support.editor import Editor, Json, PermissionPolicy, selected
from tests.support.model_server import Call, ModelServer, answer
from tests.support.replays import conversation, without_user
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2
from tests.support.v2_view import SessionView

Kind = Literal["v1", "v1 with subagents", "v2"]

AGENT = """---
name: explore
description: Finds its way in code that nobody knows.
---
You look around and say where things are.
"""
TASK = Call("task", {"agent": "explore", "title": "find the greeting", "task": "Where is it?"})
TITLE = "explore: find the greeting"
TOUCH = Call("shell", {"command": "touch made.txt"})
SLEEP = Call("shell", {"command": "printf begun; sleep 300"})

every_kind = pytest.mark.parametrize("kind", ["v1", "v1 with subagents", "v2"])
knows_children = pytest.mark.parametrize("kind", ["v1 with subagents", "v2"])


class Client:
    """A client of some kind with a session whose project has an agent."""

    def __init__(self, kind: Kind, wire: AgentProcess, folder: Path) -> None:
        self.kind = kind
        self.wire = wire
        self.v2 = V2Client(wire)
        self.session = ""
        self._folder = folder

    @property
    def knows_children(self) -> bool:
        return self.kind != "v1"

    @property
    def asked(self) -> list[Json]:
        """What the user was asked, the permission for the task itself left out."""
        return [request for request in self.wire.editor.asked if question_title(request) != TITLE]

    async def initialize(self) -> None:
        await (self.v2.initialize() if self.kind == "v2" else self.wire.initialize())

    async def open(self) -> None:
        opener = self.v2 if self.kind == "v2" else self.wire
        self.session = await opener.new_session(self._folder)

    async def reopen(self, session: str, *, replay: bool = True) -> None:
        """`session/load`, or `session/resume`."""
        self.session = session
        if self.kind == "v2":
            await self.v2.resume(session, self._folder, replay=replay)
            return
        params: Json = {"sessionId": session, "cwd": str(self._folder), "mcpServers": []}
        method = "session/load" if replay else "session/resume"
        await self.wire.request(method, params, checked=True)

    def post(self, words: str = "Where is the greeting?") -> int:
        return (self.v2 if self.kind == "v2" else self.wire).post_prompt(self.session, words)

    async def ends(self, prompt: int) -> str:
        """The stop reason of the turn that a prompt began."""
        if self.kind == "v2":
            ended = await self.v2.idle(self.session, await self.v2.said(prompt))
        else:
            ended = await self.wire.result(prompt)
        return str(ended["stopReason"])

    async def say(self) -> str:
        return await self.ends(self.post())

    def child(self) -> str:
        """The one child that was announced."""
        (name,) = {
            update["sessionId"] for update in self.wire.updates(self.session, "subagent_update")
        }
        assert isinstance(name, str)
        return name

    def cards(self, session: str) -> dict[str, Json]:
        """The calls of a session as they are shown in the end, by their titles."""
        if self.kind == "v2":
            view = SessionView.of(self.wire.updates(session))
            return {card["title"]: card for card in view.calls.values()}
        cards: dict[str, Json] = {}
        for update in self.wire.updates(session):
            if update["sessionUpdate"] in {"tool_call", "tool_call_update"}:
                cards.setdefault(update["toolCallId"], {}).update(update)
        return {card["title"]: card for card in cards.values()}

    async def child_shows(self, holds: Callable[[Json], bool]) -> Json:
        """The first update of a child that is as wanted, when it is there."""
        message = await self.wire.expect(
            lambda one: (
                one.get("method") == "session/update"
                and one["params"]["sessionId"] != self.session
                and holds(one["params"]["update"])
            )
        )
        update = message["params"]["update"]
        assert isinstance(update, dict)
        return update

    def told(self) -> dict[str, list[Json]]:
        """The conversation as it was told, by session, in a form that two can be compared in."""
        names = dict.fromkeys(
            message["params"]["sessionId"]
            for message in self.wire.messages
            if message.get("method") == "session/update"
        )
        if self.kind == "v2":
            return {name: SessionView.of(self.wire.updates(name)).conversation() for name in names}
        return {name: conversation(without_user(self.wire.updates(name))) for name in names}


def question_title(requested: Json) -> str:
    """What the user is asked about."""
    return str(requested.get("title") or requested["toolCall"]["title"])


class ClientOf:
    """Starts one more agent of the same home, with a client of some kind."""

    def __init__(self, agent: StartAgent, server: ModelServer, folder: Path) -> None:
        self._agent = agent
        self._server = server
        self._folder = folder
        agents = folder / ".agents" / "agents"
        agents.mkdir(parents=True)
        (agents / "explore.md").write_text(AGENT)

    async def __call__(
        self, kind: Kind, *, permission: PermissionPolicy = "allow_once", new: bool = True
    ) -> Client:
        editor = (
            EditorV2(offers=frozenset(("elicitation",)), permission=permission)
            if kind == "v2"
            else Editor(
                offers=frozenset(("notices", "elicitation", "subagents"))
                if kind == "v1 with subagents"
                else frozenset(("notices",)),
                permission=permission,
            )
        )
        wire = await self._agent(*OPENAI, editor=editor, environ=self._server.environ())
        client = Client(kind, wire, self._folder)
        await client.initialize()
        if new:
            await client.open()
        return client


def works(server: ModelServer, *calls: Call) -> None:
    """A turn that hands a task to a child, which makes these calls."""
    server.add(answer(TASK), *(answer("Let me ", "see.", call) for call in calls))
    server.add(answer("In greeting.py."), answer("It is in greeting.py."))


class Thinking:
    """A user who answers when told to."""

    def __init__(self) -> None:
        self._asked = asyncio.Semaphore(0)
        self._answers = asyncio.Event()

    async def __call__(self, request: Json) -> Json:
        self._asked.release()
        await self._answers.wait()
        return selected(request["options"][0]["optionId"])

    async def asked(self) -> None:
        """Wait until the user is asked, once more."""
        await asyncio.wait_for(self._asked.acquire(), 60)

    def allows(self) -> None:
        """The user presses the first button, now and from now on."""
        self._answers.set()
