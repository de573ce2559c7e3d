"""What must hold of an agent whatever it was given: nothing broke, nothing was given away."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.support.agent_process import AgentProcess, StartAgent, config_file
from tests.support.editor import Editor
from tests.support.model_server import Call, ModelServer, Status, answer
from tests.support.replays import conversation, without_user

MODEL = ("--model", "openai/gpt-5")
# Floods are not for a model's window to stop.
ENDLESS_WINDOW = '[models."openai/gpt-5"]\ncontext_window = 10_000_000\n'

# A key of no known form, so that only knowing it helps; it opens nothing.
KEY = "open-sesame+4711/hushhush"
# A key that is known by its form, as it may lie in a file; it opens nothing either.
FOREIGN_KEY = "ghp_" + "0aB1cD2eF3" * 4

Json = dict[str, Any]


class OpenSession(Protocol):
    """The fixture `opened`: an agent in front of the scripted model, and its session's id."""

    async def __call__(
        self,
        *arguments: str,
        editor: Editor | None = None,
        environ: Mapping[str, str] | None = None,
        config: str | None = None,
        cwd: Path | None = None,
    ) -> tuple[AgentProcess, str]:
        """Start an agent, with a configuration, and open a session in the sample repository."""
        ...


def key_environ(server: ModelServer) -> dict[str, str]:
    """The variables that point an agent at `server` with a key that can be looked for."""
    return server.environ("openai") | {"OPENAI_API_KEY": KEY}


@pytest.fixture
def unharmed(home: Path) -> Iterator[list[AgentProcess]]:
    """Collects agents; when the test is over, nothing of theirs may show a fault or a key.

    It is set up before the agents, so that it looks after they have ended.
    """
    agents: list[AgentProcess] = []
    yield agents
    for one in agents:
        assert_unharmed(one)
    assert_no_key_below(home, "the home folder")


@pytest.fixture
def opened(
    unharmed: list[AgentProcess],
    agent: StartAgent,
    model_server: ModelServer,
    home: Path,
    workspace_repo: Path,
) -> OpenSession:
    """A factory: `running, session = await opened(config="...")`."""

    async def start(
        *arguments: str,
        editor: Editor | None = None,
        environ: Mapping[str, str] | None = None,
        config: str | None = None,
        cwd: Path | None = None,
    ) -> tuple[AgentProcess, str]:
        if config is not None:
            config_file(home, config)
        running = await agent(
            *(arguments or MODEL),
            editor=editor,
            environ=key_environ(model_server) | dict(environ or {}),
        )
        unharmed.append(running)
        await running.initialize()
        return running, await running.new_session(cwd or workspace_repo)

    return start


def assert_unharmed(agent: AgentProcess) -> None:
    """No traceback reached the user, and no key anyone."""
    assert b"Traceback" not in agent.stderr, agent.stderr.decode()
    for what, data in (("stderr", agent.stderr), ("stdout", b"".join(agent.lines))):
        for key in (KEY, FOREIGN_KEY):
            assert key.encode() not in data, f"a key is in what the agent wrote to {what}"


def assert_no_key_below(folder: Path, what: str) -> None:
    """No file of the agent's (journal, logs, outputs) holds a key."""
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "secrets.json":
            data = path.read_bytes()
            for key in (KEY, FOREIGN_KEY):
                assert key.encode() not in data, f"a key is in {path.name} of {what}"


def tool_results(server: ModelServer, request: int = -1) -> list[str]:
    """What the model was told by its tools, in order, in a request."""
    return [
        message["content"] if isinstance(message["content"], str) else str(message["content"])
        for message in server.requests[request].json["messages"]
        if message["role"] == "tool"
    ]


async def outcomes(
    agent: AgentProcess, session: str, server: ModelServer, *calls: Call
) -> list[tuple[str, Json]]:
    """Run calls in one answer; for each what the model was told, and the update that ended it."""
    server.add(answer(*calls), answer("I see."))
    before = len(agent.updates(session))
    assert (await agent.prompt(session, "go", timeout=120))["stopReason"] == "end_turn"
    updates = agent.updates(session)[before:]
    order = [one["toolCallId"] for one in updates if one["sessionUpdate"] == "tool_call"]
    ended = {
        one["toolCallId"]: one for one in updates if one.get("status") in {"completed", "failed"}
    }
    told = tool_results(server)[-len(calls) :]
    assert len(told) == len(order) == len(calls)
    return [(text, ended[call]) for text, call in zip(told, order, strict=True)]


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


async def assert_goes_on(agent: AgentProcess, session: str, server: ModelServer) -> None:
    """The session takes a further prompt and answers it."""
    count = len(server.requests)
    server.add(answer("Still here."))
    assert (await agent.prompt(session, "are you there?"))["stopReason"] == "end_turn"
    assert len(server.requests) == count + 1
    assert agent.text(session).endswith("Still here.")


def bound_by_permissions() -> tuple[str, ...]:
    """The beginning of a command line that lets file permissions bind root as anyone else.

    Skips the test where that is not possible.
    """
    if os.geteuid() != 0:
        return ()
    command = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--")
    try:
        subprocess.run([*command, "true"], check=True, capture_output=True, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"root cannot be bound by permissions here: {error}")
    return command


def one_line(text: str) -> bool:
    """Whether a message is one that a person can read: a single line of some words."""
    return len(text.splitlines()) == 1 and len(text.split()) > 2 and "Traceback" not in text


def leaky(code: int) -> Status:
    """A provider's error that repeats the key, as some do."""
    message = f"Incorrect API key provided: {KEY}. It is {KEY}!"
    return Status(code=code, message=message, headers={"retry-after-ms": "1"})
