"""What a session of version 2 is said to be doing: running, waiting for the user, idle.

Source: Agent Client Protocol v2, Prompt Lifecycle, Session States; the schema's StateUpdate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonrpcserver import Success

from tests.server.server_session import EDIT, READ
from tests.server.v2_session import OpenV2, states
from tests.session.agent_and_skill import TASK, write_agent
from tests.support.agent_process import config_file
from tests.support.editor import constant
from tests.support.framing import Json
from tests.support.model_server import Call, ModelServer, Stall, answer
from tests.support.v2_editor import ALL_OF_V2

QUESTION = Call("ask_user", {"question": "Which colour?"})


class HeldAnswer:
    """A user who decides when the test says so."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[asyncio.Future[str]] = asyncio.Queue()

    async def __call__(self, request: Json) -> Json:
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.asked.put_nowait(answer)
        return {"outcome": "selected", "optionId": option(request, await answer)}

    async def next(self) -> asyncio.Future[str]:
        """The next question, when it was asked."""
        return await asyncio.wait_for(self.asked.get(), 60)


def option(request: Json, kind: str) -> str:
    """The id of the button of this kind."""
    return next(str(option["optionId"]) for option in request["options"] if option["kind"] == kind)


def in_state(state: str) -> Callable[[object], bool]:
    return lambda view: getattr(view, "state", None) == state


@pytest.mark.covers("P6")
@pytest.mark.parametrize("kind", ["allow_always", "reject_once"])
async def test_a_session_waits_for_the_user_while_permission_is_asked_and_runs_when_they_decided(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path, kind: str
) -> None:
    model_server.add(answer(READ), answer(EDIT), answer("Well."))
    user = HeldAnswer()
    client, session = await opened_v2(permission=user)
    message = await client.said(client.post_prompt(session, "Go"))
    deciding = await user.next()
    await client.expect_view(session, in_state("requires_action"))
    assert states(client, session) == ["running", "requires_action"]
    deciding.set_result(kind)
    assert (await client.idle(session, message))["stopReason"] == "end_turn"
    updates = ["running", "requires_action", "running", "idle: end_turn"]
    assert states(client, session) == updates
    changed = "Good day" in (workspace_repo / "greeting.py").read_text()
    assert changed == (kind != "reject_once")
    status = [call["status"] for call in client.view(session).calls.values()]
    assert status == ["completed", "completed" if changed else "failed"]


