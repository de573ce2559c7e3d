"""A real agent with an open session in front of a scripted model: what most tests begin with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tests.support.agent_process import AgentProcess
from tests.support.editor import Editor
from tests.support.model_server import Api, Call, ModelServer, Stall

OPENAI = ("--model", "openai/gpt-5")
ANTHROPIC = ("--model", "anthropic/claude-sonnet-4-5")
DEMO = ("--model", "demo/demo")

# Models that do not change with the catalog; `config_file(home, MODELS)` makes them known.
MODELS = """
[models."openai/gpt-5"]
context_window = 200_000
vision = true
thought_levels = ["low", "high"]
price = { input = 2.0, output = 10.0, cache_read = 0.5 }

[models."openai/small"]
context_window = 32_000
thought_levels = ["low", "high"]

[models."anthropic/claude-sonnet-4-5"]
vision = true
"""

READ = Call("read", {"path": "greeting.py"})
EDIT = Call("edit", {"path": "greeting.py", "old": "Hello", "new": "Good day"})


class OpenSession(Protocol):
    """The fixture `opened`: an agent and the id of its session."""

    async def __call__(
        self,
        *arguments: str,
        editor: Editor | None = None,
        api: Api = "openai",
        environ: Mapping[str, str] | None = None,
    ) -> tuple[AgentProcess, str]: ...


def messages(server: ModelServer, request: int = -1) -> list[dict[str, Any]]:
    """The messages of a request that the model was sent, without the system prompt."""
    history: list[dict[str, Any]] = server.requests[request].json["messages"]
    return [message for message in history if message["role"] not in {"system", "developer"}]


def system(server: ModelServer, request: int = -1) -> str:
    """The system prompt that OpenAI's API was sent."""
    first = server.requests[request].json["messages"][0]
    assert first["role"] in {"system", "developer"}
    return str(first["content"])


def calls_by_id(updates: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The updates of each tool call, in order."""
    result: dict[str, list[dict[str, Any]]] = {}
    for update in updates:
        if update["sessionUpdate"] in {"tool_call", "tool_call_update"}:
            result.setdefault(update["toolCallId"], []).append(update)
    return result


async def say_meanwhile(
    running: AgentProcess, session: str, stall: Stall, words: str, more: str
) -> tuple[int, int]:
    """Say more while the model pauses in its answer, which then goes on; the two prompts' ids."""
    first = running.post_prompt(session, words)
    await running.expect_update(session, "agent_message_chunk")
    second = running.post_prompt(session, more)
    await running.request("session/list", {})  # the second prompt was taken in by now
    stall.release()
    return first, second
