"""Check that a provider is reachable and accepts the key, without using a model."""

from __future__ import annotations

import time
from typing import Literal

from msgspec import DecodeError, Struct, ValidationError

from acp_agent.config.certificates import tls_verification
from acp_agent.config.network_addresses import no_proxy_mounts
from acp_agent.errors import ConfigError
from acp_agent.models.providers import ANTHROPIC_VERSION, Provider
from acp_agent.platform.decoding import decode_json
from acp_agent.platform.descriptor_limit import explain_descriptor_limit

BODY_LIMIT = 8 * 1024 * 1024  # bytes; some gateways list hundreds of models

# If the list of models needs no key, another address is used to check the key.
_KEY_PATHS = {"openrouter": "/key"}


class Answer(Struct, frozen=True, kw_only=True):
    """The result of a check.

    `ok`: the provider accepts the key. `refused`: it rejects the key. `unclear`: it answers, but
    the key cannot be checked. `unreachable`: it does not answer. `detail` is one line for the user.
    """

    verdict: Literal["ok", "refused", "unclear", "unreachable"]
    detail: str
    models: tuple[str, ...] = ()


class _Entry(Struct):
    id: str


class _Models(Struct):
    data: list[_Entry]


class _NamedModel(Struct):
    name: str


class _GeminiModels(Struct):
    models: list[_NamedModel]


def check_provider(provider: Provider, key: str | None, *, timeout: float) -> Answer:
    """Ask `provider` for its models with `key`, for at most `timeout` seconds. Blocks.

    Redirects are not followed, because they could send the key to another host.
    """
    if provider.lacks is not None:
        return Answer(verdict="unclear", detail=f"is incomplete: {provider.lacks}")
    if provider.platform in {"bedrock", "vertex"}:
        return Answer(verdict="unclear", detail="checks its key only when a model is used")

    import httpx2  # noqa: PLC0415 - heavy

    try:
        trust = tls_verification(provider.base_url)
    except ConfigError as error:
        return Answer(verdict="unreachable", detail=f"cannot be reached: {error}")
    deadline = time.monotonic() + timeout
    try:
        with (
            httpx2.Client(
                timeout=timeout,
                follow_redirects=False,
                mounts=no_proxy_mounts(provider.base_url),
                verify=trust,
            ) as client,
            client.stream("GET", _address(provider), headers=_headers(provider, key)) as response,
        ):
            body = b""
            for piece in response.iter_bytes():
                body += piece
                if len(body) > BODY_LIMIT or time.monotonic() > deadline:
                    break
            return _judge(response.status_code, body)
    except httpx2.TimeoutException:
        return Answer(verdict="unreachable", detail=f"no answer within {timeout:g} s")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        limited = explain_descriptor_limit(error)
        if limited is not None:
            return Answer(verdict="unreachable", detail=f"cannot be reached: {limited}")
        # The error's message is not shown: it may quote a header that could not be sent.
        return Answer(verdict="unreachable", detail=f"cannot be reached ({type(error).__name__})")


def _address(provider: Provider) -> str:
    if provider.api == "anthropic":
        return f"{provider.base_url.removesuffix('/v1')}/v1/models"
    if provider.platform == "azure":
        return f"{provider.base_url.removesuffix('/v1').removesuffix('/openai')}/openai/v1/models"
    return provider.base_url + _KEY_PATHS.get(provider.id, "/models")


def _headers(provider: Provider, key: str | None) -> dict[str, str]:
    headers = dict(provider.headers)
    if provider.api == "anthropic":
        headers["anthropic-version"] = ANTHROPIC_VERSION
        if key:
            headers["x-api-key"] = key
    elif provider.api == "gemini":
        if key:
            headers["x-goog-api-key"] = key
    elif provider.platform == "azure" and key and not key.startswith("eyJ"):
        headers["api-key"] = key
    elif key:
        headers["Authorization"] = f"Bearer {key}"
    return headers


def _judge(status: int, body: bytes) -> Answer:
    if status in {401, 403}:
        return Answer(verdict="refused", detail=f"rejected the key (HTTP {status})")
    if status != 200:
        return Answer(
            verdict="unclear",
            detail=(f"responded with HTTP {status} to the request for its models"),
        )
    if body.lstrip().startswith(b"<"):
        return Answer(verdict="unclear", detail="responded with a web page instead of an API")
    try:
        models = _names(body)
    except (DecodeError, UnicodeDecodeError):
        return Answer(verdict="ok", detail="answers")
    return Answer(verdict="ok", detail=f"responded: {len(models)} models available", models=models)


def _names(body: bytes) -> tuple[str, ...]:
    try:
        return tuple(entry.id for entry in decode_json(body, _Models).data)
    except ValidationError:
        entries = decode_json(body, _GeminiModels).models
        return tuple(entry.name.removeprefix("models/") for entry in entries)
