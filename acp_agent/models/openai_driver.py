"""The driver for OpenAI's two APIs, chat completions and Responses, from any service.

The provider stores nothing. Each request of the Responses API contains the whole conversation,
including the encrypted reasoning items that the model returned.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import NamedTuple

from acp_agent.models.base import ModelRequest, StreamEvent
from acp_agent.models.exchange import Decoder, Exchanges
from acp_agent.models.http.client import Body
from acp_agent.models.http.factory import make_client
from acp_agent.models.providers import Provider
from acp_agent.models.request_parts import JsonCache

# Environment variables of OpenAI's own clients, used for OpenAI only.
_VARIABLES = {
    "OPENAI_ORG_ID": "openai-organization",
    "OPENAI_PROJECT_ID": "openai-project",
}


class _Api(NamedTuple):
    """The differences between the two APIs."""

    path: str
    body: Callable[[Provider, ModelRequest, JsonCache], bytes]
    decoder: Callable[[Provider, str], Decoder]


class OpenAIDriver:
    """A `Driver` for OpenAI's APIs. Creating one reads certificates: use a thread."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._api = _responses() if provider.api == "openai_responses" else _chat_completions()
        self._exchanges = Exchanges(provider)
        self._message_cache = JsonCache()
        self._client = make_client(*address_and_headers(provider))

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        """Ask the model. Closing the iterator closes the HTTP response at once."""
        model = request.model.id

        def send() -> Awaitable[Body]:
            body = self._api.body(self._provider, request, self._message_cache)
            return self._client.post(self._api.path, body)

        return self._exchanges.stream(send, self._api.decoder(self._provider, model), model=model)

    async def connect(self) -> None:
        """Open a connection before the first request; see `Driver`."""
        await self._client.connect()

    async def aclose(self) -> None:
        """Close every connection."""
        await self._exchanges.aclose()
        await self._client.aclose()


def _chat_completions() -> _Api:
    from acp_agent.models.openai_events import OpenAIDecoder  # noqa: PLC0415 - one API is used
    from acp_agent.models.openai_request import body  # noqa: PLC0415

    return _Api("/chat/completions", body, OpenAIDecoder)


def _responses() -> _Api:
    from acp_agent.models.openai_responses_events import (  # noqa: PLC0415 - one API is used
        OpenAIResponsesDecoder,
    )
    from acp_agent.models.openai_responses_request import body  # noqa: PLC0415

    return _Api("/responses", body, OpenAIResponsesDecoder)


def address_and_headers(provider: Provider) -> tuple[str, dict[str, str]]:
    """Return the address of a provider's API and the headers of each request, with the key."""
    base_url, headers = provider.base_url, _headers(provider)
    if provider.platform == "azure":
        base_url, headers = _azure(provider)
    own_headers = {name.lower(): value for name, value in provider.headers.items()}
    return base_url, headers | own_headers


def _headers(provider: Provider) -> dict[str, str]:
    if provider.key is None:
        return {}
    headers = {"authorization": f"Bearer {provider.key}"}
    if provider.id == "openai":
        for variable, name in _VARIABLES.items():
            if value := os.environ.get(variable):
                headers[name] = value
    return headers


def _azure(provider: Provider) -> tuple[str, dict[str, str]]:
    """Return the address and the credentials for Azure OpenAI.

    Without a configured version the API without versions (`/openai/v1`) is used, in which the model
    is the name of a deployment. A key that is a JSON Web Token is treated as a token of Entra ID.
    """
    endpoint = provider.base_url.removesuffix("/v1").removesuffix("/openai")
    version = provider.api_version or "v1"
    path = "/openai/v1" if version == "v1" else "/openai"
    key = provider.key or ""
    credentials = {"authorization": f"Bearer {key}"} if key.startswith("eyJ") else {"api-key": key}
    return f"{endpoint}{path}?api-version={version}", credentials
