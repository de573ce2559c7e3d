"""Claude models behind a cloud: Amazon Bedrock, Google Vertex AI.

The `anthropic` package's client of the cloud does the credentials; the requests are those of the
Messages API, at the cloud's own addresses.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from acp_agent.models import anthropic_request
from acp_agent.models.anthropic_events import AnthropicDecoder
from acp_agent.models.base import ModelRequest, StreamEvent
from acp_agent.models.clouds import Bedrock, Vertex
from acp_agent.models.exchange import RAW_RESPONSE, Exchanges
from acp_agent.models.providers import Provider

if TYPE_CHECKING:
    from httpx2 import Response


class AnthropicCloudDriver:
    """A `Driver`. Making one imports the SDK, which takes tenths of a second: use a thread."""

    def __init__(self, provider: Provider, cloud: Bedrock | Vertex) -> None:
        """Make a client.

        Raises:
            ConfigError: a package that the cloud needs is not installed.
        """
        import httpx2  # noqa: PLC0415 - not before a model is used

        self._provider = provider
        self._cloud = cloud
        self._exchanges = Exchanges(provider)
        self._response = httpx2.Response
        # The rest of the time limits is `retrying`'s.
        self._client = cloud.client(provider, httpx2.Timeout(None, connect=15.0, pool=15.0))

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        """Ask the model. Closing the iterator closes the HTTP response at once."""
        model = request.model.id

        async def send() -> Response:
            return await self._client.post(
                self._cloud.path(self._provider, model),
                content=self._cloud.body(anthropic_request.written(self._provider, request)),
                cast_to=self._response,
                options={
                    "headers": {**RAW_RESPONSE, "Content-Type": "application/json"},
                    "follow_redirects": False,
                },
            )

        decoder = AnthropicDecoder(self._provider, model)
        return self._exchanges.stream(send, decoder, model=model, framing=self._cloud.framing)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._exchanges.aclose()
        await self._client.close()
