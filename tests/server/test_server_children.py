"""Work that is handed to a child session, as clients of all kinds see it, stop it and come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import pytest

from tests.server.server_session import OPENAI, messages
from tests.support.agent_process import AgentProcess, StartAgent
from tests.support.editor import Editor, Json, PermissionPolicy, selected
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.replays import conversation, without_user
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2
from tests.support.v2_view import SessionView
from tests.support.wire_client import AnswerError

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
ENDED = {"completed", "failed", "cancelled"}

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
        return [one for one in self.wire.editor.asked if _title(one) != TITLE]

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
        (name,) = {one["sessionId"] for one in self.wire.updates(self.session, "subagent_update")}
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
            one["params"]["sessionId"]
            for one in self.wire.messages
            if one.get("method") == "session/update"
        )
        if self.kind == "v2":
            return {name: SessionView.of(self.wire.updates(name)).conversation() for name in names}
        return {name: conversation(without_user(self.wire.updates(name))) for name in names}


def _title(asked: Json) -> str:
    return str(asked.get("title") or asked["toolCall"]["title"])


class Connect:
    """Starts one more agent of the same home, with a client of some kind."""

    def __init__(self, agent: StartAgent, server: ModelServer, folder: Path) -> None:
        self._agent = agent
        self._server = server
        self._folder = folder

    async def __call__(
        self, kind: Kind, *, permission: PermissionPolicy = "allow_once", new: bool = True
    ) -> Client:
        editor = (
            EditorV2(offers=frozenset(("elicitation",)), permission=permission)
            if kind == "v2"
            else Editor(
                offers=frozenset(("elicitation", "subagents"))
                if kind == "v1 with subagents"
                else frozenset(),
                permission=permission,
            )
        )
        wire = await self._agent(*OPENAI, editor=editor, environ=self._server.environ())
        client = Client(kind, wire, self._folder)
        await client.initialize()
        if new:
            await client.open()
        return client


@pytest.fixture
def connect(agent: StartAgent, model_server: ModelServer, workspace_repo: Path) -> Connect:
    agents = workspace_repo / ".agents" / "agents"
    agents.mkdir(parents=True)
    (agents / "explore.md").write_text(AGENT)
    return Connect(agent, model_server, workspace_repo)


def works(server: ModelServer, *calls: Call) -> None:
    """A turn that hands a task to a child, which makes these calls."""
    server.add(answer(TASK), *(answer("Let me ", "see.", call) for call in calls))
    server.add(answer("In greeting.py."), answer("It is in greeting.py."))


class Thinking:
    """A user who answers when told to."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._answers = asyncio.Event()

    async def __call__(self, request: Json) -> Json:
        self._asked.set()
        await self._answers.wait()
        return selected(request["options"][0]["optionId"])

    async def asked(self) -> None:
        """Wait until the user is asked."""
        await asyncio.wait_for(self._asked.wait(), 20)

    def allows(self) -> None:
        """The user presses the first button, now and from now on."""
        self._answers.set()


# -- what is seen --------------------------------------------------------------------------------


@every_kind
@pytest.mark.covers("P13", "I6")
async def test_what_a_child_does_is_seen_as_it_works_and_in_a_replay_alike(
    connect: Connect, model_server: ModelServer, kind: Kind
) -> None:
    works(model_server, Call("read", {"path": "greeting.py"}))
    client = await connect(kind)
    assert await client.say() == "end_turn"
    card = client.cards(client.session)[TITLE]
    assert card["status"] == "completed"
    assert "greeting.py" in str(card["content"])
    assert list(client.cards(client.session)) == [TITLE]
    live = client.told()
    if client.knows_children:
        child = client.child()
        assert set(live) == {client.session, child}
        (inner,) = client.cards(child).values()
        assert (inner["kind"], inner["status"]) == ("read", "completed")
        assert "In greeting.py." in str(live[child])
        assert "It is in" not in str(live[child])
        assert not client.wire.updates(child, "user_message")
        (asked,) = client.wire.updates(child, "session_message")
        assert asked["content"] == [{"type": "text", "text": "Where is it?"}]
        sent = [
            one["content"]
            for one in client.wire.updates(client.session, "session_message")
            if "content" in one
        ]
        assert [one[0]["text"] for one in sent] == ["Where is it?", "In greeting.py."]
        (*_, state) = client.wire.updates(client.session, "subagent_update")
        assert state["state"] == {"state": "idle", "stopReason": "end_turn"}
    else:
        assert set(live) == {client.session}
        assert "Let me see." not in str(live)
    await client.wire.stop()
    other = await connect(kind, new=False)
    await other.reopen(client.session)
    again = other.told()
    if kind == "v2":
        assert again == live
    else:
        assert {name: _kept(told) for name, told in again.items()} == {
            name: _kept(told) for name, told in live.items()
        }


