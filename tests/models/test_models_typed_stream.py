"""Our decoding held against the SDKs' own typed streams, on the same bytes."""

from collections.abc import Sequence
from typing import Any

import pytest

from acp_agent.events import Usage
from tests.support.model_asking import KEY, ask, driver_for, gather
from tests.support.model_server import (
    Answer,
    Call,
    CallPiece,
    CallStart,
    ModelServer,
    Raw,
    Redacted,
    Refusal,
    Thought,
    answer,
)

SCRIPTS = {
    "text": answer("Hel", "lo ", "wörld 😀"),
    "reasoning": answer(Thought("I "), Thought("think", signature="s1"), "Yes"),
    "hidden reasoning": answer(Redacted("c2VjcmV0"), "Yes"),
    "a call": answer("Let me see.", Call("read", {"path": "ä.py"}, pieces=5)),
    "several calls": answer(Call("read", {"path": "a"}), Call("list", {}), Call("read", {"n": 1})),
    "interleaved calls": answer(
        CallStart(0, "read"), CallStart(1, "list"), CallPiece(1, '{"a"'), CallPiece(0, '{"b"'),
        CallPiece(1, ": 1}"), CallPiece(0, ": 2}"),
    ),
    "reasoning between calls": answer(
        Thought("First", signature="s1"), Call("read", {"path": "a"}), "Then", Call("list", {})
    ),
    "cached input": answer(
        "Yes", usage=Usage(input=1000, output=7, cache_read=800, cache_write=100, reasoning=0)
    ),
    "comments": answer("a", Raw(b": keep-alive\n\n"), "b"),
    "one byte at a time": answer("Größe", Call("read", {"path": "ü"}), write_size=1),
    "a refusal": answer(Refusal("I can"), Refusal("not.")),
    "what a message was for": answer("I look.", Call("list", {}), phase="commentary"),
    "an answer that became too long": answer("It is", stop="max_output_tokens"),
}  # fmt: skip


async def typed_openai(server: ModelServer, script: Answer) -> dict[str, Any]:
    import openai

    server.add(script)
    client = openai.AsyncOpenAI(api_key=KEY, base_url=server.openai_url, max_retries=0)
    text = thought = ""
    calls: dict[int, list[str]] = {}
    usage = None
    stream = await client.chat.completions.create(
        model="m", messages=[], stream=True, stream_options={"include_usage": True}
    )
    async for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            thought += getattr(choice.delta, "reasoning_content", None) or ""
            for piece in choice.delta.tool_calls or ():
                assert piece.function is not None
                call = calls.setdefault(piece.index, ["", ""])
                call[0] += piece.function.name or ""
                call[1] += piece.function.arguments or ""
    await client.close()
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    return {
        "text": text,
        "thought": thought,
        "calls": [(name, arguments or "{}") for name, arguments in calls.values()],
        "input": usage.prompt_tokens,
        "output": usage.completion_tokens,
        "cached": usage.prompt_tokens_details.cached_tokens,
    }


async def typed_anthropic(server: ModelServer, script: Answer) -> dict[str, Any]:
    import anthropic

    server.add(script)
    client = anthropic.AsyncAnthropic(api_key=KEY, base_url=server.url, max_retries=0)
    return await read_anthropic(client)


async def read_anthropic(client: Any) -> dict[str, Any]:
    asked: Sequence[Any] = [{"role": "user", "content": "Hi"}]
    async with client.messages.stream(model="m", max_tokens=9, messages=asked) as stream:
        message = await stream.get_final_message()
    await client.close()
    usage = message.usage
    read, made = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    return {
        "text": "".join(block.text for block in message.content if block.type == "text"),
        "thought": "".join(b.thinking for b in message.content if b.type == "thinking"),
        "provider_data": [
            block.signature if block.type == "thinking" else block.data
            for block in message.content
            if block.type in {"thinking", "redacted_thinking"}
        ],
        "calls": [(b.name, b.input) for b in message.content if b.type == "tool_use"],
        "input": usage.input_tokens + read + made,
        "output": usage.output_tokens,
        "cached": read,
    }


