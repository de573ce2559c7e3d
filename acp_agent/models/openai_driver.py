"""The driver for OpenAI's two APIs, chat completions and Responses, whoever serves them.

The streams are read by our own decoders, ten times as fast as the `openai` package's typed streams
(docs/decisions/sdk-import.md). Nothing is stored at the provider: each request of the Responses API
has the whole conversation, with the model's reasoning as the encrypted items that it gave.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from acp_agent.models.base import ModelRequest, StreamEvent
from acp_agent.models.exchange import RAW_RESPONSE, Decoder, Exchanges
from acp_agent.models.providers import Provider, spelled
from acp_agent.models.sdk import NO_KEY, http_client, openai_client

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import AsyncOpenAI, Omit


class _Api(NamedTuple):
    """What differs between the two APIs."""

    path: str
    body: Callable[[Provider, ModelRequest], bytes]
    decoder: Callable[[Provider, str], Decoder]


class OpenAIDriver:
    """A `Driver`. Creating one imports the SDK, which takes tenths of a second: use a thread."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._api = _responses() if provider.api == "openai_responses" else _chat_completions()
        self._exchanges = Exchanges(provider)
        self._connection = _Connection(provider)

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        """Ask the model. Closing the iterator closes the HTTP response at once."""
        model = request.model.id

        def send() -> Awaitable[Response]:
            return self._connection.post(self._api.path, self._api.body(self._provider, request))

        return self._exchanges.stream(send, self._api.decoder(self._provider, model), model=model)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._exchanges.aclose()
        await self._connection.aclose()


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


class _Connection:
    """A connection to OpenAI, Azure or a compatible service."""

    def __init__(self, provider: Provider) -> None:
        import httpx2  # noqa: PLC0415 - not before a model is used

        self._response = httpx2.Response
        # The other time limits are those of `retries`.
        timeout = httpx2.Timeout(None, connect=15.0, pool=15.0)
        if provider.platform == "azure":
            from acp_agent.models.clouds import azure_client  # noqa: PLC0415 - for it only

            self._client: AsyncOpenAI = azure_client(provider, timeout)
        else:
            self._client = openai_client()(
                api_key=provider.key or NO_KEY,
                base_url=provider.base_url,
                max_retries=0,  # `retries` does it, where the user can see it
                timeout=timeout,
                http_client=http_client("openai", provider.base_url, timeout),
                default_headers=spelled(provider.headers),
            )
        if provider.id != "openai" or provider.key is None:
            # The package reads these from variables that are for OpenAI only.
            self._client.organization = None
            self._client.project = None
        self._headers: dict[str, str | Omit] = {**RAW_RESPONSE}
        # A client that sets an endpoint sets its credentials too, or it needs none.
        keyless = provider.set_by_client and provider.key is None
        if keyless and "authorization" not in map(str.lower, provider.headers):
            from openai import Omit  # noqa: PLC0415 - loaded with the client, never before

            self._headers["Authorization"] = Omit()

    async def post(self, path: str, body: bytes) -> Response:
        """Send a request; the answer's body is not read yet.

        Raises:
            Exception: the package's own, where there is no answer or its status is an error's.
        """
        return await self._client.post(
            path,
            content=body,
            cast_to=self._response,
            options={"headers": self._headers, "follow_redirects": False},
        )

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.close()
