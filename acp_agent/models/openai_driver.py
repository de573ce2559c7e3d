"""Models behind OpenAI's chat completions API, whoever serves it.

The `openai` package does authentication, addresses, headers and connections; the stream is read by
`openai_events`, ten times as fast as the package's typed stream (docs/decisions/sdk-import.md).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from acp_agent.models import openai_request
from acp_agent.models.base import ModelRequest, StreamEvent
from acp_agent.models.exchange import RAW_RESPONSE, Exchanges
from acp_agent.models.headers import spelled
from acp_agent.models.openai_events import OpenAIDecoder
from acp_agent.models.providers import Provider
from acp_agent.models.sdk import openai_client

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import Omit

NO_KEY = "no-key"  # what is sent where a server needs no key; the package insists on one


class OpenAIDriver:
    """A `Driver`. Making one imports the SDK, which takes tenths of a second: use a thread."""

    def __init__(self, provider: Provider) -> None:
        import httpx2  # noqa: PLC0415 - not before a model is used

        self._provider = provider
        self._exchanges = Exchanges(provider)
        self._response = httpx2.Response
        self._client = openai_client()(
            api_key=provider.key or NO_KEY,
            base_url=provider.base_url,
            max_retries=0,  # `retrying` does it, where the user can see it
            timeout=httpx2.Timeout(None, connect=15.0, pool=15.0),  # the rest is `retrying`'s
            default_headers=spelled(provider.headers),
        )
        if provider.id != "openai" or provider.key is None:
            # The package takes these from OpenAI's environment variables; they are nobody else's.
            self._client.organization = None
            self._client.project = None
        # Who gives an endpoint gives its credentials, or it needs none.
        self._keyless = provider.set_by_client and provider.key is None

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        """Ask the model. Closing the iterator closes the HTTP response at once."""
        model = request.model.id
        headers: dict[str, str | Omit] = {**RAW_RESPONSE}
        if self._keyless and "authorization" not in map(str.lower, self._provider.headers):
            from openai import Omit  # noqa: PLC0415 - loaded with the client, never before

            headers["Authorization"] = Omit()

        async def send() -> Response:
            return await self._client.post(
                "/chat/completions",
                content=openai_request.body(self._provider, request),
                cast_to=self._response,
                options={"headers": headers, "follow_redirects": False},
            )

        return self._exchanges.stream(send, OpenAIDecoder(self._provider, model), model=model)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._exchanges.aclose()
        await self._client.close()