@pytest.mark.covers("P12")
async def test_a_session_waits_for_the_user_while_a_form_is_open(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    model_server.add(answer(QUESTION), answer("Blue it is."))
    client, session = await opened_v2(offers=ALL_OF_V2)
    client.wire.editor.answer = lambda _: {"action": "accept", "content": {"answer": "blue"}}
    assert (await client.prompt(session, "Go"))["stopReason"] == "end_turn"
    assert states(client, session) == ["running", "requires_action", "running", "idle: end_turn"]
    (form,) = client.wire.editor.questions
    assert form["sessionId"] == session
    assert form["toolCallId"] in client.view(session).calls


@pytest.mark.covers("P6")
async def test_each_of_several_questions_is_waited_for(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    calls = [Call("write", {"path": f"{name}.txt", "content": name}) for name in "abc"]
    model_server.add(answer(*calls), answer("Done."))
    user = HeldAnswer()
    client, session = await opened_v2(permission=user)
    message = await client.said(client.post_prompt(session, "Go"))
    for kind in ("allow_once", "reject_once", "allow_once"):
        (await user.next()).set_result(kind)
    assert (await client.idle(session, message))["stopReason"] == "end_turn"
    first_state, *between, ended = states(client, session)
    assert (first_state, ended) == ("running", "idle: end_turn")
    # Once more where a call is still being looked at while another one's question is open.
    assert len(between) >= 6
    assert between == ["requires_action", "running"] * (len(between) // 2)
    assert [(workspace_repo / f"{name}.txt").exists() for name in "abc"] == [True, False, True]


@pytest.mark.covers("P6", "P3")
async def test_a_session_runs_while_something_is_read_during_a_question(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path, home: Path
) -> None:
    config_file(home, f'trusted_folders = ["{workspace_repo}"]\n')
    write_agent(workspace_repo)
    stall = Stall()
    model_server.add(
        answer(TASK, Call("web_fetch", {"url": "https://example.com/"})),
        answer("It is ", stall, "4711."),
        answer("Done."),
    )
    user = HeldAnswer()
    client, session = await opened_v2(permission=user)
    message = await client.said(client.post_prompt(session, "Go"))
    deciding = await user.next()
    task, _ = client.view(session).calls
    await client.expect_view(session, lambda view: view.calls[task]["status"] == "in_progress")
    await client.wire.request("session/list", {})
    assert states(client, session) == ["running"]
    stall.release()
    await client.expect_view(session, lambda view: view.calls[task]["status"] == "completed")
    await client.expect_view(session, lambda view: view.state == "requires_action")
    deciding.set_result("reject_once")
    assert (await client.idle(session, message))["stopReason"] == "end_turn"
    assert states(client, session) == ["running", "requires_action", "running", "idle: end_turn"]


@pytest.mark.covers("P6")
async def test_an_answer_that_names_no_button_is_no_approval(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    outcomes: list[Json] = [
        {"outcome": "selected", "optionId": "allow_everything"},
        {"outcome": "cancelled"},
        {"outcome": "_later", "when": "tomorrow"},
    ]

    async def answers(_: Json) -> Json:
        return outcomes.pop(0)

    calls = [Call("write", {"path": f"{name}.txt", "content": name}) for name in "abc"]
    model_server.add(answer(*calls), answer("I see."))
    client, session = await opened_v2(permission=answers)
    assert (await client.prompt(session, "Go"))["stopReason"] == "end_turn"
    assert outcomes == []
    assert [call["status"] for call in client.view(session).calls.values()] == ["failed"] * 3
    assert not list(workspace_repo.glob("*.txt"))


@pytest.mark.covers("P6")
async def test_a_client_that_fails_to_ask_is_no_approval_and_the_session_continues(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    async def fails(_: Json) -> Json:
        raise RuntimeError("no window to ask in")

    model_server.add(answer(Call("write", {"path": "a.txt", "content": "a"})), answer("I see."))
    client, session = await opened_v2(permission=fails)
    client.wire.editor.well_behaved = False
    assert (await client.prompt(session, "Go"))["stopReason"] == "end_turn"
    assert states(client, session) == ["running", "requires_action", "running", "idle: end_turn"]
    assert not (workspace_repo / "a.txt").exists()


@pytest.mark.covers("P12")
async def test_a_form_that_is_not_filled_in_ends_the_wait(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    client, session = await opened_v2(offers=ALL_OF_V2)
    for result in ({"action": "decline"}, {"action": "cancel"}, {"action": "_later"}):
        model_server.add(answer(QUESTION), answer("Without, then."))
        client.wire.editor.answer = constant(result)
        ended = await client.prompt(session, "Go")
        assert ended["stopReason"] in {"end_turn", "cancelled"}
        assert client.view(session).state == "idle"


@pytest.mark.covers("P12")
async def test_a_client_that_resumes_while_a_form_is_open_sees_that_the_user_is_awaited(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    opened, filled = asyncio.Event(), asyncio.Event()

    async def fill_in(**_: Json) -> object:
        opened.set()
        await filled.wait()
        return Success({"action": "accept", "content": {"answer": "blue"}})

    model_server.add(answer(QUESTION), answer("Blue it is."))
    client, session = await opened_v2(offers=ALL_OF_V2)
    client.wire.editor._methods["elicitation/create"] = fill_in
    message = await client.said(client.post_prompt(session, "Go"))
    await asyncio.wait_for(opened.wait(), 60)
    view = await client.resume(session, workspace_repo)
    assert view.state == "requires_action"
    filled.set()
    assert (await client.idle(session, message))["stopReason"] == "end_turn"
    assert states(client, session) == ["requires_action", "running", "idle: end_turn"]


@pytest.mark.covers("P10")
async def test_two_sessions_have_each_its_own_state(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    stall = Stall()
    model_server.add(answer("Long", stall), answer("Short."))
    client, slow = await opened_v2()
    fast = await client.new_session(workspace_repo)
    message = await client.said(client.post_prompt(slow, "take your time"))
    await client.expect_view(slow, lambda view: view.text() == "Long")
    assert (await client.prompt(fast, "be quick"))["stopReason"] == "end_turn"
    assert states(client, slow) == ["running"]
    stall.release()
    assert (await client.idle(slow, message))["stopReason"] == "end_turn"
    assert states(client, fast) == ["running", "idle: end_turn"]