def _kept(told: Sequence[Json]) -> list[Json]:
    """What is part of the conversation: the usage is told as it is now."""
    return [one for one in told if one["sessionUpdate"] != "usage_update"]


@every_kind
@pytest.mark.parametrize("permission", ["allow_once", "reject_once", "cancelled"])
@pytest.mark.covers("P13", "P6")
async def test_a_childs_question_reaches_the_user_with_a_card_of_its_own_call(
    connect: Connect,
    model_server: ModelServer,
    workspace_repo: Path,
    kind: Kind,
    permission: PermissionPolicy,
) -> None:
    works(model_server, TOUCH)
    client = await connect(kind, permission=permission)
    stopped = await client.say()
    (asked,) = client.asked
    allowed = permission == "allow_once"
    assert (workspace_repo / "made.txt").exists() == allowed
    if client.knows_children:
        assert asked["sessionId"] == client.child()
        assert "touch made.txt" in _title(asked)
    else:
        assert asked["sessionId"] == client.session
        assert _title(asked).startswith(f"{TITLE} › ")
        assert set(client.cards(client.session)) == {TITLE, _title(asked)}
    (inner,) = (
        card
        for title, card in client.cards(asked["sessionId"]).items()
        if "touch made.txt" in title
    )
    assert inner["status"] == ("completed" if allowed else "failed")
    assert stopped == "end_turn"
    assert messages(model_server)[-1]["role"] == "tool"


@every_kind
@pytest.mark.covers("P13", "S4")
async def test_a_replay_has_the_card_of_what_the_user_was_asked(
    connect: Connect, model_server: ModelServer, kind: Kind
) -> None:
    works(model_server, TOUCH)
    client = await connect(kind)
    await client.say()
    live = client.told()
    await client.wire.stop()
    other = await connect(kind, new=False)
    await other.reopen(client.session)
    if kind == "v2":
        assert other.told() == live
    else:
        assert {name: _kept(told) for name, told in other.told().items()} == {
            name: _kept(told) for name, told in live.items()
        }


async def test_the_whole_session_waits_for_the_user_while_its_child_does(
    connect: Connect, model_server: ModelServer
) -> None:
    works(model_server, TOUCH)
    client = await connect("v2")
    await client.say()
    for session in (client.session, client.child()):
        states = [one["state"] for one in client.wire.updates(session, "state_update")]
        assert states == ["running", "requires_action", "running", "idle"], session


# -- coming back ---------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("replay", [True, False])
@pytest.mark.covers("P13", "S4")
async def test_who_opens_the_session_again_while_a_child_waits_sees_the_child_and_the_rest(
    connect: Connect, model_server: ModelServer, kind: Kind, replay: bool
) -> None:
    if kind == "v1" and not replay:
        pytest.skip("who was never shown a card is shown no further update of it")
    works(model_server, TOUCH)
    user = Thinking()
    client = await connect(kind, permission=user)
    prompt = client.post()
    await user.asked()
    began = len(client.wire.messages)
    await client.reopen(client.session, replay=replay)
    user.allows()
    assert await client.ends(prompt) == "end_turn"
    assert len(client.asked) == 1
    since = [
        (one["params"]["sessionId"], one["params"]["update"])
        for one in client.wire.messages[began:]
        if one.get("method") == "session/update"
    ]
    if client.knows_children:
        child = client.child()
        announced = next(update for _, update in since if update.get("sessionId") == child)
        assert announced["title"] == TITLE
        first = next(at for at, (of, _) in enumerate(since) if of == child)
        assert (client.session, announced) in since[:first]
        states = [update["state"]["state"] for _, update in since if "sessionId" in update]
        assert states[-3:] == ["requires_action", "running", "idle"]
    (asked,) = client.asked
    card = next(
        card
        for title, card in client.cards(asked["sessionId"]).items()
        if "touch made.txt" in title
    )
    assert card["status"] == "completed"


@every_kind
@pytest.mark.covers("P13", "S4")
async def test_a_child_that_was_killed_in_the_middle_is_closed_when_the_session_is_opened(
    connect: Connect, model_server: ModelServer, kind: Kind
) -> None:
    works(model_server, TOUCH)
    user = Thinking()
    client = await connect(kind, permission=user)
    client.post()
    await user.asked()
    await client.wire.kill()
    other = await connect(kind, new=False)
    await other.reopen(client.session)
    (asked,) = client.asked
    cards = other.cards(client.session) | other.cards(asked["sessionId"])
    assert len(cards) == 2
    assert {card["status"] for card in cards.values()} == {"failed"}
    if other.knows_children:
        (*_, last) = other.wire.updates(client.session, "subagent_update")
        assert last["state"] == {"state": "idle", "stopReason": "cancelled"}
    model_server.add(answer("Here I am."))
    assert await other.say() == "end_turn"


