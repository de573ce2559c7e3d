"""Models behind Google's Gemini API.

Spoken over the HTTP client that is there, without Google's package (docs/decisions/gemini.md).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from acp_agent.config.certificates import trust_for
from acp_agent.config.loopback import past_proxies
from acp_agent.models import gemini_request
from acp_agent.models.base import ModelRequest, StreamEvent
from acp_agent.models.exchange import Exchanges
from acp_agent.models.gemini_events import GeminiDecoder
from acp_agent.models.providers import Provider

if TYPE_CHECKING:
    from httpx2 import Response


class _RefusedError(Exception):
    """An answer with an error's status; its body was read."""

    def __init__(self, response: Response) -> None:
        super().__init__(f"HTTP {response.status_code}")
        self.status_code = response.status_code
        self.response = response


class GeminiDriver:
    """A `Driver`. Making one imports the HTTP client: use a thread."""

    def __init__(self, provider: Provider) -> None:
        import httpx2  # noqa: PLC0415 - not before a model is used

        self._provider = provider
        self._exchanges = Exchanges(provider)
        headers = {"Content-Type": "application/json", **provider.headers}
        if provider.key is not None:
            # Never in the address, where proxies write it to their logs.
            headers.setdefault("x-goog-api-key", provider.key)
        self._client = httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(None, connect=15.0, pool=15.0),  # the rest is `retrying`'s
            follow_redirects=False,
            mounts=past_proxies(provider.base_url),
            verify=trust_for(provider.base_url),
        )

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        """Ask the model. Closing the iterator closes the HTTP response at once."""
        model = request.model.id

        async def send() -> Response:
            name = quote(model.removeprefix("models/"), safe="")
            address = f"{self._provider.base_url}/models/{name}:streamGenerateContent?alt=sse"
            body = gemini_request.body(request)
            asked = self._client.build_request("POST", address, content=body)
            response = await self._client.send(asked, stream=True)
            if response.status_code != 200:
                try:
                    await response.aread()
                finally:
                    await response.aclose()
                raise _RefusedError(response)
            return response

        return self._exchanges.stream(send, GeminiDecoder(self._provider, model), model=model)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._exchanges.aclose()
        await self._client.aclose()
