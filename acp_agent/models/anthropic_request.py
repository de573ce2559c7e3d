"""Build the body of a Messages request, with the marks for Anthropic's prompt cache.

The same request gives the same bytes, and each request of a session begins with the bytes of the
previous one, except for the closing brackets. Marks (`cache_control`) are not part of the
comparison. They are set as follows:

- One mark follows the tools and the system prompt.
- With Anthropic itself, a mark on the request applies to the last block. The API searches only a
  limited number of blocks before a mark for cached content. If a step has more blocks, the message
  before it gets a mark too.
- Compatible services and clouds may not support a mark on the request. Instead, the last two
  messages of the user's side are marked: the last to write this request to the cache, the other to
  find the previous request in it.

https://platform.claude.com/docs/en/build-with-claude/prompt-caching
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from acp_agent.content import ImageBlock, JsonObject
from acp_agent.models.base import (
    RESERVED_OUTPUT,
    AnswerCall,
    AnswerSearch,
    AnswerText,
    AnswerThought,
    Message,
    ModelRequest,
    ModelSide,
    ThoughtLevel,
    ToolResult,
    UserImage,
    UserSide,
    UserText,
)
from acp_agent.models.openai_request import chosen_level
from acp_agent.models.providers import Provider
from acp_agent.models.request_parts import MessageCache, as_name, as_object, image_parts

_EncodeImages = Callable[[Sequence[ImageBlock]], list[JsonObject]]  # writes pictures as blocks

_CACHE: JsonObject = {"type": "ephemeral"}
_CACHE_LOOKBACK = 20  # blocks before a mark in which the API searches for cached content
_MAX_MARKS = 2  # in the messages; a request may have four in total
_OFF: JsonObject = {"type": "disabled"}
# https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool
_WEB_SEARCH: JsonObject = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
_MAX_TEMPERATURE = 1.0
# Characters of base64. https://platform.claude.com/docs/en/build-with-claude/vision
_MAX_PICTURE = 10 * 1024 * 1024
_MAX_CLOUD_PICTURE = 5 * 1024 * 1024
# These refuse reasoning without a signature. Compatible services do not sign reasoning.
_SIGNING = frozenset({"anthropic", "bedrock", "vertex"})
_MIN_BUDGET = 1_024  # tokens; the minimum of the API
_BUDGETS: dict[ThoughtLevel, int] = {
    "minimal": 1_024, "low": 4_096, "medium": 10_000, "high": 24_000,
    "xhigh": 32_000, "max": 48_000,
}  # fmt: skip


def body(provider: Provider, request: ModelRequest, cache: MessageCache | None = None) -> bytes:
    """Return the body of a request as JSON."""
    return msgspec.json.encode(build_body(provider, request, cache))


def build_body(
    provider: Provider, request: ModelRequest, cache: MessageCache | None = None
) -> JsonObject:
    """Return the body of a request; values of the type `msgspec.Raw` are JSON already."""
    # The API requires a limit. If it is too high for the model, the driver lowers it.
    limit = request.model.output_limit or RESERVED_OUTPUT
    body: JsonObject = {"model": request.model.id, "max_tokens": limit, "stream": True}
    largest = _MAX_PICTURE if provider.platform is None else _MAX_CLOUD_PICTURE

    def encode_images(images: Sequence[ImageBlock]) -> list[JsonObject]:
        return _images(images, vision=request.model.vision, largest=largest)

    messages = _messages(request, encode_images, cache or MessageCache())
    body.update(_reasoning(request, limit, messages))
    if request.model.temperature is not None and body.get("thinking", _OFF) == _OFF:
        # The API allows at most 1.0, and with reasoning only that value.
        body["temperature"] = min(request.model.temperature, _MAX_TEMPERATURE)
    if provider.id == "anthropic":
        body["cache_control"] = _CACHE
    if request.system:
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHE}]
    tools: list[JsonObject] = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
        for tool in request.tools
    ]
    if request.web_search:
        tools.append(_WEB_SEARCH)
    if tools:
        body["tools"] = tools
    for end in _messages_to_mark(messages, request_marked=provider.id == "anthropic"):
        content = messages[end]["content"]
        content[-1] = {**content[-1], "cache_control": _CACHE}
    body["messages"] = messages
    return body


def _messages_to_mark(messages: Sequence[JsonObject], *, request_marked: bool) -> Sequence[int]:
    """Return the messages to mark; `request_marked` if the request has a mark itself."""
    ends = [at for at, message in enumerate(messages) if message["role"] == "user"]
    if request_marked:
        ends = [
            end
            for end, after in pairwise(ends)
            if _blocks_in(messages, end, after) >= _CACHE_LOOKBACK
        ]
    return ends[-_MAX_MARKS:]


def _blocks_in(messages: Sequence[JsonObject], start: int, end: int) -> int:
    return sum(len(message["content"]) for message in messages[start + 1 : end + 1])


def _reasoning(request: ModelRequest, limit: int, messages: Sequence[JsonObject]) -> JsonObject:
    level = chosen_level(request)
    control = request.model.reasoning
    # "effort" is the control of models that the user configured.
    if level is None or control not in {"adaptive", "between_tools", "budget", "effort"}:
        return {}
    if level == "off":
        return {"thinking": {"type": "between_tools"} if control == "between_tools" else _OFF}
    if control == "budget":
        budget = min(_BUDGETS[level], limit // 2)
        if budget < _MIN_BUDGET or _began_without_thinking(messages):
            return {"thinking": _OFF}
        return {"thinking": {"type": "enabled", "budget_tokens": budget}}
    effort = "low" if level == "minimal" else level
    return {
        # Without `display`, newer models do not return their reasoning.
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": effort},
    }


def _began_without_thinking(messages: Sequence[JsonObject]) -> bool:
    """Return whether the last message has results of calls that no reasoning precedes.

    The agent or another model made such calls. With a budget, the API refuses a request that
    enables reasoning after them in the same turn.
    https://platform.claude.com/docs/en/build-with-claude/extended-thinking
    """
    if len(messages) < 2 or messages[-1]["content"][0]["type"] != "tool_result":
        return False
    return messages[-2]["content"][0]["type"] not in {"thinking", "redacted_thinking"}


def _messages(
    request: ModelRequest, encode_images: _EncodeImages, cache: MessageCache
) -> list[JsonObject]:
    """Return the messages; adjacent ones of one side are joined, as the API requires."""
    model = request.model

    def write(message: Message) -> list[JsonObject]:
        if isinstance(message, UserSide):
            return _user(message, encode_images)
        return _model(message, model.provider, model.id)

    merged: list[JsonObject] = []
    encoded = cache.encode_all(model, request.messages, write)
    for message, blocks in zip(request.messages, encoded, strict=True):
        if not blocks:
            continue
        role = "user" if isinstance(message, UserSide) else "assistant"
        if merged and merged[-1]["role"] == role:
            merged[-1]["content"].extend(blocks)
        else:
            merged.append({"role": role, "content": list(blocks)})
    _drop_half_searches(merged)
    return merged


def _drop_half_searches(messages: Sequence[JsonObject]) -> None:
    """Remove searches without a result and results without a search, which the API refuses.

    Only a search at the very end may lack its result: the API has paused and will continue it.
    """
    for message in messages:
        content: list[JsonObject] = message["content"]
        started = {block["id"] for block in content if block["type"] == "server_tool_use"}
        ended = {
            block["tool_use_id"] for block in content if block["type"] == "web_search_tool_result"
        }
        if message is messages[-1] and content[-1].get("id") in started:
            ended.add(content[-1]["id"])
        complete = started & ended
        if complete != started | ended:
            content[:] = [
                block
                for block in content
                if block["type"] not in {"server_tool_use", "web_search_tool_result"}
                or block.get("id", block.get("tool_use_id")) in complete
            ] or [{"type": "text", "text": "(a search of the web that was cut off)"}]


def _user(message: UserSide, encode_images: _EncodeImages) -> list[JsonObject]:
    results: list[JsonObject] = []
    content: list[JsonObject] = []
    for part in message.parts:
        match part:
            case ToolResult():
                results.append(_result(part, encode_images))
                if part.failed and part.images:
                    # The API refuses a failed result that has anything but text.
                    content.append({"type": "text", "text": f"The pictures of {part.call}:"})
                    content.extend(encode_images(part.images))
            case UserText(text):
                if text.strip():  # the API refuses a block of white space
                    content.append({"type": "text", "text": text})
            case UserImage(image):
                content.extend(encode_images([image]))
    return results + content


def _result(result: ToolResult, encode_images: _EncodeImages) -> JsonObject:
    text = result.text if result.text.strip() else "(no output)"
    content: list[JsonObject] = [{"type": "text", "text": text}]
    block: JsonObject = {"type": "tool_result", "tool_use_id": result.call, "content": content}
    if result.failed:
        block["is_error"] = True
    else:
        content.extend(encode_images(result.images))
    return block


def _images(images: Sequence[ImageBlock], *, vision: bool, largest: int) -> list[JsonObject]:
    return image_parts(
        images,
        vision=vision,
        as_picture=lambda image: {
            "type": "image",
            "source": {"type": "base64", "media_type": image.mime_type, "data": image.data},
        },
        as_text=lambda text: {"type": "text", "text": text},
        largest=largest,
    )


def _model(message: ModelSide, provider: str, model: str) -> list[JsonObject]:
    blocks: list[JsonObject] = []
    for part in message.parts:
        match part:
            case AnswerText(text):
                if text.strip():
                    blocks.append({"type": "text", "text": text})
            case AnswerThought():
                blocks.extend(_thought(part, provider, model))
            case AnswerSearch():
                blocks.extend(_search(part, provider))
            case AnswerCall():
                blocks.append(
                    {
                        "type": "tool_use",
                        "id": part.call,
                        "name": as_name(part.name),
                        # Unchanged: decoding and encoding could change the bytes.
                        "input": msgspec.Raw(as_object(part.arguments).encode()),
                    }
                )
    while blocks and blocks[-1]["type"] in {"thinking", "redacted_thinking"}:
        blocks.pop()  # the API refuses an answer that ends with its reasoning
    return blocks


def _search(search: AnswerSearch, provider: str) -> list[JsonObject]:
    blocks = (search.provider_data or {}).get("blocks")
    if search.provider == provider and blocks:
        return list(blocks)
    return [{"type": "text", "text": search.text}] if search.text else []


def _thought(thought: AnswerThought, provider: str, model: str) -> list[JsonObject]:
    provider_data = thought.provider_data
    if provider_data is None or thought.provider != provider or provider_data.get("model") != model:
        return []
    if provider_data.get("type") == "redacted_thinking":
        return [{"type": "redacted_thinking", "data": provider_data.get("data", "")}]
    signature = provider_data.get("signature", "")
    if not signature and provider in _SIGNING:
        return []  # the answer was cut off during the reasoning
    return [{"type": "thinking", "thinking": thought.text, "signature": signature}]
