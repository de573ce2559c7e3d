"""A client that never answers, answers nonsense, never reads, or dies."""

from __future__ import annotations

import asyncio
import fcntl
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartAgent
from tests.support.agent_process import AgentProcess
from tests.support.editor import EVERYTHING, Editor
from tests.support.hostile import (
    MODEL,
    OpenSession,
    assert_goes_on,
    key_environ,
    outcomes,
    resident_memory,
)
from tests.support.model_server import Answer, Call, ModelServer, Stall, Text, answer
from tests.support.replays import conversation, without_user

OFFERS = EVERYTHING - {"terminal"}
READ = Call("read", {"path": "greeting.py"})
EDIT = Call("edit", {"path": "greeting.py", "old": "Hello", "new": "Bye"})
F_SETPIPE_SZ = getattr(fcntl, "F_SETPIPE_SZ", None)  # Linux only
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
    assert await agent.result(prompt, timeout=5) == {"stopReason": "cancelled"}
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
    assert await running.wait(timeout=8) == 0
    assert len(model_server.requests) == 1  # the model does not go on without the user
    assert not (workspace_repo / "ran").exists()
    await assert_replays(agent, model_server, session, workspace_repo, running)


async def assert_replays(
    agent: StartAgent,
    server: ModelServer,
    session: str,
    cwd: Path,
    first: AgentProcess,
) -> None:
    """Another process shows all that the first one had shown, and goes on."""
    shown = conversation(first.updates(session))
    other = await agent(
        *MODEL, editor=Editor(offers=first.editor.offers), environ=key_environ(server)
    )
    await other.initialize()
    await other.request("session/load", {"sessionId": session, "cwd": str(cwd), "mcpServers": []})
    told = without_user(conversation(other.updates(session)))
    *whole, last = shown
    assert told[: len(whole)] == whole
    if isinstance(last.get("content"), dict):  # more of it may have been on its way
        assert told[len(whole)]["content"]["text"].startswith(last["content"]["text"])
    await assert_goes_on(other, session, server)


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


async def test_a_file_that_the_client_answers_with_nonsense_is_read_from_disk(
    opened: OpenSession, model_server: ModelServer
) -> None:
    editor = Babbling("fs/read_text_file", offers=OFFERS)
    agent, session = await opened(editor=editor)
    for rest in (
        {"result": None},
        {"result": {}},
        {"result": {"content": 5}},
        {"result": {"content": None}},
        {"result": "text"},
        {"error": {"code": -32603, "message": "one\nTwo\x1b[31m"}},
    ):
        editor.rest = rest
        ((told, ended),) = await outcomes(agent, session, model_server, READ)
        assert ended["status"] == "completed", (rest, told)
        assert "def greet" in told
    await assert_goes_on(agent, session, model_server)


# --- a client that does not read


class Counted(list[Any]):
    """Steps of an answer, counted as the server takes them."""

    taken = 0

    def __iter__(self) -> Iterator[Any]:
        for step in super().__iter__():
            self.taken += 1
            yield step


async def until_still(steps: Counted, *, within: float = 20.0) -> None:
    """Wait until the server has not been able to send anything for half a second."""
    loop = asyncio.get_running_loop()
    deadline, since, last = loop.time() + within, loop.time(), -1
    while loop.time() - since < 0.5 or last == 0:
        assert loop.time() < deadline, "the stream goes on and on"
        if steps.taken != last:
            last, since = steps.taken, loop.time()
        await asyncio.sleep(0.02)


async def test_a_client_that_does_not_read_costs_bounded_memory_and_then_misses_nothing(
    opened: OpenSession, model_server: ModelServer
) -> None:
    steps = Counted(Text(f"{number:07} " + "x" * 9_990 + "\n") for number in range(6_000))
    agent, session = await opened(config="[limits]\nstall_seconds = 0.3\nretries = 0\n")
    await assert_goes_on(agent, session, model_server)
    before = resident_memory(agent.process.pid)

    agent.may_read.clear()
    model_server.add(Answer(steps=steps))
    prompt = agent.post_prompt(session, "tell me all")
    await until_still(steps)
    assert steps.taken < len(steps)  # the provider is made to wait, longer than a stall may last
    assert resident_memory(agent.process.pid) - before < 25 << 20

    agent.may_read.set()
    assert await agent.result(prompt, timeout=60) == {"stopReason": "end_turn"}
    text = agent.text(session).removeprefix("Still here.")
    assert [line[:7] for line in text.splitlines()] == [f"{n:07}" for n in range(6_000)]


