"""Drivers for Anthropic's Messages API: Anthropic, compatible services, and clouds.

The `anthropic` package handles authentication, addresses, headers and connections;
`anthropic_events` reads the stream (docs/decisions/sdk-import.md).
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec import structs

from acp_agent.models import anthropic_request
from acp_agent.models.anthropic_events import AnthropicDecoder
from acp_agent.models.base import RESERVED_OUTPUT, Failed, ModelRequest, StreamEvent
from acp_agent.models.clouds import Bedrock, Vertex
from acp_agent.models.exchange import RAW_RESPONSE, Exchanges
from acp_agent.models.providers import Provider, spelled
from acp_agent.models.sdk import NO_KEY, anthropic_client, http_client

if TYPE_CHECKING:
    from anthropic import Omit
    from httpx2 import Response


class _Refused(Exception):  # noqa: N818 - an answer, not a fault of this program
    """An answer with an error's status; made and raised by the package."""

    def __init__(self, message: str, *, body: object, response: Response) -> None:
        super().__init__(message)
        del body
        self.status_code = response.status_code
        self.response = response


class AnthropicDriver:
    """A `Driver`. Making one imports the SDK, which takes tenths of a second: use a thread."""

    def __init__(self, provider: Provider) -> None:
        import httpx2  # noqa: PLC0415 - not before a model is used

        self._provider = provider
        self._exchanges = Exchanges(provider)
        self._limits: dict[str, int] = {}  # of answers; see `within_limit`
        self._response = httpx2.Response
        timeout = httpx2.Timeout(
            None, connect=15.0, pool=15.0
        )  # the rest is `stream_with_retries`'s
        self._client = anthropic_client()(
            api_key=provider.key or NO_KEY,
            base_url=provider.base_url.removesuffix("/v1"),  # the package's paths begin with it
            max_retries=0,  # `stream_with_retries` does it, where the user can see it
            timeout=timeout,
            http_client=http_client("anthropic", provider.base_url, timeout),
        )
        # In the place of what the package adds from ANTHROPIC_CUSTOM_HEADERS: that is the user's,
        # and Anthropic's, and not for another service.
        headers = _headers(provider)
        if provider.id == "anthropic" and not provider.set_by_client:
            headers = {**self._client._custom_headers, **headers}  # noqa: SLF001 - as it says above
        setattr(self._client, "_custom_headers", headers)  # noqa: B010 - an attribute of theirs
        # The package's own would import the classes of every error there is, on the event loop:
        # 80 ms at the first failure, and only the status and the body are of use.
        setattr(self._client, "_make_status_error", _Refused)  # noqa: B010 - a method of theirs

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        """Ask the model. Closing the iterator closes the HTTP response at once."""
        return within_limit(self._limits, request, self._stream)

    def _stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent]]:
        model = request.model.id

        async def send() -> Response:
            return await self._client.post(
                "/v1/messages",
                content=anthropic_request.body(self._provider, request),
                cast_to=self._response,
                options={"headers": RAW_RESPONSE, "follow_redirects": False},
            )

        return self._exchanges.stream(send, AnthropicDecoder(self._provider, model), model=model)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._exchanges.aclose()
        await self._client.close()


def _headers(provider: Provider) -> dict[str, str | Omit]:
    from anthropic import Omit  # noqa: PLC0415 - loaded with the client, never before

    headers: dict[str, str | Omit] = {**spelled(provider.headers)}
    if provider.set_by_client and provider.key is None:
        # The client gives credentials in either of the two, or the service needs none.
        headers.setdefault("X-Api-Key", Omit())
        headers.setdefault("Authorization", Omit())
    elif provider.id != "anthropic" and provider.key is not None:
        # The package sends the key as a bearer token; others that speak the API expect it here.
        headers.setdefault("X-Api-Key", provider.key)
    return headers


# Claude models behind a cloud: Amazon Bedrock, Google Vertex AI.
#
# The `anthropic` package's client of the cloud does the credentials; the requests are those of the
# Messages API, at the cloud's own addresses.


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
        self._limits: dict[str, int] = {}  # of answers; see `within_limit`
        self._response = httpx2.Response
        # The rest of the time limits is `stream_with_retries`'s.
        self._client = cloud.client(provider, httpx2.Timeout(None, connect=15.0, pool=15.0))

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        """Ask the model. Closing the iterator closes the HTTP response at once."""
        return within_limit(self._limits, request, self._stream)

    def _stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent]]:
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


# The limit of an answer's length, lowered to what the provider says that it takes.
#
# A model that the catalog does not know is asked for more than many can give. The refusal names the
# model's own limit; the request is made again with that, and later ones begin with it.

_ABOUT_LIMIT = re.compile(r"max_(?:\w+_)?tokens|completion tokens|output tokens", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.-])\d[\d,]{2,}(?![\w-])")
_LEAST = 256  # tokens; a smaller number is no limit of a model

Ask = Callable[[ModelRequest], AsyncGenerator[Sequence[StreamEvent]]]


def within_limit(
    limits: dict[str, int], request: ModelRequest, ask: Ask
) -> AsyncIterator[Sequence[StreamEvent]]:
    """Ask a model, once more if it takes a lower limit than it was asked for.

    Args:
        limits: the limits that were found, by the model's id; added to.
        request: what to ask.
        ask: sends a request.
    """
    if request.model.limit_known:
        return ask(request)
    known = limits.get(request.model.id)
    return _lowered(limits, request, ask) if known is None else ask(_limited(request, known))


async def _lowered(
    limits: dict[str, int], request: ModelRequest, ask: Ask
) -> AsyncGenerator[Sequence[StreamEvent]]:
    async with aclosing(ask(request)) as batches:
        async for batch in batches:
            found = lower_limit(batch, request)
            if found is not None:
                limits[request.model.id] = found
                break
            yield batch
        else:
            return
    async with aclosing(ask(_limited(request, limits[request.model.id]))) as batches:
        async for batch in batches:
            yield batch


def lower_limit(batch: Sequence[StreamEvent], request: ModelRequest) -> int | None:
    """Return the limit, in tokens, that a refusal names; None where it is no such refusal."""
    failed = batch[-1] if batch else None
    if not isinstance(failed, Failed) or failed.kind != "bad_request":
        return None
    if not _ABOUT_LIMIT.search(failed.message):
        return None
    asked = request.model.output_limit or RESERVED_OUTPUT
    named = [int(number.replace(",", "")) for number in _NUMBER.findall(failed.message)]
    return max((number for number in named if _LEAST <= number < asked), default=None)


def _limited(request: ModelRequest, limit: int) -> ModelRequest:
    limit = min(limit, request.model.max_output)
    model = structs.replace(request.model, max_output=limit, limit_known=True)
    return structs.replace(request, model=model)
