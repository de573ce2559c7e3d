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
from acp_agent.models.request_parts import WrittenMessages, as_name, as_object, image_parts


class GeminiDriver:
    """A `Driver` for the Gemini API. Creating one reads certificates: use a thread."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._exchanges = Exchanges(provider)
        self._written = WrittenMessages()
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
            return self._client.post(path, body(request, self._written))

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


class _Called(Struct, frozen=True):
    """The fields of a call that its result must repeat."""

    name: str
    id: str | None


def body(request: ModelRequest, written_before: WrittenMessages | None = None) -> bytes:
    """Return the body of a request as JSON."""
    written: JsonObject = {}
    if request.system:
        written["systemInstruction"] = {"parts": [{"text": request.system}]}
    if request.tools:
        declared = [
            {
                "name": tool.name,
                "description": tool.description,
                "parametersJsonSchema": tool.parameters,
            }
            for tool in request.tools
        ]
        written["tools"] = [{"functionDeclarations": declared}]
    if request.web_search:
        written.setdefault("tools", []).append({"googleSearch": {}})
        if request.tools:  # https://ai.google.dev/gemini-api/docs/tool-combination
            written["toolConfig"] = {"includeServerSideToolInvocations": True}
    limit = request.model.output_limit
    settings: JsonObject = {} if limit is None else {"maxOutputTokens": limit}
    if request.model.temperature is not None:
        settings["temperature"] = request.model.temperature
    written["generationConfig"] = settings | _thinking(request)
    written["contents"] = _contents(request, written_before or WrittenMessages())
    return msgspec.json.encode(written)


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


def _contents(request: ModelRequest, kept: WrittenMessages) -> list[JsonObject]:
    """Return the messages; adjacent ones of one side are joined, as the API requires."""
    called = {
        part.call: _called(part, request)
        for message in request.messages
        if isinstance(message, ModelSide)
        for part in message.parts
        if isinstance(part, AnswerCall)
    }

    def write(message: Message) -> list[JsonObject]:
        if isinstance(message, UserSide):
            return _user(message, called, vision=request.model.vision)
        return _model(message, request)

    written: list[JsonObject] = []
    every = kept.each(request.model, request.messages, write)
    for message, parts in zip(request.messages, every, strict=True):
        if not parts:
            continue
        role = "user" if isinstance(message, UserSide) else "model"
        if written and written[-1]["role"] == role:
            written[-1]["parts"].extend(parts)
        else:
            written.append({"role": role, "parts": list(parts)})
    return written


def _user(message: UserSide, called: dict[CallId, _Called], *, vision: bool) -> list[JsonObject]:
    """Return the results, then the rest, with pictures: not every model accepts them in results."""
    written: list[JsonObject] = []
    rest: list[JsonObject] = []
    for part in message.parts:
        match part:
            case ToolResult():
                written.append(_result(part, called))
                if part.images:
                    rest.append({"text": f"The pictures of the result of {part.call}:"})
                    rest.extend(_images(part.images, vision=vision))
            case UserText(text):
                if text:
                    rest.append({"text": text})
            case UserImage(image):
                rest.extend(_images([image], vision=vision))
    return written + rest


def _result(result: ToolResult, called: dict[CallId, _Called]) -> JsonObject:
    call = called.get(result.call, _Called("unknown", None))
    key = "error" if result.failed else "output"
    response: JsonObject = {"name": call.name, "response": {key: result.text or "(no output)"}}
    if call.id is not None:
        response = {"id": call.id, **response}
    return {"functionResponse": response}


def _images(images: Sequence[ImageBlock], *, vision: bool) -> list[JsonObject]:
    return image_parts(
        images,
        vision=vision,
        as_picture=lambda one: {"inlineData": {"mimeType": one.mime_type, "data": one.data}},
        as_text=lambda text: {"text": text},
        further=_FURTHER_PICTURES,
    )


def _model(message: ModelSide, request: ModelRequest) -> list[JsonObject]:
    written: list[JsonObject] = []
    calls = 0
    for part in message.parts:
        match part:
            case AnswerText(text):
                if text:
                    written.append({"text": text})
            case AnswerThought():
                _take_thought(part, written, request)
            case AnswerSearch():
                written.extend(_search(part, request))
            case AnswerCall():
                written.append(_call(part, request, first=calls == 0))
                calls += 1
    return written if any(not one.get("thought") for one in written) else []


def _search(search: AnswerSearch, request: ModelRequest) -> list[JsonObject]:
    """Return the parts of a search with their signatures, or its text for another model."""
    data = search.provider_data or {}
    if search.provider == request.model.provider and data.get("gemini") == request.model.id:
        return list(data.get("parts") or ())
    return [{"text": search.text}] if search.text else []


def _called(call: AnswerCall, request: ModelRequest) -> _Called:
    provider_data = call.provider_data or {}
    own = provider_data.get("gemini") == request.model.id
    return _Called(as_name(call.name), provider_data.get("id") if own else None)


def _call(call: AnswerCall, request: ModelRequest, *, first: bool) -> JsonObject:
    provider_data = call.provider_data or {}
    own = provider_data.get("gemini") == request.model.id
    name, given = structs.astuple(_called(call, request))
    # The arguments are unchanged: decoding and encoding could change the bytes.
    arguments = msgspec.Raw(as_object(call.arguments).encode())
    function: JsonObject = {"name": name, "args": arguments}
    if given is not None:
        function = {"id": given, **function}
    signature = provider_data.get("thoughtSignature") if own else None
    if signature is None and not own and first:
        # Only the first call of an answer has a signature, so only this one needs the substitute.
        signature = FOREIGN_CALL
    written: JsonObject = {"functionCall": function}
    if signature is not None:
        written["thoughtSignature"] = signature
    return written


def _take_thought(thought: AnswerThought, written: list[JsonObject], request: ModelRequest) -> None:
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
        written.append({"text": thought.text, "thought": True, "thoughtSignature": signature})
        return
    # The signature arrived with the last piece of the text; earlier pieces form a separate part.
    length = provider_data.get("length", 0)
    last = written[-1] if written and "text" in written[-1] else {}
    text = last.get("text", "")
    if not length or last.get("thought") or "thoughtSignature" in last or length > len(text):
        written.append({"text": "", "thoughtSignature": signature})
        return
    last["text"] = text[: len(text) - length]
    if not last["text"]:
        written.pop()
    written.append({"text": text[len(text) - length :], "thoughtSignature": signature})