async def test_a_client_that_neither_reads_nor_stays_lets_the_agent_end_in_time(
    agent: StartAgent, opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    running, session = await opened()
    model_server.add(answer(*["word " * 200] * 3_000, Stall()))
    running.post_prompt(session, "go")
    await running.expect_update(session, "agent_message_chunk")
    running.may_read.clear()
    await running.close_stdin()
    running.cut_off = True
    assert await exit_status(running, within=8) == 0
    running.may_read.set()
    await running.stop()
    assert b"not everything could be ended" not in running.stderr
    await assert_replays(agent, model_server, session, workspace_repo, running)


async def exit_status(agent: AgentProcess, *, within: float) -> int:
    """The status of an agent that ends while nobody reads what it wrote."""
    deadline = asyncio.get_running_loop().time() + within
    while (status := agent.process.returncode) is None:
        assert asyncio.get_running_loop().time() < deadline, f"it runs on after {within} s"
        await asyncio.sleep(0.02)
    return status


@pytest.mark.parametrize("moment", ["streaming", "a command runs", "idle"])
async def test_a_client_that_dies_takes_the_agent_and_its_commands_with_it_and_loses_nothing(
    agent: StartAgent,
    opened: OpenSession,
    model_server: ModelServer,
    workspace_repo: Path,
    moment: str,
) -> None:
    running, session = await opened()
    if moment == "a command runs":
        model_server.add(answer("Wait. ", Call("shell", {"command": "sleep 300"})))
        running.post_prompt(session, "go")
        await running.expect_update(
            session, "tool_call_update", lambda update: update.get("status") == "in_progress"
        )
    elif moment == "streaming":
        model_server.add(answer("begun ", *["word "] * 50, Stall()))
        running.post_prompt(session, "go")
        await running.expect_update(session, "agent_message_chunk")
    else:
        await assert_goes_on(running, session, model_server)
    running.cut_off = True
    # What the kernel does when a process dies: all of its ends of pipes are closed at once.
    for descriptor in (0, 1, 2):
        running.process._transport.get_pipe_transport(descriptor).close()
    assert await running.wait(timeout=9) == 0
    assert running.left_behind() == {}
    await assert_replays(agent, model_server, session, workspace_repo, running)


async def test_a_client_that_only_stops_listening_ends_the_agent_when_it_next_speaks(
    agent: StartAgent, opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    running, session = await opened()
    stall = Stall()
    model_server.add(answer("begun ", stall, *["more "] * 100, Stall()))
    running.post_prompt(session, "go")
    await running.expect_update(session, "agent_message_chunk")
    running.cut_off = True
    running.process._transport.get_pipe_transport(1).close()
    stall.release()  # stdin stays open: only writing tells that nobody reads any more
    assert await running.wait(timeout=9) == 0
    await assert_replays(agent, model_server, session, workspace_repo, running)


@pytest.mark.skipif(F_SETPIPE_SZ is None, reason="the system cannot shorten a pipe")
async def test_stderr_that_nobody_reads_stops_nothing(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    (workspace_repo / "AGENTS.md").mkdir()  # each session's first prompt warns of it
    agent, session = await opened()
    pipe = agent.process._transport.get_pipe_transport(2)
    fcntl.fcntl(pipe.get_extra_info("pipe"), F_SETPIPE_SZ, 4096)
    await assert_goes_on(agent, session, model_server)
    while b"AGENTS.md" not in agent.stderr:
        await asyncio.sleep(0.01)
    pipe.pause_reading()
    for _ in range(4096 // len(agent.stderr) + 5):
        session = await agent.new_session(workspace_repo)
        await assert_goes_on(agent, session, model_server)
    pipe.resume_reading()
