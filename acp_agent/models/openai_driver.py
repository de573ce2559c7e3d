"""Models behind OpenAI's chat completions API, whoever serves it.

The stream is read by `openai_events`, ten times as fast as the `openai` package's typed stream
(docs/decisions/sdk-import.md).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import TYPE_CHECKING

from acp_agent.models import openai_request
from acp_agent.models.base import ModelRequest, StreamEvent
from acp_agent.models.exchange import Exchanges
from acp_agent.models.openai_events import OpenAIDecoder
from acp_agent.models.providers import Provider
from acp_agent.models.sdk import OpenAIConnection

if TYPE_CHECKING:
    from httpx2 import Response


class OpenAIDriver:
    """A `Driver`. Making one imports the SDK, which takes tenths of a second: use a thread."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._exchanges = Exchanges(provider)
        self._connection = OpenAIConnection(provider)

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        """Ask the model. Closing the iterator closes the HTTP response at once."""
        model = request.model.id

        def send() -> Awaitable[Response]:
            body = openai_request.body(self._provider, request)
            return self._connection.post("/chat/completions", body)

        return self._exchanges.stream(send, OpenAIDecoder(self._provider, model), model=model)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._exchanges.aclose()
        await self._connection.aclose()
