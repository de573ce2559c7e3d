"""Build the body of a request to OpenAI's Responses API.

The conversation is a list of items at the end of the body. The items of each request of a session
begin with those of the previous request, so the provider's cache applies.
https://developers.openai.com/api/docs/guides/conversation-state
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
    ToolResult,
    UserImage,
    UserSide,
    UserText,
)
from acp_agent.models.openai_request import chosen_level
from acp_agent.models.providers import Provider
from acp_agent.models.request_parts import JsonCache, as_name, as_object, image_parts

_MIN_OUTPUT_TOKENS = 16  # tokens, the API's own minimum


def body(provider: Provider, request: ModelRequest, cache: JsonCache | None = None) -> bytes:
    """Return the body of a request as JSON."""
    model = request.model
    payload: JsonObject = {
        "model": model.id,
        "stream": True,
        "stream_options": {"include_obfuscation": False},  # padding, a third of the bytes
        "store": False,
    }
    if model.output_limit is not None:
        payload["max_output_tokens"] = max(_MIN_OUTPUT_TOKENS, model.output_limit)
    if model.temperature is not None:
        payload["temperature"] = model.temperature
    payload.update(_reasoning(request))
    if provider.dialect.cache_key and request.session:
        payload["prompt_cache_key"] = request.session
    if request.system:
        payload["instructions"] = request.system
    tools: list[JsonObject] = [{"type": "web_search"}] if request.web_search else []
    if tools:
        include = payload.get("include", [])
        payload["include"] = [*include, "web_search_call.action.sources"]
    if request.tools:
        tools[:0] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,  # the default is true, but our schemas have optional parameters
            }
            for tool in request.tools
        ]
    if tools:
        payload["tools"] = tools

    def write(message: Message) -> list[JsonObject]:
        if isinstance(message, UserSide):
            return _user(message, vision=model.vision)
        return _model(message, model.provider, model.id)

    payload["input"] = (cache or JsonCache()).encode(model, request.messages, write)
    return msgspec.json.encode(payload)


def _reasoning(request: ModelRequest) -> JsonObject:
    """Return the reasoning settings; encrypted reasoning is requested only if the model reasons."""
    level = chosen_level(request)
    if level is None or request.model.reasoning == "none":
        return {}
    if level == "off":
        return {"reasoning": {"effort": "none"}}
    return {
        "reasoning": {"effort": level, "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
    }


def _user(message: UserSide, *, vision: bool) -> list[JsonObject]:
    """Return the items of a message: one for each result with its pictures, one for the rest."""
    items: list[JsonObject] = []
    content: list[JsonObject] = []
    for part in message.parts:
        match part:
            case ToolResult():
                items.append(_result(part, vision=vision))
            case UserText(text):
                if text:
                    content.append(_text(text))
            case UserImage(image):
                content.extend(_images([image], vision=vision))
    if content:
        items.append({"type": "message", "role": "user", "content": content})
    return items


def _result(result: ToolResult, *, vision: bool) -> JsonObject:
    text = result.text or "(no output)"
    if result.failed:
        text = f"Error: {text}"
    output: str | list[JsonObject] = text
    if result.images:
        output = [_text(text), *_images(result.images, vision=vision)]
    return {"type": "function_call_output", "call_id": result.call, "output": output}


def _text(text: str) -> JsonObject:
    return {"type": "input_text", "text": text}


def _images(images: Sequence[ImageBlock], *, vision: bool) -> list[JsonObject]:
    def as_picture(image: ImageBlock) -> JsonObject:
        url = f"data:{image.mime_type};base64,{image.data}"
        return {"type": "input_image", "image_url": url, "detail": "auto"}

    return image_parts(images, vision=vision, as_picture=as_picture, as_text=_text)


def _model(message: ModelSide, provider: str, model: str) -> list[JsonObject]:
    items: list[JsonObject] = []
    for part in message.parts:
        match part:
            case AnswerText(text):
                if text:
                    items.append(_text_message(text))
            case AnswerThought():
                _add_thought(part, items, provider, model)
            case AnswerSearch():
                items.extend(_search(part, provider))
            case AnswerCall():
                items.append(
                    {
                        "type": "function_call",
                        "call_id": part.call,
                        "name": as_name(part.name),
                        "arguments": as_object(part.arguments),
                    }
                )
    while items and items[-1]["type"] == "reasoning":
        items.pop()  # the API refuses reasoning that no other item of its answer follows
    return items


def _search(search: AnswerSearch, provider: str) -> list[JsonObject]:
    """Return the item of a completed search; the API would refuse one that failed or was cut."""
    item = search.provider_data or {}
    if search.provider == provider and item.get("type") == "web_search_call":
        return [item] if item.get("status") == "completed" else []
    return [_text_message(search.text)] if search.text else []


def _text_message(text: str) -> JsonObject:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content}


def _add_thought(
    thought: AnswerThought, items: list[JsonObject], provider: str, model: str
) -> None:
    """Add reasoning of the same model: a reasoning item, or the phase of the message before it."""
    provider_data = thought.provider_data
    if provider_data is None or thought.provider != provider or provider_data.get("model") != model:
        return
    if provider_data.get("type") == "reasoning" and provider_data.get("encrypted_content"):
        items.append(
            {
                "type": "reasoning",
                "id": provider_data.get("id", ""),
                "summary": provider_data.get("summary", []),
                "encrypted_content": provider_data["encrypted_content"],
            }
        )
    elif provider_data.get("type") == "phase" and items and items[-1]["type"] == "message":
        items[-1]["phase"] = provider_data.get("phase")
