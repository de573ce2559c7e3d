"""The Gemini API: what is sent, and what its streams say."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from acp_agent.content import ImageBlock
from acp_agent.events import Usage
from acp_agent.ids import CallId
from acp_agent.models import gemini_driver
from acp_agent.models.base import (
    AnswerCall,
    AnswerText,
    AnswerThought,
    CallDone,
    Driver,
    Failed,
    Message,
    ModelSide,
    ToolResult,
    ToolSpec,
    UserSide,
    UserText,
)
from tests.support.model_asking import KEY, ask, driver_for, gather
from tests.support.model_server import (
    Call,
    ModelServer,
    Raw,
    Redacted,
    Status,
    Thought,
    answer,
)

PICTURE = ImageBlock(data="aGk=", mime_type="image/png")
HELLO = UserSide((UserText("Hello"),))


@pytest.fixture
async def driver(server: ModelServer) -> AsyncIterator[Driver]:
    made = driver_for("gemini", server)
    yield made
    await made.aclose()


def sent(*messages: Message, **fields: Any) -> Any:
    return json.loads(gemini_driver.body(ask(*messages, provider="gemini", **fields)))


def called(name: str, **provider_data: Any) -> AnswerCall:
    own = {"gemini": "scripted-model", **provider_data} if provider_data else None
    return AnswerCall(call=CallId(f"call_{name}"), name=name, arguments="{}", provider_data=own)


async def test_the_key_is_in_a_header_and_in_no_address(
    driver: Driver, server: ModelServer
) -> None:
    server.add(answer("Hello"))
    await gather(driver.stream(ask()))
    request = server.requests[0]
    assert request.path == "/v1beta/models/scripted-model:streamGenerateContent"
    assert request.headers["x-goog-api-key"] == KEY
    assert "authorization" not in request.headers


def test_tools_and_the_system_prompt_have_geminis_form() -> None:
    tool = ToolSpec(name="read", description="Read.", parameters={"type": "object"})
    written = sent(tools=[tool], model_max_output=500)
    assert written["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    (declared,) = written["tools"][0]["functionDeclarations"]
    assert declared["parametersJsonSchema"] == {"type": "object"}
    assert written["generationConfig"] == {"maxOutputTokens": 500}


@pytest.mark.parametrize(
    ("control", "level", "config"),
    [
        ("thinking_level", "low", {"thinkingLevel": "low", "includeThoughts": True}),
        ("thinking_level", "minimal", {"thinkingLevel": "minimal", "includeThoughts": True}),
        ("effort", "high", {"thinkingLevel": "high", "includeThoughts": True}),
        ("thinking_level", "xhigh", {"thinkingLevel": "xhigh", "includeThoughts": True}),
        ("thinking_level", "max", {"thinkingLevel": "xhigh", "includeThoughts": True}),
        ("thinking_budget", "high", {"thinkingBudget": 24_576, "includeThoughts": True}),
        ("thinking_budget", "off", {"thinkingBudget": 0, "includeThoughts": False}),
    ],
)
def test_how_much_to_think_is_a_level_or_a_budget(
    control: str, level: str, config: dict[str, Any]
) -> None:
    levels = ("off", "minimal", "low", "high", "xhigh", "max")
    written = sent(thought_level=level, model_reasoning=control, model_thought_levels=levels)
    assert written["generationConfig"]["thinkingConfig"] == config


def test_results_stand_in_the_order_of_their_calls_with_their_pictures_behind() -> None:
    results = UserSide(
        (
            ToolResult(call=CallId("call_read"), text="x", images=(PICTURE,)),
            ToolResult(call=CallId("call_list"), text="no such folder", failed=True),
        )
    )
    said = ModelSide((called("read", thoughtSignature="s", id="g1"), called("list", x=1)))
    contents = sent(HELLO, said, results, HELLO, model_vision=True)["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user"]
    first, second, label, picture, hello = contents[2]["parts"]
    assert first["functionResponse"] == {
        "id": "g1", "name": "read", "response": {"output": "x"},
    }  # fmt: skip
    assert second["functionResponse"] == {
        "name": "list", "response": {"error": "no such folder"},
    }  # fmt: skip
    assert "call_read" in label["text"]
    assert picture == {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    assert hello == {"text": "Hello"}


async def test_signatures_go_back_in_the_parts_in_which_they_came(
    driver: Driver, server: ModelServer
) -> None:
    parts: list[dict[str, Any]] = [
        {"text": "Let me see.", "thought": True},
        {"text": "I look at "},
        {"text": "both.", "thoughtSignature": "s1"},
        {"functionCall": {"name": "read", "args": {"path": "ä"}}, "thoughtSignature": "s2"},
        {"functionCall": {"name": "list", "args": {}}},
    ]
    server.add(
        answer(
            *(
                Raw(
                    b"data: "
                    + json.dumps({"candidates": [{"content": {"parts": [part]}}]}).encode()
                    + b"\n\n"
                )
                for part in parts
            )
        )
    )
    got = await gather(driver.stream(ask(provider="gemini")))
    calls = [event for event in got.events if isinstance(event, CallDone)]
    (provider_data,) = got.provider_data
    said = ModelSide(
        (
            AnswerThought(text=got.thought),
            AnswerText(got.text),
            AnswerThought(text="", provider="gemini", provider_data=provider_data),
            *(
                AnswerCall(
                    call=CallId(call.name),
                    name=call.name,
                    arguments=call.arguments,
                    provider_data=call.provider_data,
                )
                for call in calls
            ),
        )
    )
    back = sent(HELLO, said)["contents"][1]["parts"]
    assert back == parts[1:]  # a summary of thoughts is not sent back
    other = json.dumps(sent(HELLO, said, model_id="another")["contents"])
    assert '"s1"' not in other
    assert '"s2"' not in other


def test_a_signature_without_text_is_sent_back_without_text() -> None:
    provider_data = {
        "part": "text",
        "length": 0,
        "thoughtSignature": "s",
        "gemini": "scripted-model",
    }
    said = ModelSide(
        (AnswerText("Yes"), AnswerThought(text="", provider="gemini", provider_data=provider_data))
    )
    parts = sent(HELLO, said)["contents"][1]["parts"]
    assert parts == [{"text": "Yes"}, {"text": "", "thoughtSignature": "s"}]


def test_a_call_of_another_model_needs_no_signature() -> None:
    parts = sent(HELLO, ModelSide((called("read"), called("list"))))["contents"][1]["parts"]
    assert parts[0]["thoughtSignature"] == gemini_driver.FOREIGN_CALL
    assert "thoughtSignature" not in parts[1]


async def test_thoughts_count_as_output_and_cached_tokens_as_input(
    driver: Driver, server: ModelServer
) -> None:
    usage = Usage(input=1000, output=50, cache_read=800, reasoning=30)
    server.add(answer("Yes", usage=usage))
    assert (await gather(driver.stream(ask()))).finished.usage == usage


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("STOP", "end_turn"), ("MAX_TOKENS", "max_tokens"), ("SAFETY", "refusal"),
        ("RECITATION", "refusal"), ("PROHIBITED_CONTENT", "refusal"), ("SOMETHING_NEW", "end_turn"),
    ],
)  # fmt: skip
async def test_the_reason_for_the_end_of_an_answer_is_reported(
    driver: Driver, server: ModelServer, reason: str, stop: str
) -> None:
    server.add(answer("begun", stop=reason))
    assert (await gather(driver.stream(ask()))).finished.stop == stop


async def test_a_question_that_the_api_blocks_is_a_refusal_that_says_so(
    driver: Driver, server: ModelServer
) -> None:
    blocked = b'data: {"promptFeedback": {"blockReason": "SAFETY"}}\n\n'
    server.add(answer(Raw(blocked), ended=False))
    got = await gather(driver.stream(ask()))
    assert got.finished.stop == "refusal"
    assert "SAFETY" in got.finished.why


async def test_a_malformed_call_of_the_model_is_requested_again(
    driver: Driver, server: ModelServer
) -> None:
    server.add(answer(stop="MALFORMED_FUNCTION_CALL"))
    got = await gather(driver.stream(ask()))
    assert isinstance(got.last, Failed)
    assert got.last.kind == "malformed"


async def test_calls_without_ids_are_distinguished_by_their_order(
    driver: Driver, server: ModelServer
) -> None:
    server.add(answer(Redacted("s"), Call("read", {"n": 1}), Call("read", {"n": 2})))
    got = await gather(driver.stream(ask()))
    assert got.calls == [("read", '{"n": 1}'), ("read", '{"n": 2}')]
    assert got.finished.stop == "tool_calls"


@pytest.mark.parametrize(
    ("code", "message", "status", "kind"),
    [
        (400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT", "auth"),
        (403, "No permission", "PERMISSION_DENIED", "auth"),
        (429, "Too many", "RESOURCE_EXHAUSTED", "rate_limit"),
        (503, "The model is overloaded.", "UNAVAILABLE", "overloaded"),
        (400, "The input token count exceeds the context window", "INVALID_ARGUMENT", "overflow"),
        (404, "models/x is not found", "NOT_FOUND", "not_found"),
    ],
)
async def test_googles_errors_have_their_kinds(
    driver: Driver, server: ModelServer, code: int, message: str, status: str, kind: str
) -> None:
    server.add(Status(code=code, message=message, kind=status))
    got = await gather(driver.stream(ask()))
    assert isinstance(got.last, Failed)
    assert got.last.kind == kind


async def test_a_thought_is_shown_as_a_thought(driver: Driver, server: ModelServer) -> None:
    server.add(answer(Thought("Hm. "), Thought("Yes."), "It is."))
    got = await gather(driver.stream(ask()))
    assert (got.thought, got.text) == ("Hm. Yes.", "It is.")
