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

_QUERY_SECONDS = 2.5  # for the embedding of the words
_PASSAGES_SECONDS = 5.0  # for the embeddings of passages
_FIRST_BATCH = 4  # passages in the first request, few enough for a slow local model
_LARGEST_BATCH = 128
_FAST_SECONDS = 1.0  # after a slower request, the next one is not larger
_MOST_PASSAGES = 2_000  # embedded during one search
_NEAREST = 16


class Embedding(Protocol):
    """An embedding model.

    Attributes:
        name: the model and its provider.
    """

    name: str

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return the embeddings of texts, in order.

        Raises:
            AcpAgentError: they could not be computed; the message says why.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


class Nearest(Struct, frozen=True, kw_only=True):
    """The nearest passages by meaning, nearest first, and a remark for the model."""

    passages: Sequence[int] = ()
    remark: str = ""


async def find_nearest(
    index: RecallIndex,
    open_embedding: Callable[[], Awaitable[Embedding]],
    words: str,
    clean: Callable[[str], str],
) -> Nearest:
    """Return the passages with a meaning near to the words.

    Args:
        index: the index, with all sessions and notes.
        open_embedding: opens the model; it is closed here.
        words: the words to search for.
        clean: removes secrets from a text before it is sent.

    Raises:
        WorkspaceError: the index cannot be used.
    """
    try:
        embedding = await open_embedding()
    except AcpAgentError as error:
        return _by_words_only(clean(str(error)))
    try:
        try:
            async with asyncio.timeout(_QUERY_SECONDS):
                vector = (await _embedded(embedding, [clean(words)]))[0]
        except TimeoutError:
            return _by_words_only(f"{embedding.name} took longer than {_QUERY_SECONDS:g} s")
        except (AcpAgentError, ValueError) as error:
            return _by_words_only(clean(str(error)))
        vectors = VectorIndex(index, f"{embedding.name} {len(vector)}")
        left, why = await _embed_waiting(vectors, embedding, clean, len(vector))
    finally:
        await embedding.aclose()
    found = await asyncio.to_thread(vectors.nearest, vector, _NEAREST)
    if not left:
        return Nearest(passages=found)
    because = f" ({why.rstrip('.')})" if why else ""
    remark = f"[{left} older passages are found by their words only so far{because}: ask again.]"
    return Nearest(passages=found, remark=remark)


async def _embed_waiting(
    vectors: VectorIndex, embedding: Embedding, clean: Callable[[str], str], size: int
) -> tuple[int, str]:
    """Embed passages without an embedding; return how many are left, and why."""
    began = time.monotonic()
    waiting, count = await asyncio.to_thread(vectors.waiting, _MOST_PASSAGES)
    done, batch = 0, _FIRST_BATCH
    while done < len(waiting):
        some = waiting[done : done + batch]
        sent = time.monotonic()
        try:
            async with asyncio.timeout(began + _PASSAGES_SECONDS - sent):
                found = await _embedded(embedding, [clean(one.text) for one in some])
        except TimeoutError:
            return count - done, ""
        except (AcpAgentError, ValueError) as error:
            return count - done, clean(str(error))
        if any(len(one) != size for one in found):
            return count - done, f"{embedding.name} gave vectors of different lengths"
        pairs = [(one.passage, vector) for one, vector in zip(some, found, strict=True)]
        await asyncio.to_thread(vectors.keep, pairs)
        done += len(some)
        if time.monotonic() - sent < _FAST_SECONDS:
            batch = min(2 * batch, _LARGEST_BATCH)
    return count - done, ""


async def _embedded(embedding: Embedding, texts: Sequence[str]) -> list[Vector]:
    return [unit_vector(one) for one in await embedding.embed(texts)]


def _by_words_only(why: str) -> Nearest:
    return Nearest(remark=f"[Found by words only, not by meaning: {why.rstrip('.')}.]")
