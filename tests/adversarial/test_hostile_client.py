"""A client that never answers, or answers nonsense."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_process import StartAgent
from tests.support.editor import EVERYTHING, Editor
from tests.support.hostile import (
    OpenSession,
    assert_goes_on,
    assert_replays,
    outcomes,
)
from tests.support.model_server import Call, ModelServer, answer

OFFERS = EVERYTHING - {"terminal"}
READ = Call("read", {"path": "greeting.py"})
EDIT = Call("edit", {"path": "greeting.py", "old": "Hello", "new": "Bye"})
ASK = Call("ask_user", {"question": "Which one?"})


class Silent(Editor):
    """Answers everything but the methods that it is told to leave open for ever."""

    def __init__(self, *methods: str, **options: Any) -> None:
        super().__init__(**options)
        for method in methods:
            self._methods[method] = self._never

    async def _never(self, **_: Any) -> Any:
        await asyncio.Event().wait()


class Babbling(Editor):
    """Answers one method with a line of the test's."""

    def __init__(self, method: str, **options: Any) -> None:
        super().__init__(**options)
        self.well_behaved = False
        self.method = method
        self.rest: dict[str, Any] = {}

    async def dispatch(self, line: str) -> str:
        request = json.loads(line)
        if request["method"] != self.method:
            return await super().dispatch(line)
        self.asked.append(request["params"])
        return json.dumps({"jsonrpc": "2.0", "id": request["id"]} | self.rest)


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("session/request_permission", EDIT),
        ("elicitation/create", ASK),
        ("fs/read_text_file", READ),
        ("fs/write_text_file", EDIT),
    ],
)
async def test_a_client_that_never_answers_can_still_cancel_and_prompt_again(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path, method: str, call: Call
) -> None:
    before = (workspace_repo / "greeting.py").read_bytes()
    agent, session = await opened(editor=Silent(method, offers=OFFERS))
    steps = [answer(READ), answer(call)] if call is EDIT else [answer(call)]
    model_server.add(*steps)
    prompt = agent.post_prompt(session, "go")
    asked = await agent.expect(lambda message: message.get("method") == method)
    agent.cancel(session)
    assert (await agent.result(prompt))["stopReason"] == "cancelled"
    withdrawn = await agent.expect(lambda message: message.get("method") == "$/cancel_request")
    assert withdrawn["params"]["requestId"] == asked["id"]  # the client may close its dialog
    assert (workspace_repo / "greeting.py").read_bytes() == before
    # The answer that comes too late changes nothing.
    late = {"outcome": {"outcome": "selected", "optionId": "allow_once"}, "content": "x"}
    await agent.send({"jsonrpc": "2.0", "id": asked["id"], "result": late})
    await assert_goes_on(agent, session, model_server)
    assert (workspace_repo / "greeting.py").read_bytes() == before


async def test_a_client_that_leaves_in_the_middle_of_a_question_ends_the_agent_in_order(
    agent: StartAgent, opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    running, session = await opened(editor=Editor(permission="never"))
    model_server.add(answer("I would ", Call("shell", {"command": "touch ran"})))
    running.post_prompt(session, "go")
    await running.expect(lambda message: message.get("method") == "session/request_permission")
    await running.close_stdin()
    assert await running.wait() == 0
    assert len(model_server.requests) == 1  # the model does not go on without the user
    assert not (workspace_repo / "ran").exists()
    await assert_replays(agent, model_server, session, workspace_repo, running)


ANSWERS: dict[str, dict[str, Any]] = {
    "nothing": {"result": None},
    "no outcome": {"result": {}},
    "a word": {"result": "yes"},
    "true": {"result": True},
    "a list": {"result": [{"outcome": "selected"}]},
    "outcome is text": {"result": {"outcome": "selected"}},
    "no option": {"result": {"outcome": {"outcome": "selected"}}},
    "an unknown option": {"result": {"outcome": {"outcome": "selected", "optionId": "allow_all"}}},
    "an option of another kind": {"result": {"outcome": {"outcome": "selected", "optionId": 1}}},
    "an unknown outcome": {"result": {"outcome": {"outcome": "approved"}}},
    "an error": {"error": {"code": -32601, "message": "no such method"}},
    "an error of another shape": {"error": "no"},
    "an error without a message": {"error": {"code": "x"}},
}


async def test_a_permission_that_is_answered_with_nonsense_is_not_given(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    editor = Babbling("session/request_permission")
    agent, session = await opened(editor=editor)
    for number, (what, rest) in enumerate(ANSWERS.items(), 1):
        editor.rest = rest
        call = Call("shell", {"command": "touch ran"})
        ((told, ended),) = await outcomes(agent, session, model_server, call)
        assert ended["status"] == "failed", what
        assert told, what
        assert len(editor.asked) == number, what
    assert not (workspace_repo / "ran").exists()
    await assert_goes_on(agent, session, model_server)


async def test_an_invalid_answer_to_a_read_fails_in_one_line_and_the_turn_continues(
    opened: OpenSession, model_server: ModelServer
) -> None:
    editor = Babbling("fs/read_text_file", offers=OFFERS)
    agent, session = await opened(editor=editor)
    answers: tuple[dict[str, object], ...] = (
        {"result": None},
        {"result": {}},
        {"result": {"content": 5}},
        {"result": {"content": None}},
        {"result": "text"},
        {"error": {"code": -32603, "message": "one\nTwo\x1b[31m"}},
    )
    for rest in answers:
        editor.rest = rest
        ((told, ended),) = await outcomes(agent, session, model_server, READ)
        assert ended["status"] == "failed", (rest, told)
        assert "def greet" not in told
        assert len(told.splitlines()) == 1
    await assert_goes_on(agent, session, model_server)
