"""The driver for Google's Gemini API, and the body of its requests (`streamGenerateContent`).

It uses our HTTP client instead of Google's package (docs/decisions/gemini.md).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from urllib.parse import quote

import msgspec
from msgspec import Struct, structs

from acp_agent.content import ImageBlock, JsonObject
from acp_agent.ids import CallId
from acp_agent.models.base import (
    AnswerCall,
    AnswerSearch,
    AnswerText,
    AnswerThought,
    Message,
    ModelRequest,
    ModelSide,
    StreamEvent,
    ThoughtLevel,
    ToolResult,
    UserImage,
    UserSide,
    UserText,
)
from acp_agent.models.exchange import Exchanges
from acp_agent.models.gemini_events import GeminiDecoder
from acp_agent.models.http.client import Body
from acp_agent.models.http.factory import make_client
from acp_agent.models.openai_request import chosen_level
from acp_agent.models.providers import Provider
from acp_agent.models.request_parts import MessageCache, as_name, as_object, image_parts

# Google's signature for a call that another model made. Gemini 3 refuses a call without a signature
# (the page on thought signatures, "What if I transfer a trace from a different model?").
FOREIGN_CALL = "skip_thought_signature_validator"
_FURTHER_PICTURES = frozenset({"image/heic", "image/heif"})
_BUDGETS: dict[ThoughtLevel, int] = {
    "off": 0, "minimal": 512, "low": 2_048, "medium": 8_192, "high": 24_576,
    "xhigh": 32_768, "max": 32_768,
}  # fmt: skip
# Gemini has only these levels. The catalog has the levels of each model.
_LEVELS: dict[ThoughtLevel, str] = {
    "off": "minimal", "minimal": "minimal", "low": "low", "medium": "medium",
    "high": "high", "xhigh": "xhigh", "max": "xhigh",
}  # fmt: skip


class GeminiDriver:
    """A `Driver` for the Gemini API. Creating one reads certificates: use a thread."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._exchanges = Exchanges(provider)
        self._message_cache = MessageCache()
        headers = {name.lower(): value for name, value in provider.headers.items()}
        if provider.key is not None:
            # Not in the address, which proxies write to their logs.
            headers.setdefault("x-goog-api-key", provider.key)
        self._client = make_client(provider.base_url, headers)

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        """Ask the model. Closing the iterator closes the HTTP response at once."""
        model = request.model.id

        def send() -> Awaitable[Body]:
            name = quote(model.removeprefix("models/"), safe="")
            path = f"/models/{name}:streamGenerateContent?alt=sse"
            return self._client.post(path, body(request, self._message_cache))

        return self._exchanges.stream(send, GeminiDecoder(self._provider, model), model=model)

    async def connect(self) -> None:
        """Open a connection before the first request; see `Driver`."""
        await self._client.connect()

    async def aclose(self) -> None:
        """Close every connection."""
        await self._exchanges.aclose()
        await self._client.aclose()


# The conversation is at the end of the body, so that each request of a session begins with the
# contents of the previous one. https://ai.google.dev/api/generate-content
#
# A model's signature of its thoughts is sent back to the same model only, in the part in which it
# arrived: https://ai.google.dev/gemini-api/docs/thought-signatures


class _CallIdentity(Struct, frozen=True):
    """The fields of a call that its result must repeat."""

    name: str
    id: str | None


def body(request: ModelRequest, cache: MessageCache | None = None) -> bytes:
    """Return the body of a request as JSON."""
    payload: JsonObject = {}
    if request.system:
        payload["systemInstruction"] = {"parts": [{"text": request.system}]}
    if request.tools:
        declared = [
            {
                "name": tool.name,
                "description": tool.description,
                "parametersJsonSchema": tool.parameters,
            }
            for tool in request.tools
        ]
        payload["tools"] = [{"functionDeclarations": declared}]
    if request.web_search:
        payload.setdefault("tools", []).append({"googleSearch": {}})
        if request.tools:  # https://ai.google.dev/gemini-api/docs/tool-combination
            payload["toolConfig"] = {"includeServerSideToolInvocations": True}
    limit = request.model.output_limit
    settings: JsonObject = {} if limit is None else {"maxOutputTokens": limit}
    if request.model.temperature is not None:
        settings["temperature"] = request.model.temperature
    payload["generationConfig"] = settings | _thinking(request)
    payload["contents"] = _contents(request, cache or MessageCache())
    return msgspec.json.encode(payload)


def _thinking(request: ModelRequest) -> JsonObject:
    level = chosen_level(request)
    if level is None:
        return {}
    match request.model.reasoning:
        case "thinking_level" | "effort":  # "effort": a model that the user configured
            config: JsonObject = {"thinkingLevel": _LEVELS[level], "includeThoughts": True}
        case "thinking_budget":
            config = {"thinkingBudget": _BUDGETS[level], "includeThoughts": level != "off"}
        case _:
            return {}
    return {"thinkingConfig": config}


