"""What is cached of a session's requests: recorded bodies, read as Anthropic's cache reads them.

The rules are those of platform.claude.com/docs/en/build-with-claude/prompt-caching: a request is
written to the cache up to each of its breakpoints, at most four; each breakpoint looks for what was
written up to 20 blocks before it; a breakpoint itself is no part of what is compared; the request's
own `cache_control` stands for one on its last block.
"""

import copy
import json
from typing import Any

import msgspec
import pytest

from acp_agent.content import ImageBlock
from acp_agent.ids import CallId
from acp_agent.models.anthropic_driver import AnthropicDriver
from acp_agent.models.base import (
    AnswerCall,
    AnswerText,
    Message,
    ModelSide,
    ToolResult,
    ToolSpec,
    UserImage,
    UserSide,
    UserText,
)
from tests.support.model_asking import anthropic_provider, ask, driver_for, gather
from tests.support.model_server import ModelServer, answer

LOOKBACK = 20  # blocks
TOOL = ToolSpec(name="read", description="Read a file.", parameters={"type": "object"})


class Cache:
    """Anthropic's, for the requests of one session."""

    def __init__(self) -> None:
        self.written: set[str] = set()

    def read(self, body: dict[str, Any]) -> tuple[int, int]:
        """How many blocks of a request are found, and how many it has."""
        given = copy.deepcopy(body)
        blocks = [*given.get("tools", ()), *given["system"]]
        for message in given["messages"]:
            blocks.extend({"role": message["role"], **block} for block in message["content"])
        marks = [at for at, block in enumerate(blocks) if block.pop("cache_control", None)]
        if "cache_control" in given and len(blocks) - 1 not in marks:
            marks.append(len(blocks) - 1)
        assert 0 < len(marks) <= 4
        prefixes = [json.dumps(blocks[: at + 1]) for at in range(len(blocks))]
        found = 0
        for mark in marks:
            near = range(mark, max(-1, mark - LOOKBACK), -1)
            hit = next((at + 1 for at in near if prefixes[at] in self.written), 0)
            found = max(found, hit)
        self.written |= {prefixes[mark] for mark in marks}
        return found, len(blocks)


def session(turns: int, calls_each: int = 3) -> list[list[Message]]:
    """The messages of each request: turns, each with parallel calls and their results."""
    requests: list[list[Message]] = []
    said: list[Message] = []
    for turn in range(turns):
        picture = (UserImage(ImageBlock(data="aGk=", mime_type="image/png")),) if turn == 2 else ()
        said.append(UserSide((UserText(f"Question {turn}"), *picture)))
        requests.append(list(said))
        ids = [CallId(f"call_{turn}_{n}") for n in range(calls_each)]
        calls = tuple(AnswerCall(call=id_, name="read", arguments="{}") for id_ in ids)
        said.append(ModelSide((AnswerText("I look."), *calls)))
        said.append(UserSide(tuple(ToolResult(call=id_, text="x") for id_ in ids)))
        requests.append(list(said))
        said.append(ModelSide((AnswerText(f"Answer {turn}"),)))
    return requests


@pytest.mark.parametrize("api", ["anthropic", "bedrock", "vertex"])
async def test_each_request_of_five_turns_reads_the_previous_one_from_the_cache(
    server: ModelServer, api: str
) -> None:
    driver = driver_for(api, server)
    server.otherwise = answer("Yes")
    for messages in session(5):
        await gather(driver.stream(ask(*messages, provider=api, tools=[TOOL], model_vision=True)))
    await driver.aclose()
    cache, before = Cache(), 0
    for request in server.requests:
        found, whole = cache.read(request.json)
        assert found == before
        before = whole
    assert len(server.requests) == 10


async def test_another_service_that_speaks_the_api_finds_the_request_before(
    server: ModelServer,
) -> None:
    provider = msgspec.structs.replace(anthropic_provider(server), id="company", name="Company")
    driver = AnthropicDriver(provider)
    server.otherwise = answer("Yes")
    for messages in session(5):
        await gather(driver.stream(ask(*messages, provider="company", tools=[TOOL])))
    await driver.aclose()
    cache, before = Cache(), 0
    for request in server.requests:
        assert "cache_control" not in request.json  # it may not know that
        found, whole = cache.read(request.json)
        assert found == before
        before = whole


@pytest.mark.parametrize("api", ["anthropic", "bedrock"])
async def test_another_session_finds_the_tools_and_the_system_prompt(
    server: ModelServer, api: str
) -> None:
    driver = driver_for(api, server)
    server.otherwise = answer("Yes")
    for words in ("One thing", "Another thing"):
        message = UserSide((UserText(words),))
        await gather(driver.stream(ask(message, provider=api, tools=[TOOL])))
    await driver.aclose()
    cache = Cache()
    assert cache.read(server.requests[0].json) == (0, 3)
    assert cache.read(server.requests[1].json) == (2, 3)


@pytest.mark.parametrize("api", ["anthropic", "bedrock", "vertex"])
@pytest.mark.parametrize("calls", [9, 10, 15])
async def test_a_step_of_many_calls_does_not_hide_the_request_before_it(
    server: ModelServer, api: str, calls: int
) -> None:
    driver = driver_for(api, server)
    server.otherwise = answer("Yes")
    for messages in session(4, calls_each=calls):  # more blocks than a breakpoint looks back over
        await gather(driver.stream(ask(*messages, provider=api, tools=[TOOL])))
    await driver.aclose()
    cache, before = Cache(), 0
    for request in server.requests:
        found, whole = cache.read(request.json)
        assert found == before
        before = whole
