"""Models with a dialect, over a real server: what they are sent, and what their answers become."""

import itertools
import json
from collections.abc import AsyncIterator, Sequence
from types import AsyncGeneratorType
from typing import Any

import pytest
from msgspec import structs

from acp_agent.config.model_types import ModelConfig, ProviderConfig
from acp_agent.config.types import Config
from acp_agent.errors import ConfigError
from acp_agent.ids import CallId
from acp_agent.models.base import (
    AnswerCall,
    AnswerText,
    Driver,
    Message,
    ModelInfo,
    ModelRequest,
    ModelSide,
    StreamEvent,
    ToolResult,
    UserSide,
    UserText,
)
from acp_agent.models.dialects import constrained
from acp_agent.models.dialects.driver import FORMS, DialectDriver
from acp_agent.models.dialects.writers import writer
from acp_agent.models.openai_driver import OpenAIDriver
from acp_agent.models.registry import Models
from tests.models.configured_models import LearnsNothing
from tests.models.dialect_reading import READ, TOOLS, WRITE, seen
from tests.support.model_asking import Gathered, ask, gather, openai_provider
from tests.support.model_server import Cut, ModelServer, Stall, answer

HISTORY: list[Message] = [
    UserSide((UserText("Look at a.py"),)),
    ModelSide(
        (
            AnswerText("I look."),
            AnswerCall(call=CallId("c1"), name="read", arguments='{"path": "a.py"}'),
            AnswerCall(call=CallId("c2"), name="read", arguments="{broken"),
        )
    ),
    UserSide(
        (
            ToolResult(call=CallId("c1"), text="x = 1"),
            ToolResult(call=CallId("c2"), text="No JSON.", failed=True),
            UserText("And then?"),
        )
    ),
]


async def asked(
    server: ModelServer, dialect: str | None, *messages: Message, tools: bool = False
) -> Gathered:
    driver = DialectDriver(OpenAIDriver(openai_provider(server)))
    request = ask(*messages, model_tool_dialect=dialect, model_tools=tools, tools=(READ, WRITE))
    got = await gather(driver.stream(request))
    await driver.aclose()
    return got


@pytest.mark.parametrize("dialect", FORMS)
async def test_a_model_without_an_api_for_tools_writes_calls_as_text(
    server: ModelServer, dialect: str
) -> None:
    server.add(answer(*writer(dialect).calls([(2, "read", '{"path": "b.py"}')])))
    got = await asked(server, dialect, *HISTORY)
    assert got.calls == [("read", '{"path": "b.py"}')]
    assert got.finished.stop == "tool_calls"
    assert got.text == ""
    body = server.requests[0].json
    assert "tools" not in body
    system, user, model, results = body["messages"]
    assert "Read a file." in system["content"]
    assert system["content"].startswith("Be brief.")
    assert user["content"] == "Look at a.py"
    assert model["content"].startswith("I look.")
    assert "unreadable_arguments" in model["content"]
    assert [message["role"] for message in body["messages"]] == [
        "system", "user", "assistant", "user",
    ]  # fmt: skip
    told = json.dumps(results["content"])
    assert "x = 1" in told
    assert "Error: No JSON." in told
    assert "And then?" in told


async def test_calls_that_leak_into_the_text_of_an_api_with_tools_are_removed(
    server: ModelServer,
) -> None:
    call = writer("hermes").calls([(0, "read", '{"path": "a"}')])
    server.add(answer("I look.\n", call))
    got = await asked(server, "hermes", tools=True)
    assert (got.text, got.calls) == ("I look.\n", [("read", '{"path": "a"}')])
    assert [tool["function"]["name"] for tool in server.requests[0].json["tools"]] == [
        "read", "write",
    ]  # fmt: skip


async def test_a_model_without_a_dialect_is_left_alone(server: ModelServer) -> None:
    call = writer("hermes").calls([(0, "read", '{"path": "a"}')])
    server.add(answer(call))
    got = await asked(server, None, tools=True)
    assert (got.text, got.calls) == (call, [])


async def test_text_that_was_held_is_shown_when_the_connection_breaks(server: ModelServer) -> None:
    server.add(answer("Fine <", Cut()))
    got = await asked(server, "hermes")
    assert got.text == "Fine <"


async def test_each_request_begins_with_the_previous_one(server: ModelServer) -> None:
    bodies = []
    for count in (1, 3):
        server.add(answer("Yes"))
        await asked(server, "qwen_coder", *HISTORY[:count])
        bodies.append(server.requests[-1].body.removesuffix(b"]}"))
    for one, other in itertools.pairwise(bodies):
        assert other.startswith(one)


def spoken(*pieces: str, cut: bool = False) -> Sequence[tuple[str, ...]]:
    reader = constrained.Reader(TOOLS)
    events = [event for piece in pieces for event in reader.feed(piece)]
    return seen([*events, *reader.end(cut=cut)])


