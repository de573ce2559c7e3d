"""The clouds that carry an API their own way: Azure, Amazon Bedrock, Google Vertex AI.

The two SDKs' own clients do the credentials, which is what differs most; the requests are written
and the answers read as everywhere else. What a cloud needs beyond the packages that are always
there comes with an extra of the same name.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from acp_agent.content import JsonObject
from acp_agent.errors import ConfigError
from acp_agent.models.aws_event_stream import AwsEventStreamDecoder
from acp_agent.models.headers import spelled
from acp_agent.models.providers import Provider
from acp_agent.models.sdk import anthropic_client, http_client, openai_client
from acp_agent.models.sse import SseDecoder

if TYPE_CHECKING:
    from anthropic import AsyncAnthropicBedrock, AsyncAnthropicVertex
    from httpx2 import Timeout
    from openai import AsyncAzureOpenAI

# The versions of the Messages API, as each cloud names them in the body.
_BEDROCK_VERSION = "bedrock-2023-05-31"
_VERTEX_VERSION = "vertex-2023-10-16"


def azure_client(provider: Provider, timeout: Timeout) -> AsyncAzureOpenAI:
    """A client of Azure OpenAI.

    Without a version it speaks the API that has none (`/openai/v1`), which takes the name of a
    deployment as the model. A key that is a JSON Web Token is taken as one of Entra ID's.
    """
    openai_client()  # the short import comes first
    from openai.lib.azure import AsyncAzureOpenAI  # noqa: PLC0415 - heavy

    endpoint = provider.base_url.removesuffix("/v1").removesuffix("/openai")
    version = provider.api_version or "v1"
    path = "/openai/v1" if version == "v1" else "/openai"
    token = provider.key if (provider.key or "").startswith("eyJ") else None
    return AsyncAzureOpenAI(
        base_url=f"{endpoint}{path}",
        api_version=version,
        api_key=None if token else provider.key or "",
        azure_ad_token=token,
        max_retries=0,
        timeout=timeout,
        http_client=http_client("openai", endpoint, timeout),
        default_headers=spelled(provider.headers),
    )


class Bedrock:
    """How Amazon Bedrock carries the Messages API: `InvokeModelWithResponseStream`."""

    framing: Callable[[], AwsEventStreamDecoder] = AwsEventStreamDecoder

    def client(self, provider: Provider, timeout: Timeout) -> AsyncAnthropicBedrock:
        """A client that signs each request, or sends the key as a bearer token.

        Raises:
            ConfigError: the package that signs is not installed.
        """
        if provider.key is None:
            _need("boto3", provider, "bedrock")
        anthropic_client()
        from anthropic.lib.bedrock import AsyncAnthropicBedrock  # noqa: PLC0415 - heavy

        return AsyncAnthropicBedrock(
            api_key=provider.key,
            aws_region=provider.region,
            base_url=provider.base_url,
            max_retries=0,
            timeout=timeout,
            http_client=http_client("anthropic", provider.base_url, timeout),
            default_headers=spelled(provider.headers),
        )

    def path(self, provider: Provider, model: str) -> str:
        """Where a model is asked."""
        del provider
        return f"/model/{quote(model, safe=':')}/invoke-with-response-stream"

    def body(self, written: JsonObject) -> bytes:
        """The Messages request as this cloud takes it."""
        return _carried(written, _BEDROCK_VERSION, without={"model", "stream"})


class Vertex:
    """How Google Vertex AI carries the Messages API: `streamRawPredict`."""

    framing: Callable[[], SseDecoder] = SseDecoder

    def client(self, provider: Provider, timeout: Timeout) -> AsyncAnthropicVertex:
        """A client that takes an access token, or finds the application's default credentials.

        Raises:
            ConfigError: the package that finds them is not installed.
        """
        if provider.key is None:
            _need("google.auth", provider, "vertex")
        anthropic_client()
        from anthropic.lib.vertex import AsyncAnthropicVertex  # noqa: PLC0415 - heavy

        return AsyncAnthropicVertex(
            region=provider.region or "",
            project_id=provider.project or "",
            access_token=provider.key,
            base_url=provider.base_url,
            max_retries=0,
            timeout=timeout,
            http_client=http_client("anthropic", provider.base_url, timeout),
            default_headers=spelled(provider.headers),
        )

    def path(self, provider: Provider, model: str) -> str:
        """Where a model is asked."""
        place = f"/projects/{quote(provider.project or '', safe=':')}/locations/{provider.region}"
        return f"{place}/publishers/anthropic/models/{quote(model, safe='@')}:streamRawPredict"

    def body(self, written: JsonObject) -> bytes:
        """The Messages request as this cloud takes it."""
        return _carried(written, _VERTEX_VERSION, without={"model"})


def _carried(written: JsonObject, version: str, *, without: set[str]) -> bytes:
    kept = {name: value for name, value in written.items() if name not in without}
    return msgspec.json.encode({"anthropic_version": version, **kept})


def _need(package: str, provider: Provider, extra: str) -> None:
    """See that a package is there, without importing it.

    Raises:
        ConfigError: it is not.
    """
    try:
        found = importlib.util.find_spec(package)
    except ModuleNotFoundError:  # the package above it
        found = None
    if found is None:
        variable = f" or set {provider.key_env[0]}" if provider.key_env else ""
        raise ConfigError(
            f"{provider.name} needs a further package to find your credentials: install "
            f"acp-agent-server[{extra}]{variable}."
        )
