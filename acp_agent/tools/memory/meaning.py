"""Find passages by meaning, with the embeddings of a model, within a few seconds.

Passages without an embedding get one during a search, as many as the time allows; notes and the
latest passages come first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from msgspec import Struct

from acp_agent.errors import AcpAgentError
from acp_agent.tools.memory.recall import RecallIndex
from acp_agent.tools.memory.vectors import Vector, VectorIndex, unit_vector

_MAX_QUERY_SECONDS = 2.5  # for the embedding of the words
_MAX_PASSAGES_SECONDS = 5.0  # for the embeddings of passages
_FIRST_BATCH = 4  # passages in the first request, few enough for a slow local model
_MAX_BATCH = 128
_FAST_SECONDS = 1.0  # after a slower request, the next one is not larger
_MAX_PASSAGES = 2_000  # embedded during one search
_MAX_NEAREST = 16


class Embedding(Protocol):
    """An embedding model.

    Attributes:
        name: the model and its provider.
    """

    name: str

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return the embeddings of texts, in order. Raises AcpAgentError."""

    async def aclose(self) -> None:
        """Close the connections."""


class NearestPassages(Struct, frozen=True, kw_only=True):
    """The nearest passages by meaning, nearest first, and a remark for the model."""

    passages: Sequence[int] = ()
    remark: str = ""


async def find_nearest(
    index: RecallIndex,
    open_embedding: Callable[[], Awaitable[Embedding]],
    words: str,
    clean: Callable[[str], str],
) -> NearestPassages:
    """Return the passages with a meaning near to the words.

    Args:
        open_embedding: opens the model; it is closed here.
        clean: removes secrets from a text before it is sent.

    Raises:
        WorkspaceError: the index cannot be used.
    """
    try:
        embedding = await open_embedding()
    except AcpAgentError as error:
        return _words_only(clean(str(error)))
    try:
        try:
            async with asyncio.timeout(_MAX_QUERY_SECONDS):
                vector = (await _embed(embedding, [clean(words)]))[0]
        except TimeoutError:
            return _words_only(f"{embedding.name} took longer than {_MAX_QUERY_SECONDS:g} s")
        except (AcpAgentError, ValueError) as error:
            return _words_only(clean(str(error)))
        vectors = VectorIndex(index, f"{embedding.name} {len(vector)}")
        remaining, reason = await _embed_missing(vectors, embedding, clean, len(vector))
    finally:
        await embedding.aclose()
    nearest = await asyncio.to_thread(vectors.nearest, vector, _MAX_NEAREST)
    if not remaining:
        return NearestPassages(passages=nearest)
    reason_note = f" ({reason.rstrip('.')})" if reason else ""
    remark = (
        f"[{remaining} older passages are found by their words only so far{reason_note}: "
        "ask again.]"
    )
    return NearestPassages(passages=nearest, remark=remark)


async def _embed_missing(
    vectors: VectorIndex, embedding: Embedding, clean: Callable[[str], str], size: int
) -> tuple[int, str]:
    """Embed passages without an embedding; return how many are left, and why."""
    start = time.monotonic()
    unembedded, count = await asyncio.to_thread(vectors.unembedded, _MAX_PASSAGES)
    done, batch = 0, _FIRST_BATCH
    while done < len(unembedded):
        batch_passages = unembedded[done : done + batch]
        sent_at = time.monotonic()
        try:
            async with asyncio.timeout(start + _MAX_PASSAGES_SECONDS - sent_at):
                embeddings = await _embed(
                    embedding, [clean(passage.text) for passage in batch_passages]
                )
        except TimeoutError:
            return count - done, ""
        except (AcpAgentError, ValueError) as error:
            return count - done, clean(str(error))
        if any(len(vector) != size for vector in embeddings):
            return count - done, f"{embedding.name} gave vectors of different lengths"
        pairs = [
            (passage.passage, vector)
            for passage, vector in zip(batch_passages, embeddings, strict=True)
        ]
        await asyncio.to_thread(vectors.store, pairs)
        done += len(batch_passages)
        if time.monotonic() - sent_at < _FAST_SECONDS:
            batch = min(2 * batch, _MAX_BATCH)
    return count - done, ""


async def _embed(embedding: Embedding, texts: Sequence[str]) -> list[Vector]:
    return [unit_vector(numbers) for numbers in await embedding.embed(texts)]


def _words_only(reason: str) -> NearestPassages:
    return NearestPassages(remark=f"[Found by words only, not by meaning: {reason.rstrip('.')}.]")