async def test_a_small_model_is_held_to_calls_and_answers(server: ModelServer) -> None:
    server.add(answer('{ "tool": "read", ', '"args": {"path": "a.py"} }'))
    got = await asked(server, "constrained")
    assert got.calls == [("read", '{"path": "a.py"}')]
    body = server.requests[0].json
    assert "tools" not in body
    schema = body["response_format"]["json_schema"]["schema"]
    tools = [variant["properties"]["tool"]["enum"] for variant in schema["anyOf"][:-1]]
    assert tools == [["read"], ["write"]]
    assert list(schema["anyOf"][-1]["properties"]) == ["answer"]
    system = body["messages"][0]["content"]
    assert 'Read the file src/main.c → {"tool": "read", "args": {"path": "src/main.c"}}' in system
    assert 'Hello! → {"answer": ' in system
    assert '"shell"' not in system, "no example of a tool that is not there"


@pytest.mark.parametrize("text", [
    'Hello "you" \\ / \b\f\n\r\t', "\U0001f600 é ｜", "", '{"tool": "read", "args": {}}',
])  # fmt: skip
@pytest.mark.parametrize("ascii_only", [True, False])
def test_the_text_of_an_answer_is_shown_as_it_arrives(text: str, ascii_only: bool) -> None:
    written = json.dumps({"answer": text}, ensure_ascii=ascii_only, indent=1)
    expected = [("text", text)] if text else []
    assert spoken(written) == expected
    assert spoken(*written) == expected, "a character at a time"
    reader = constrained.Reader(TOOLS)
    early = seen(reader.feed('{"answer": "Half a se'))
    assert early == [("text", "Half a se")]


def test_an_incomplete_constrained_call_never_runs() -> None:
    half = '{"tool": "read", "args": {"path": "a'
    assert spoken(half, cut=True) == []
    [(kind, _, arguments)] = spoken(half)
    assert kind == "call"
    assert arguments.startswith("The call has no end")


def test_the_answer_of_a_server_without_schemas_is_text() -> None:
    assert spoken("Hello", " there") == [("text", "Hello there")]


def test_the_schema_uses_only_features_that_grammars_support() -> None:
    simple = constrained.simplify_schema(READ.parameters)
    assert simple["properties"]["tags"] == {"type": "array", "items": {"type": "string"}}
    assert "$defs" not in simple
    assert simple["properties"]["limit"]["anyOf"][0]["maximum"] == 1_000_000, "it ends somewhere"
    assert simple["additionalProperties"] is False


class NoSecrets(LearnsNothing):
    def get(self, provider: str, key_env: Sequence[str]) -> str | None:
        return "sk-test-none"


def models(**changes: Any) -> Models:
    own = {
        "own": ProviderConfig(api=changes.pop("api", "openai"), base_url="http://127.0.0.1:9/v1")
    }
    return Models(
        Config(providers=own, models={"own/small": ModelConfig(**changes)}), NoSecrets(), {}
    )


def info(**changes: Any) -> ModelInfo:
    return models(**changes).resolve("own/small")


def test_the_configuration_says_which_dialect_a_model_has() -> None:
    assert info(tool_dialect="hermes").tool_dialect == "hermes"
    assert info(tool_dialect="hermes").tools is True
    assert info(tools=False, tool_dialect="kimi").tools is False
    assert info(tools=False).tool_dialect == "fenced", "it has to write calls somehow"
    assert info().tool_dialect is None


async def test_the_driver_of_a_model_with_a_dialect_reads_it() -> None:
    chosen = models(tool_dialect="glm")
    model = chosen.resolve("own/small")
    assert isinstance(chosen.driver(model), DialectDriver)
    assert isinstance(chosen.driver(structs.replace(model, tool_dialect=None)), OpenAIDriver)
    await chosen.aclose()


async def test_closing_closes_the_stream_below_before_it_returns(server: ModelServer) -> None:
    made: list[AsyncGeneratorType[Sequence[StreamEvent]]] = []
    below = OpenAIDriver(openai_provider(server))

    class Watched(Driver):
        def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
            stream = below.stream(request)
            assert isinstance(stream, AsyncGeneratorType)
            made.append(stream)
            return stream

        async def connect(self) -> None:
            pass

        async def aclose(self) -> None:
            await below.aclose()

    server.add(answer("Half", Stall()))
    driver = DialectDriver(Watched())
    stream = driver.stream(ask(model_tool_dialect="hermes"))
    await anext(stream)
    await stream.aclose()
    assert made[0].ag_frame is None  # the generator has ended
    await driver.aclose()


def test_a_schema_can_only_be_asked_of_chat_completions() -> None:
    chosen = models(tool_dialect="constrained", api="anthropic")
    with pytest.raises(ConfigError, match="tool_dialect"):
        chosen.driver(chosen.resolve("own/small"))