# -- stopping ------------------------------------------------------------------------------------


@knows_children
@pytest.mark.covers("P13", "P7")
async def test_a_child_alone_is_stopped_and_its_parent_goes_on(
    connect: Connect, model_server: ModelServer, kind: Kind
) -> None:
    model_server.add(answer(TASK), answer(SLEEP), answer("Then I look myself."))
    client = await connect(kind)
    prompt = client.post()
    await client.child_shows(lambda update: "in_progress" in str(update))
    client.wire.cancel(client.child())
    assert await client.ends(prompt) == "end_turn"
    (*_, last) = client.wire.updates(client.session, "subagent_update")
    assert last["state"] == {"state": "idle", "stopReason": "cancelled"}
    assert "Then I look myself." in str(client.told()[client.session])
    assert client.cards(client.session)[TITLE]["status"] in {"failed", "cancelled"}


@every_kind
@pytest.mark.covers("P13", "P7", "P3")
async def test_cancelling_the_turn_stops_its_child_and_withdraws_its_question(
    connect: Connect, model_server: ModelServer, kind: Kind
) -> None:
    works(model_server, TOUCH)
    user = Thinking()
    client = await connect(kind, permission=user)
    prompt = client.post()
    await user.asked()
    client.wire.cancel(client.session)
    assert await client.ends(prompt) == "cancelled"
    (asked,) = client.asked
    cards = client.cards(client.session) | client.cards(asked["sessionId"])
    assert len(cards) == 2
    assert {card["status"] for card in cards.values()} <= {"failed", "cancelled"}


async def test_one_call_of_a_child_is_stopped_and_the_child_goes_on(
    connect: Connect, model_server: ModelServer
) -> None:
    works(model_server, SLEEP)
    client = await connect("v2")
    prompt = client.post()
    update = await client.child_shows(
        lambda update: (
            update["sessionUpdate"] == "tool_call_update" and update.get("status") == "in_progress"
        ),
    )
    await client.v2.cancel_call(client.child(), update["toolCallId"])
    assert await client.ends(prompt) == "end_turn"
    (inner,) = client.cards(client.child()).values()
    assert inner["status"] == "cancelled"
    assert "In greeting.py." in str(client.told()[client.child()])


async def test_a_command_of_a_child_is_stopped_by_its_terminal(
    connect: Connect, model_server: ModelServer
) -> None:
    works(model_server, SLEEP)
    client = await connect("v2")
    prompt = client.post()
    chunk = await client.child_shows(
        lambda update: update["sessionUpdate"] == "terminal_output_chunk"
    )
    params = {"sessionId": client.child(), "terminalId": chunk["terminalId"]}
    await client.wire.request("terminal/cancel", params, checked=True)
    assert await client.ends(prompt) == "end_turn"


@knows_children
@pytest.mark.covers("P13", "S6")
async def test_nothing_else_can_be_asked_of_a_child_and_the_error_says_what_it_is(
    connect: Connect, model_server: ModelServer, workspace_repo: Path, kind: Kind
) -> None:
    stall = Stall()
    model_server.add(answer(TASK), answer("Let me", stall, " see."), answer("There."))
    client = await connect(kind)
    prompt = client.post()
    await client.child_shows(lambda update: "agent_message" in update["sessionUpdate"])
    child = client.child()
    folder = {"cwd": str(workspace_repo), "mcpServers": []}
    words = {"prompt": [{"type": "text", "text": "Hi"}]}
    option = {"configId": "mode", "value": "ask"} | ({"type": "id"} if kind == "v2" else {})
    asked: list[tuple[str, Json]] = [
        ("session/prompt", words),
        ("session/resume", folder),
        ("session/fork", folder),
        ("session/close", {}),
        ("session/delete", {}),
        ("session/set_config_option", option),
        ("session/archive", {}),
        ("session/set_title", {"title": "x"}),
        ("session/status", {}),
    ]
    for method, params in asked:
        with pytest.raises(AnswerError) as refused:
            await client.wire.request(method, {"sessionId": child} | params)
        assert refused.value.code == -32002, method
        assert "not found" in refused.value.message
        assert f"a child of {client.session}" in refused.value.message
    stall.release()
    assert await client.ends(prompt) == "end_turn"
    assert "Let me see." in str(client.told()[child])
