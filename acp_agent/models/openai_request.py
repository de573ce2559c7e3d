"""Build the body of a chat-completions request.

The same request gives the same bytes. The messages, which change between the requests of a session,
are at the end. Each request therefore begins with the bytes of the previous one, except for the
two closing brackets, and providers find it in their caches.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from acp_agent.content import ImageBlock, JsonObject
from acp_agent.models.base import (
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
from acp_agent.models.providers import Dialect, Provider
from acp_agent.models.request_parts import JsonCache, as_name, as_object, image_parts


def body(provider: Provider, request: ModelRequest, cache: JsonCache | None = None) -> bytes:
    """Return the body of a request as JSON."""
    dialect = provider.dialect
    payload: JsonObject = {"model": request.model.id, "stream": True}
    payload["stream_options"] = {"include_usage": True}
    limit = request.model.output_limit
    if dialect.max_tokens is not None and limit is not None:
        payload[dialect.max_tokens] = limit
    if request.model.temperature is not None:
        payload["temperature"] = request.model.temperature
    payload.update(_reasoning(request))
    if dialect.cache_key and request.session:
        payload["prompt_cache_key"] = request.session
    if dialect.cache_control and request.model.id.startswith("anthropic/"):
        # Without this, the requests to these models are not cached.
        # https://openrouter.ai/docs/guides/best-practices/prompt-caching
        payload["cache_control"] = {"type": "ephemeral"}
    if request.tools:
        payload["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in request.tools
        ]
    if request.answer_schema is not None:
        schema = {"name": "answer", "strict": True, "schema": request.answer_schema}
        payload["response_format"] = {"type": "json_schema", "json_schema": schema}

    def write(message: Message) -> list[JsonObject]:
        if isinstance(message, UserSide):
            return _user(message, vision=request.model.vision)
        return _model(message, request.model.provider, dialect)

    system = [{"role": "system", "content": request.system}] if request.system else []
    payload["messages"] = (cache or JsonCache()).encode(
        request.model, request.messages, write, first=system
    )
    return msgspec.json.encode(payload)


def chosen_level(request: ModelRequest) -> ThoughtLevel | None:
    """Return the requested level of reasoning if the model supports it, else its default."""
    level = request.thought_level
    return level if level in request.model.thought_levels else request.model.default_thought


def _reasoning(request: ModelRequest) -> JsonObject:
    level = chosen_level(request)
    if level is None:
        return {}
    on = level != "off"
    switch: JsonObject = {"thinking": {"type": "enabled" if on else "disabled"}}
    match request.model.reasoning:
        case "effort" | "thinking_level" | "thinking_budget":
            return {"reasoning_effort": level if on else "none"}
        case "toggle":
            return switch
        case "toggle_effort":
            return {**switch, "reasoning_effort": level} if on else switch
        case "flag":
            return {"enable_thinking": on}
        case "router":
            return {"reasoning": {"effort": level} if on else {"enabled": False}}
        case _:
            return {}


def _user(message: UserSide, *, vision: bool) -> list[JsonObject]:
    """Return a message for each result, then one for the rest, with the pictures of results."""
    messages: list[JsonObject] = []
    content: list[JsonObject] = []
    for part in message.parts:
        match part:
            case ToolResult():
                text = part.text or "(no output)"
                if part.failed:
                    text = f"Error: {text}"
                messages.append({"role": "tool", "tool_call_id": part.call, "content": text})
                if part.images:
                    content.append(_text(f"The pictures of the result of {part.call}:"))
                    content.extend(_images(part.images, vision=vision))
            case UserText(text):
                if text:
                    content.append(_text(text))
            case UserImage(image):
                content.extend(_images([image], vision=vision))
    if content:
        user_content = (
            content[0]["text"] if len(content) == 1 and content[0]["type"] == "text" else content
        )
        messages.append({"role": "user", "content": user_content})
    return messages


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _images(images: Sequence[ImageBlock], *, vision: bool) -> list[JsonObject]:
    def as_picture(image: ImageBlock) -> JsonObject:
        url = f"data:{image.mime_type};base64,{image.data}"
        return {"type": "image_url", "image_url": {"url": url}}

    return image_parts(images, vision=vision, as_picture=as_picture, as_text=_text)


def _model(message: ModelSide, provider: str, dialect: Dialect) -> list[JsonObject]:
    text_parts = [part for part in message.parts if isinstance(part, AnswerText | AnswerSearch)]
    text = "".join(
        part.text if isinstance(part, AnswerText) else f"{part.text}\n\n" for part in text_parts
    )
    calls = [part for part in message.parts if isinstance(part, AnswerCall)]
    if not text and not calls:
        return []  # only reasoning; a message without content is refused
    answer: JsonObject = {"role": "assistant", "content": text or None}
    thoughts = [
        part
        for part in message.parts
        if isinstance(part, AnswerThought) and part.provider == provider
    ]
    if dialect.thoughts_back == "reasoning_content":
        if thoughts:
            answer["reasoning_content"] = "".join(thought.text for thought in thoughts)
        elif calls:
            # Another model made these calls. With reasoning enabled, DeepSeek and Kimi refuse calls
            # in which this field is missing or empty.
            answer["reasoning_content"] = " "
    elif dialect.thoughts_back == "reasoning_details":
        details = [
            detail
            for thought in thoughts
            for detail in (thought.provider_data or {}).get("reasoning_details", ())
        ]
        if details:
            answer["reasoning_details"] = details
    if calls:
        answer["tool_calls"] = [
            {
                "id": call.call,
                "type": "function",
                "function": {"name": as_name(call.name), "arguments": as_object(call.arguments)},
                **_extra_content(call, provider),
            }
            for call in calls
        ]
    return [answer]


def _extra_content(call: AnswerCall, provider: str) -> JsonObject:
    provider_data = call.provider_data or {}
    same_provider = provider_data.get("provider", provider) == provider
    extra = provider_data.get("extra_content") if same_provider else None
    return {} if extra is None else {"extra_content": extra}