async def typed_responses(server: ModelServer, script: Answer) -> dict[str, Any]:
    import openai

    server.add(script)
    client = openai.AsyncOpenAI(api_key=KEY, base_url=server.openai_url, max_retries=0)
    text = thought = ""
    response = None
    async for event in await client.responses.create(model="m", input="Hi", stream=True):
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                text += event.delta
            case "response.reasoning_summary_text.delta":
                thought += event.delta
            case "response.completed" | "response.incomplete":
                response = event.response
    await client.close()
    assert response is not None
    assert response.usage is not None
    usage = response.usage
    refused = any(
        part.type == "refusal"
        for item in response.output
        if item.type == "message"
        for part in item.content
    )
    calls = [(i.name, i.arguments or "{}") for i in response.output if i.type == "function_call"]
    stop = "refusal" if refused else "tool_calls" if calls else "end_turn"
    return {
        "text": text,
        # One summary a reasoning item here, each a thought of its own.
        "thought": thought,
        "provider_data": [
            item.encrypted_content if item.type == "reasoning" else item.phase
            for item in response.output
            if item.type in {"reasoning", "message"}
            and (getattr(item, "encrypted_content", None) or getattr(item, "phase", None))
        ],
        "calls": calls,
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cached": usage.input_tokens_details.cached_tokens,
        "written": usage.input_tokens_details.cache_write_tokens,
        "stop": "max_tokens" if response.incomplete_details else stop,
    }


async def typed_bedrock(server: ModelServer, script: Answer) -> dict[str, Any]:
    """Amazon's own decoder of the same bytes."""
    import anthropic

    server.add(script)
    client = anthropic.AsyncAnthropicBedrock(
        api_key=KEY, aws_region="us-east-1", base_url=server.url, max_retries=0
    )
    return await read_anthropic(client)


async def ours(api: str, server: ModelServer, script: Answer) -> dict[str, Any]:
    import json

    server.add(script)
    driver = driver_for(api, server)
    got = await gather(driver.stream(ask(provider=api)))
    await driver.aclose()
    usage = got.finished.usage
    read: dict[str, Any] = {
        "text": got.text,
        "thought": got.thought,
        "calls": got.calls,
        "input": usage.input,
        "output": usage.output,
        "cached": usage.cache_read,
    }
    if api == "openai_responses":
        read["provider_data"] = [
            provider_data.get("encrypted_content", provider_data.get("phase"))
            for provider_data in got.provider_data
        ]
        read["written"], read["stop"] = usage.cache_write, got.finished.stop
    if api in {"anthropic", "bedrock"}:
        read["calls"] = [(name, json.loads(arguments)) for name, arguments in got.calls]
        read["provider_data"] = [
            provider_data.get("signature", provider_data.get("data"))
            for provider_data in got.provider_data
        ]
    return read


def can_send(api: str, name: str) -> bool:
    """Whether a script is one of an API's."""
    if "refusal" in name or "too long" in name:
        return api == "openai_responses"
    return not (api == "bedrock" and name == "comments")  # its encoding has none


@pytest.mark.parametrize(
    ("api", "name"),
    [
        (api, name)
        for api in ("openai", "openai_responses", "anthropic", "bedrock")
        for name in SCRIPTS
        if can_send(api, name)
    ],
)
async def test_our_decoder_agrees_with_the_providers_typed_stream(
    server: ModelServer, api: str, name: str
) -> None:
    script = SCRIPTS[name]
    typed = {
        "openai": typed_openai,
        "openai_responses": typed_responses,
        "anthropic": typed_anthropic,
        "bedrock": typed_bedrock,
    }[api]
    assert await ours(api, server, script) == await typed(server, script)
