"""How the drivers of OpenAI's two APIs reach a service: OpenAI itself, Azure, or anyone else.

The `openai` package does authentication, addresses, headers and connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp_agent.models.exchange import RAW_RESPONSE
from acp_agent.models.headers import spelled
from acp_agent.models.providers import Provider
from acp_agent.models.sdk import http_client, openai_client

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import AsyncOpenAI, Omit

NO_KEY = "no-key"  # what is sent where a server needs no key; the package insists on one


class OpenAIConnection:
    """One service. Making one imports the SDK, which takes tenths of a second: use a thread."""

    def __init__(self, provider: Provider) -> None:
        import httpx2  # noqa: PLC0415 - not before a model is used

        self._response = httpx2.Response
        # The rest of the time limits is `retrying`'s.
        timeout = httpx2.Timeout(None, connect=15.0, pool=15.0)
        if provider.platform == "azure":
            from acp_agent.models.clouds import azure_client  # noqa: PLC0415 - for it only

            self._client: AsyncOpenAI = azure_client(provider, timeout)
        else:
            self._client = openai_client()(
                api_key=provider.key or NO_KEY,
                base_url=provider.base_url,
                max_retries=0,  # `retrying` does it, where the user can see it
                timeout=timeout,
                http_client=http_client("openai", provider.base_url, timeout),
                default_headers=spelled(provider.headers),
            )
        if provider.id != "openai" or provider.key is None:
            # The package takes these from OpenAI's environment variables; they are nobody else's.
            self._client.organization = None
            self._client.project = None
        self._headers: dict[str, str | Omit] = {**RAW_RESPONSE}
        # Who gives an endpoint gives its credentials, or it needs none.
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
