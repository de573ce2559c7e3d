"""Request embeddings from a provider with OpenAI's API, which most servers support.

https://platform.openai.com/docs/api-reference/embeddings
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from acp_agent.errors import ConfigError, ModelError
from acp_agent.events import Usage
from acp_agent.models import failures
from acp_agent.models.http.client import Client
from acp_agent.models.http.factory import make_client
from acp_agent.models.openai_driver import address_and_headers
from acp_agent.models.providers import Provider
from acp_agent.models.registry import Models
from acp_agent.platform.decoding import decode_json

if TYPE_CHECKING:  # only needed if a command prints the key
    from acp_agent.models.key_command import CommandKey

Count = Callable[[Usage], Awaitable[None]]

_MAX_ANSWER_BYTES = 32_000_000  # the longest answer


class _Entry(Struct):
    embedding: list[float]
    index: int | None = None


class _Usage(Struct, frozen=True):
    prompt_tokens: int = 0


class _Answer(Struct):
    data: list[_Entry]
    usage: _Usage = _Usage()


class Embedder:
    """Embeds texts with one model. Requests are not retried: search by words works without them."""

    def __init__(
        self,
        provider: Provider,
        model: str,
        client: Client,
        *,
        count: Count,
        key: CommandKey | None = None,
    ) -> None:
        """Args: count: receives the usage of each request; key: the key, if a command prints it."""
        self.name = f"{provider.id}/{model} at {provider.address}"
        self._provider = provider
        self._model = model
        self._client = client
        self._key = key
        self._count = count

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return the embeddings of texts, in their order.

        Raises:
            ModelError: the provider returned none; the message says why.
        """
        body = msgspec.json.encode({"model": self._model, "input": list(texts)})
        try:
            answer = decode_json(await self._ask(body), _Answer)
        except ModelError:
            raise
        except Exception as error:
            failed = failures.from_exception(
                self._provider, error, model=self._model, answer_started=False
            )
            raise ModelError(
                failed.message, provider=self._provider.id, status=failed.status
            ) from error
        entries = answer.data
        if answer.usage.prompt_tokens > 0:
            await self._count(Usage(input=answer.usage.prompt_tokens))
        if all(entry.index is not None for entry in entries):
            entries.sort(key=lambda entry: entry.index or 0)
        if len(entries) != len(texts):
            raise self._malformed(f"it gave {len(entries)} embeddings for {len(texts)} texts")
        return [entry.embedding for entry in entries]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _ask(self, body: bytes) -> bytes:
        if self._key is not None:
            await self._use(await self._key.provider())
        answer = await self._client.post("/embeddings", body)
        received = bytearray()
        try:
            while (piece := await answer.read()) is not None:
                received += piece
                if len(received) > _MAX_ANSWER_BYTES:
                    raise self._malformed("its answer is too long")
        finally:
            await answer.close()
        return bytes(received)

    async def _use(self, provider: Provider) -> None:
        if provider != self._provider:
            previous, self._provider = self._client, provider
            self._client = await asyncio.to_thread(make_client, *address_and_headers(provider))
            await previous.aclose()

    def _malformed(self, why: str) -> ModelError:
        failed = failures.malformed(self._provider, why)
        return ModelError(failed.message, provider=self._provider.id)


async def open_embedder(models: Models, ref: str, count: Count) -> Embedder:
    """Return an embedder for a model.

    Args:
        count: receives the usage of each request.

    Raises:
        AuthRequiredError: the provider has no key, or a client disabled it.
        ConfigError: the provider lacks a setting, or has another API.
        InvalidInputError: there is no such provider.
    """
    info = models.resolve(ref)
    provider = models.require(info)
    if provider.api not in {"openai", "openai_responses"}:
        raise ConfigError(
            f"embedding_model: {provider.name} is not asked for embeddings; choose a model of a "
            "provider with OpenAI's API, such as openai/text-embedding-3-small"
        )
    # Reading certificates takes time.
    client = await asyncio.to_thread(make_client, *address_and_headers(provider))
    key = models.command_key(provider) if provider.key_command else None
    return Embedder(provider, info.id, client, count=count, key=key)
