"""Drivers for Anthropic's Messages API: Anthropic, compatible services, and clouds.

Clouds are accessed through the `anthropic` package, which implements their authentication
(docs/decisions/provider-http.md).
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing

from msgspec import structs

from acp_agent.models import anthropic_request
from acp_agent.models.anthropic_events import AnthropicDecoder
from acp_agent.models.base import RESERVED_OUTPUT, Failed, ModelRequest, StreamEvent
from acp_agent.models.clouds import Bedrock, Vertex
from acp_agent.models.exchange import Exchanges
from acp_agent.models.http.client import Body
from acp_agent.models.http.factory import make_client
from acp_agent.models.providers import ANTHROPIC_VERSION, Provider
from acp_agent.models.request_parts import MessageCache

_RAW_RESPONSE = {"X-Stainless-Raw-Response": "stream"}  # the package does not decode the body
_ABOUT_LIMIT = re.compile(r"max_(?:\w+_)?tokens|completion tokens|output tokens", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.-])\d[\d,]{2,}(?![\w-])")
_MIN_LIMIT = 256  # tokens; a smaller number cannot be the limit of a model
Ask = Callable[[ModelRequest], AsyncGenerator[Sequence[StreamEvent]]]


class AnthropicDriver:
    """A `Driver` for the Messages API. Creating one reads certificates: use a thread."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._exchanges = Exchanges(provider)
        self._limits: dict[str, int] = {}  # of answers; see `within_limit`
        self._message_cache = MessageCache()
        self._client = make_client(provider.base_url.removesuffix("/v1"), _headers(provider))

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        """Ask the model. Closing the iterator closes the HTTP response at once."""
        return within_limit(self._limits, request, self._stream)

    def _stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent]]:
        model = request.model.id

        def send() -> Awaitable[Body]:
            body = anthropic_request.body(self._provider, request, self._message_cache)
            return self._client.post("/v1/messages", body)

        return self._exchanges.stream(send, AnthropicDecoder(self._provider, model), model=model)

    async def connect(self) -> None:
        """Open a connection before the first request; see `Driver`."""
        await self._client.connect()

    async def aclose(self) -> None:
        """Close every connection."""
        await self._exchanges.aclose()
        await self._client.aclose()


def _headers(provider: Provider) -> dict[str, str]:
    headers = {"anthropic-version": ANTHROPIC_VERSION}
    if provider.key is not None:
        headers["authorization"] = f"Bearer {provider.key}"
        if provider.id != "anthropic":
            headers["x-api-key"] = provider.key  # compatible services expect the key here
    if provider.id == "anthropic" and not provider.set_by_client:
        # The user's headers for Anthropic only, as one `Name: value` per line.
        lines = os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").splitlines()
        for name, colon, value in (line.partition(":") for line in lines):
            if colon:
                headers[name.strip().lower()] = value.strip()
    return headers | {name.lower(): value for name, value in provider.headers.items()}


# Claude models on a cloud: Amazon Bedrock, Google Vertex AI.
#
# The `anthropic` package's client for the cloud handles the credentials. Requests are those of the
# Messages API, sent to the cloud's addresses.


class AnthropicCloudDriver:
    """A `Driver` for a cloud. Creating one imports a package for over a second: use a thread."""

    def __init__(self, provider: Provider, cloud: Bedrock | Vertex) -> None:
        """Create the client of the cloud.

        Raises:
            ConfigError: a package that the cloud needs is not installed.
        """
        import httpx2  # noqa: PLC0415 - the package's HTTP client

        from acp_agent.models.http.proxied import HttpxBody, timeouts  # noqa: PLC0415 - likewise

        self._body = HttpxBody
        self._provider = provider
        self._cloud = cloud
        self._exchanges = Exchanges(provider)
        self._limits: dict[str, int] = {}  # of answers; see `within_limit`
        self._message_cache = MessageCache()
        self._response = httpx2.Response
        self._client = cloud.client(provider, timeouts())

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        """Ask the model. Closing the iterator closes the HTTP response at once."""
        return within_limit(self._limits, request, self._stream)

    def _stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent]]:
        model = request.model.id

        async def send() -> Body:
            payload = anthropic_request.build_body(self._provider, request, self._message_cache)
            response = await self._client.post(
                self._cloud.path(self._provider, model),
                content=self._cloud.body(payload),
                cast_to=self._response,
                options={
                    "headers": {**_RAW_RESPONSE, "Content-Type": "application/json"},
                    "follow_redirects": False,
                },
            )
            return self._body(response)

        decoder = AnthropicDecoder(self._provider, model)
        return self._exchanges.stream(send, decoder, model=model, framing=self._cloud.framing)

    async def connect(self) -> None:
        """Do nothing: the package connects with the first request."""

    async def aclose(self) -> None:
        """Close every connection."""
        await self._exchanges.aclose()
        await self._client.close()


# Lowering the output limit to the maximum that the provider reports.
#
# For a model that is not in the catalog, the requested limit may be too high. The error names the
# model's limit. The request is sent again with that limit, and later requests use it too.


def within_limit(
    limits: dict[str, int], request: ModelRequest, ask: Ask
) -> AsyncIterator[Sequence[StreamEvent]]:
    """Send a request, and once more with a lower output limit if the first one was too high.

    Args:
        limits: the limits found so far, by the model's id; new ones are added.
    """
    if request.model.limit_known:
        return ask(request)
    limit = limits.get(request.model.id)
    return (
        _retry_with_lower_limit(limits, request, ask)
        if limit is None
        else ask(_with_limit(request, limit))
    )


async def _retry_with_lower_limit(
    limits: dict[str, int], request: ModelRequest, ask: Ask
) -> AsyncGenerator[Sequence[StreamEvent]]:
    async with aclosing(ask(request)) as batches:
        async for batch in batches:
            limit = lower_limit(batch, request)
            if limit is not None:
                limits[request.model.id] = limit
                break
            yield batch
        else:
            return
    async with aclosing(ask(_with_limit(request, limits[request.model.id]))) as batches:
        async for batch in batches:
            yield batch


def lower_limit(batch: Sequence[StreamEvent], request: ModelRequest) -> int | None:
    """Return the limit, in tokens, that an error names, or None for any other error."""
    failed = batch[-1] if batch else None
    if not isinstance(failed, Failed) or failed.kind != "bad_request":
        return None
    if not _ABOUT_LIMIT.search(failed.message):
        return None
    requested = request.model.output_limit or RESERVED_OUTPUT
    numbers = [int(number.replace(",", "")) for number in _NUMBER.findall(failed.message)]
    return max((number for number in numbers if _MIN_LIMIT <= number < requested), default=None)


def _with_limit(request: ModelRequest, limit: int) -> ModelRequest:
    limit = min(limit, request.model.max_output)
    model = structs.replace(request.model, max_output=limit, limit_known=True)
    return structs.replace(request, model=model)