def _contents(request: ModelRequest, cache: MessageCache) -> list[JsonObject]:
    """Return the messages; adjacent ones of one side are joined, as the API requires."""
    identities = {
        part.call: _call_identity(part, request)
        for message in request.messages
        if isinstance(message, ModelSide)
        for part in message.parts
        if isinstance(part, AnswerCall)
    }

    def write(message: Message) -> list[JsonObject]:
        if isinstance(message, UserSide):
            return _user(message, identities, vision=request.model.vision)
        return _model(message, request)

    contents: list[JsonObject] = []
    encoded = cache.encode_all(request.model, request.messages, write)
    for message, message_parts in zip(request.messages, encoded, strict=True):
        if not message_parts:
            continue
        role = "user" if isinstance(message, UserSide) else "model"
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"].extend(message_parts)
        else:
            contents.append({"role": role, "parts": list(message_parts)})
    return contents


def _user(
    message: UserSide, identities: dict[CallId, _CallIdentity], *, vision: bool
) -> list[JsonObject]:
    """Return the results, then the rest, with pictures: not every model accepts them in results."""
    results: list[JsonObject] = []
    content: list[JsonObject] = []
    for part in message.parts:
        match part:
            case ToolResult():
                results.append(_result(part, identities))
                if part.images:
                    content.append({"text": f"The pictures of the result of {part.call}:"})
                    content.extend(_images(part.images, vision=vision))
            case UserText(text):
                if text:
                    content.append({"text": text})
            case UserImage(image):
                content.extend(_images([image], vision=vision))
    return results + content


def _result(result: ToolResult, identities: dict[CallId, _CallIdentity]) -> JsonObject:
    call = identities.get(result.call, _CallIdentity("unknown", None))
    key = "error" if result.failed else "output"
    response: JsonObject = {"name": call.name, "response": {key: result.text or "(no output)"}}
    if call.id is not None:
        response = {"id": call.id, **response}
    return {"functionResponse": response}


def _images(images: Sequence[ImageBlock], *, vision: bool) -> list[JsonObject]:
    return image_parts(
        images,
        vision=vision,
        as_picture=lambda image: {"inlineData": {"mimeType": image.mime_type, "data": image.data}},
        as_text=lambda text: {"text": text},
        extra_types=_FURTHER_PICTURES,
    )


def _model(message: ModelSide, request: ModelRequest) -> list[JsonObject]:
    content: list[JsonObject] = []
    calls = 0
    for part in message.parts:
        match part:
            case AnswerText(text):
                if text:
                    content.append({"text": text})
            case AnswerThought():
                _add_thought(part, content, request)
            case AnswerSearch():
                content.extend(_search(part, request))
            case AnswerCall():
                content.append(_call(part, request, first=calls == 0))
                calls += 1
    return content if any(not entry.get("thought") for entry in content) else []


def _search(search: AnswerSearch, request: ModelRequest) -> list[JsonObject]:
    """Return the parts of a search with their signatures, or its text for another model."""
    data = search.provider_data or {}
    if search.provider == request.model.provider and data.get("gemini") == request.model.id:
        return list(data.get("parts") or ())
    return [{"text": search.text}] if search.text else []


def _call_identity(call: AnswerCall, request: ModelRequest) -> _CallIdentity:
    provider_data = call.provider_data or {}
    same_model = provider_data.get("gemini") == request.model.id
    return _CallIdentity(as_name(call.name), provider_data.get("id") if same_model else None)


def _call(call: AnswerCall, request: ModelRequest, *, first: bool) -> JsonObject:
    provider_data = call.provider_data or {}
    same_model = provider_data.get("gemini") == request.model.id
    name, call_id = structs.astuple(_call_identity(call, request))
    # The arguments are unchanged: decoding and encoding could change the bytes.
    arguments = msgspec.Raw(as_object(call.arguments).encode())
    function: JsonObject = {"name": name, "args": arguments}
    if call_id is not None:
        function = {"id": call_id, **function}
    signature = provider_data.get("thoughtSignature") if same_model else None
    if signature is None and not same_model and first:
        # Only the first call of an answer has a signature, so only this one needs the substitute.
        signature = FOREIGN_CALL
    part: JsonObject = {"functionCall": function}
    if signature is not None:
        part["thoughtSignature"] = signature
    return part


def _add_thought(thought: AnswerThought, content: list[JsonObject], request: ModelRequest) -> None:
    """Add a signature of the same model to the part in which it arrived."""
    provider_data = thought.provider_data
    if (
        provider_data is None
        or thought.provider != request.model.provider
        or provider_data.get("gemini") != request.model.id
    ):
        return
    signature = provider_data.get("thoughtSignature")
    if provider_data.get("part") == "thought":
        content.append({"text": thought.text, "thought": True, "thoughtSignature": signature})
        return
    # The signature arrived with the last piece of the text; earlier pieces form a separate part.
    length = provider_data.get("length", 0)
    last = content[-1] if content and "text" in content[-1] else {}
    text = last.get("text", "")
    if not length or last.get("thought") or "thoughtSignature" in last or length > len(text):
        content.append({"text": "", "thoughtSignature": signature})
        return
    last["text"] = text[: len(text) - length]
    if not last["text"]:
        content.pop()
    content.append({"text": text[len(text) - length :], "thoughtSignature": signature})
