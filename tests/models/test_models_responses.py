"""OpenAI's Responses API: what is sent, and what its streams say."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from acp_agent.content import ImageBlock
from acp_agent.ids import CallId
from acp_agent.models import openai_responses_request
from acp_agent.models.base import (
    AnswerCall,
    AnswerText,
    AnswerThought,
    CallDone,
    Driver,
    Failed,
    Message,
    ModelRequest,
    ModelSide,
    ThoughtDone,
    ToolResult,
    ToolSpec,
    UserImage,
    UserSide,
    UserText,
)
from acp_agent.models.providers import Dialect, Provider
from tests.support.model_asking import ask, driver_for, gather
from tests.support.model_server import (
    Call,
    ModelServer,
    Raw,
    Redacted,
    Refusal,
    Thought,
    answer,
)

PICTURE = ImageBlock(data="aGk=", mime_type="image/png")
TOOL = ToolSpec(name="read", description="Read a file.", parameters={"type": "object"})
SEAL = {
    "type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}],
    "encrypted_content": "secret", "model": "scripted-model",
}  # fmt: skip
REASONING = AnswerThought(text="Hm", provider="openai", provider_data=SEAL)
HISTORY: list[Message] = [
    UserSide((UserText("Look"), UserImage(PICTURE))),
    ModelSide(
        (
            REASONING,
            AnswerText("I look."),
            AnswerThought(
                text="",
                provider="openai",
                provider_data={"type": "phase", "phase": "commentary", "model": "scripted-model"},
            ),
            AnswerCall(call=CallId("call_1"), name="read", arguments='{ "path":"a.py" }'),
            AnswerCall(call=CallId("call_2"), name="read", arguments="{broken"),
        )
    ),
    UserSide(
        (
            ToolResult(call=CallId("call_1"), text="x = 1", images=(PICTURE,)),
            ToolResult(call=CallId("call_2"), text="No JSON.", failed=True),
        )
    ),
]


@pytest.fixture
async def driver(server: ModelServer) -> AsyncIterator[Driver]:
    made = driver_for("openai_responses", server)
    yield made
    await made.aclose()


def sent(request: ModelRequest, **dialect: Any) -> Any:
    provider = Provider(
        id="openai", name="OpenAI", api="openai_responses", base_url="", dialect=Dialect(**dialect)
    )
    return json.loads(openai_responses_request.body(provider, request))


def thinking(*messages: Message, level: str | None = "high", **fields: Any) -> ModelRequest:
    return ask(
        *messages, thought_level=level, model_reasoning="effort", model_vision=True,
        model_thought_levels=("off", "low", "high"), **fields,
    )  # fmt: skip


def test_the_provider_stores_nothing_and_returns_encrypted_reasoning() -> None:
    written = sent(thinking(tools=[TOOL], session="sess_1"), cache_key=True)
    assert written["store"] is False
    assert written["include"] == ["reasoning.encrypted_content"]
    assert written["reasoning"] == {"effort": "high", "summary": "auto"}
    assert written["prompt_cache_key"] == "sess_1"
    assert written["instructions"] == "Be brief."
    assert "previous_response_id" not in written


def test_a_tool_may_have_parameters_that_are_not_required() -> None:
    (tool,) = sent(ask(tools=[TOOL]))["tools"]
    assert tool == {
        "type": "function", "name": "read", "description": "Read a file.",
        "parameters": {"type": "object"}, "strict": False,
    }  # fmt: skip


@pytest.mark.parametrize(("level", "effort"), [("off", "none"), ("low", "low"), ("high", "high")])
def test_the_thought_level_is_sent_as_an_effort(level: str, effort: str) -> None:
    assert sent(thinking(level=level))["reasoning"]["effort"] == effort


def test_a_model_that_does_not_reason_is_asked_for_no_reasoning() -> None:
    written = sent(ask(thought_level="high"))
    assert not {"reasoning", "include"} & written.keys()


def test_a_conversation_becomes_items_in_their_order() -> None:
    items = sent(thinking(*HISTORY))["input"]
    assert [item["type"] for item in items] == [
        "message", "reasoning", "message", "function_call", "function_call",
        "function_call_output", "function_call_output",
    ]  # fmt: skip
    assert items[0]["content"][1]["image_url"] == "data:image/png;base64,aGk="
    assert items[1] == {
        "type": "reasoning", "id": "rs_1", "summary": SEAL["summary"],
        "encrypted_content": "secret",
    }  # fmt: skip
    assert items[2]["content"] == [{"type": "output_text", "text": "I look."}]
    assert items[2]["phase"] == "commentary"
    assert items[3]["arguments"] == '{ "path":"a.py" }'
    assert items[4]["arguments"] == '{"unreadable_arguments":"{broken"}'
    assert [part["type"] for part in items[5]["output"]] == ["input_text", "input_image"]
    assert items[6]["output"] == "Error: No JSON."


def test_reasoning_of_another_model_or_at_the_end_is_not_sent() -> None:
    items = sent(thinking(*HISTORY, model_id="another"))["input"]
    assert "reasoning" not in {item["type"] for item in items}
    assert "phase" not in items[1]
    alone = sent(thinking(HISTORY[0], ModelSide((AnswerText("I"), REASONING))))["input"]
    assert [item["type"] for item in alone] == ["message", "message"]


def test_a_model_without_vision_gets_text_for_pictures() -> None:
    assert "aGk=" not in json.dumps(sent(ask(*HISTORY, model_vision=False)))


async def test_encrypted_reasoning_is_stored_unchanged(driver: Driver, server: ModelServer) -> None:
    server.add(answer(Thought("Let me see", "sealed"), Redacted("hidden"), "Yes"))
    got = await gather(driver.stream(ask()))
    assert [provider_data["encrypted_content"] for provider_data in got.provider_data] == [
        "sealed",
        "hidden",
    ]
    assert got.provider_data[0]["summary"] == [{"type": "summary_text", "text": "Let me see"}]
    assert {provider_data["model"] for provider_data in got.provider_data} == {"scripted-model"}


async def test_the_phase_of_a_message_is_stored_with_it(
    driver: Driver, server: ModelServer
) -> None:
    server.add(answer("I look.", Call("read", {"path": "a"}), phase="commentary"))
    got = await gather(driver.stream(ask()))
    assert [provider_data["phase"] for provider_data in got.provider_data] == ["commentary"]
    kinds = [type(event) for event in got.events]
    assert kinds.index(ThoughtDone) < kinds.index(CallDone)


async def test_the_parts_of_a_summary_are_paragraphs(driver: Driver, server: ModelServer) -> None:
    def piece(part: int, text: str) -> Raw:
        event = {
            "type": "response.reasoning_summary_text.delta", "output_index": 0,
            "summary_index": part, "delta": text,
        }  # fmt: skip
        return Raw(b"data: " + json.dumps(event).encode() + b"\n\n")

    server.add(answer(piece(0, "One"), piece(0, "."), piece(1, "Two."), "Yes"))
    assert (await gather(driver.stream(ask()))).thought == "One.\n\nTwo."


async def test_a_refusal_is_shown_and_ends_the_turn(driver: Driver, server: ModelServer) -> None:
    server.add(answer(Refusal("I can't "), Refusal("do that.")))
    got = await gather(driver.stream(ask()))
    assert (got.text, got.finished.stop) == ("I can't do that.", "refusal")


@pytest.mark.parametrize(
    ("reason", "stop"), [("max_output_tokens", "max_tokens"), ("content_filter", "refusal")]
)
async def test_an_incomplete_answer_says_why(
    driver: Driver, server: ModelServer, reason: str, stop: str
) -> None:
    server.add(answer("begun", stop=reason))
    assert (await gather(driver.stream(ask()))).finished.stop == stop


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "error", "code": "rate_limit_exceeded", "message": "Slow down"}, "rate_limit"),
        ({"type": "error", "error": {"code": "server_error", "message": "Oh"}}, "server"),
        (
            {
                "type": "response.failed",
                "response": {"error": {"code": "server_error", "message": "Oh"}},
            },
            "server",
        ),
        (
            {
                "type": "response.failed",
                "response": {"error": {"code": "context_length_exceeded", "message": "Long"}},
            },
            "overflow",
        ),
        ({"type": "response.cancelled", "response": {}}, "server"),
    ],
)
async def test_an_error_in_mid_stream_has_its_kind(
    driver: Driver, server: ModelServer, event: dict[str, Any], kind: str
) -> None:
    server.add(answer("begun", Raw(b"data: " + json.dumps(event).encode() + b"\n\n")))
    got = await gather(driver.stream(ask()))
    assert got.text == "begun"
    assert isinstance(got.last, Failed)
    assert got.last.kind == kind


async def test_a_service_that_sends_only_whole_items_is_understood(
    driver: Driver, server: ModelServer
) -> None:
    items: list[dict[str, Any]] = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "Yes"}]},
        {"type": "function_call", "name": "read", "call_id": "c", "arguments": '{"path":"a"}'},
    ]
    whole = [
        Raw(
            b"data: "
            + json.dumps(
                {"type": "response.output_item.done", "output_index": at, "item": item}
            ).encode()
            + b"\n\n"
        )
        for at, item in enumerate(items)
    ]
    server.add(answer(*whole))
    got = await gather(driver.stream(ask()))
    assert (got.thought, got.text) == ("Hm", "Yes")
    assert got.calls == [("read", '{"path":"a"}')]
    assert got.finished.stop == "tool_calls"
