"""Asks a driver something and gathers what it streams; shared by the tests of the drivers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from acp_agent.models.anthropic_driver import AnthropicCloudDriver, AnthropicDriver
from acp_agent.models.base import (
    CallDelta,
    CallDone,
    Driver,
    Finished,
    Message,
    ModelInfo,
    ModelRequest,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ThoughtDone,
    UserSide,
    UserText,
)
from acp_agent.models.clouds import Bedrock, Vertex
from acp_agent.models.gemini_driver import GeminiDriver
from acp_agent.models.openai_driver import OpenAIDriver
from acp_agent.models.providers import Dialect, Provider
from tests.support.model_server import ModelServer

KEY = "sk-test-0123456789abcdef"  # looks like a key, is none


def _provider(changes: Mapping[str, Any], **fields: Any) -> Provider:
    return Provider(**{"key": KEY, **fields, **changes})


def openai_provider(server: ModelServer, **changes: Any) -> Provider:
    """A provider of the kind that speaks OpenAI's chat API."""
    return _provider(
        changes,
        id="openai",
        name="OpenAI",
        api="openai",
        base_url=server.openai_url,
        key_env=("OPENAI_API_KEY",),
        dialect=Dialect(),
    )


def anthropic_provider(server: ModelServer, **changes: Any) -> Provider:
    """A provider that speaks Anthropic's API."""
    return _provider(
        changes,
        id="anthropic",
        name="Anthropic",
        api="anthropic",
        base_url=server.url,
        key_env=("ANTHROPIC_API_KEY",),
    )


def responses_provider(server: ModelServer, **changes: Any) -> Provider:
    """A provider of the kind that speaks OpenAI's Responses API."""
    return openai_provider(server, **{"api": "openai_responses", **changes})


def gemini_provider(server: ModelServer, **changes: Any) -> Provider:
    """A provider that speaks the Gemini API."""
    return _provider(
        changes,
        id="gemini",
        name="Gemini",
        api="gemini",
        base_url=f"{server.url}/v1beta",
        key_env=("GEMINI_API_KEY",),
    )


def bedrock_provider(server: ModelServer, **changes: Any) -> Provider:
    """Amazon Bedrock, with a bearer token."""
    return _provider(
        changes,
        id="bedrock",
        name="Amazon Bedrock",
        api="anthropic",
        platform="bedrock",
        base_url=server.url,
        region="us-east-1",
        key_env=("AWS_BEARER_TOKEN_BEDROCK",),
    )


def vertex_provider(server: ModelServer, **changes: Any) -> Provider:
    """Google Vertex AI, with an access token."""
    return _provider(
        changes,
        id="vertex",
        name="Google Vertex AI",
        api="anthropic",
        platform="vertex",
        base_url=f"{server.url}/v1",
        region="global",
        project="my-project",
        key_env=("VERTEX_ACCESS_TOKEN",),
    )


def azure_provider(server: ModelServer, **changes: Any) -> Provider:
    """Azure OpenAI, with a key."""
    return _provider(
        changes,
        id="azure",
        name="Azure OpenAI",
        api="openai_responses",
        platform="azure",
        base_url=server.url,
        key_env=("AZURE_OPENAI_API_KEY",),
    )


def driver_for(api: str, server: ModelServer) -> Driver:
    """The driver of an API, or of a cloud."""
    match api:
        case "anthropic":
            return AnthropicDriver(anthropic_provider(server))
        case "openai_responses":
            return OpenAIDriver(responses_provider(server))
        case "gemini":
            return GeminiDriver(gemini_provider(server))
        case "bedrock":
            return AnthropicCloudDriver(bedrock_provider(server), Bedrock())
        case "vertex":
            return AnthropicCloudDriver(vertex_provider(server), Vertex())
        case "azure":
            return OpenAIDriver(azure_provider(server))
        case _:
            return OpenAIDriver(openai_provider(server))


def ask(*messages: Message, provider: str = "openai", **fields: Any) -> ModelRequest:
    """A request; a greeting where no messages are given. `model_...` fields go to the model."""
    info = {
        name.removeprefix("model_"): fields.pop(name)
        for name in list(fields)
        if name.startswith("model_")
    }
    model = ModelInfo(**{"provider": provider, "id": "scripted-model", **info})
    said = messages or (UserSide((UserText("Hello"),)),)
    return ModelRequest(model=model, system="Be brief.", messages=said, **fields)


class Gathered:
    """What a stream said, put together."""

    def __init__(self, events: Sequence[StreamEvent]) -> None:
        self.events = list(events)
        self.text = "".join(e.text for e in events if isinstance(e, TextDelta))
        self.thought = "".join(e.text for e in events if isinstance(e, ThoughtDelta))
        self.provider_data = [e.provider_data for e in events if isinstance(e, ThoughtDone)]
        self.calls = [(e.name, e.arguments) for e in events if isinstance(e, CallDone)]
        self.pieces: dict[int, str] = {}
        for event in events:
            if isinstance(event, CallDelta):
                self.pieces[event.index] = self.pieces.get(event.index, "") + event.text
        self.last = self.events[-1]

    @property
    def finished(self) -> Finished:
        """The end of a complete answer."""
        assert isinstance(self.last, Finished), self.last
        return self.last


async def gather(stream: AsyncIterator[Sequence[StreamEvent]]) -> Gathered:
    """Read a stream to its end."""
    return Gathered([event async for batch in stream for event in batch])
