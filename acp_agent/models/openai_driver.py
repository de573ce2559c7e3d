"""The driver for OpenAI's two APIs, chat completions and Responses, whoever serves them.

Nothing is stored at the provider: each request of the Responses API has the whole conversation,
with the model's reasoning as the encrypted items that it gave.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from acp_agent.models.base import ModelRequest, StreamEvent
from acp_agent.models.exchange import Decoder, Exchanges
from acp_agent.models.http.client import Body
from acp_agent.models.http.factory import make_client
from acp_agent.models.providers import Provider
from acp_agent.models.request_parts import WrittenMessages

# What OpenAI's own clients take from the environment, for OpenAI only.
_VARIABLES = {
    "OPENAI_ORG_ID": "openai-organization",
    "OPENAI_PROJECT_ID": "openai-project",
}


class _Api(NamedTuple):
    """What differs between the two APIs."""

    path: str
    body: Callable[[Provider, ModelRequest, WrittenMessages], bytes]
    decoder: Callable[[Provider, str], Decoder]


class OpenAIDriver:
    """A `Driver`. Creating one reads certificates: use a thread."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._api = _responses() if provider.api == "openai_responses" else _chat_completions()
        self._exchanges = Exchanges(provider)
        self._written = WrittenMessages()
        self._client = make_client(*address_and_headers(provider))

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        """Ask the model. Closing the iterator closes the HTTP response at once."""
        model = request.model.id

        def send() -> Awaitable[Body]:
            body = self._api.body(self._provider, request, self._written)
            return self._client.post(self._api.path, body)

        return self._exchanges.stream(send, self._api.decoder(self._provider, model), model=model)

    async def connect(self) -> None:
        """Open a connection ahead of the first request; see `Driver`."""
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
    """Return where a provider's API is, and the headers of each request, the key among them."""
    base_url, headers = provider.base_url, _headers(provider)
    if provider.platform == "azure":
        base_url, headers = _azure(provider)
    return base_url, {**headers, **_lower(provider.headers)}


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


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
    """The address and the credentials of Azure OpenAI.

    Without a version it speaks the API that has none (`/openai/v1`), which takes the name of a
    deployment as the model. A key that is a JSON Web Token is taken as one of Entra ID's.
    """
    endpoint = provider.base_url.removesuffix("/v1").removesuffix("/openai")
    version = provider.api_version or "v1"
    path = "/openai/v1" if version == "v1" else "/openai"
    key = provider.key or ""
    credentials = {"authorization": f"Bearer {key}"} if key.startswith("eyJ") else {"api-key": key}
    return f"{endpoint}{path}?api-version={version}", credentials
