"""Find passages by meaning, with the embeddings of a model, within a few seconds.

Passages without an embedding get one during a search, as many as the time allows; notes and the
latest passages come first.

A vector is stored as 32-bit floats with length 1. Its signature has a bit per float, set if it is
positive. The vectors whose signatures differ least are compared exactly; the others are not read.
So 10,000 vectors are searched in a few hundredths of a second without another package.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import sqlite3
import time
from array import array
from collections.abc import Awaitable, Callable, Sequence
from operator import mul
from typing import Protocol, TypeAlias

from msgspec import Struct

from acp_agent.errors import AcpAgentError
from acp_agent.tools.memory.text_search import SearchIndex

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
    index: SearchIndex,
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


# Characters of a passage that are embedded: local models accept few tokens.
MAX_EMBEDDED_LENGTH = 1_500
_MAX_EXACT = 200  # vectors that are compared exactly
_MIN_SIMILARITY = 0.2  # similarity; anything below is not similar, for any model
_MIN_BEST_SHARE = 0.75  # minimum similarity as a fraction of the best one's

Vector: TypeAlias = "array[float]"


class UnembeddedPassage(Struct, frozen=True, kw_only=True):
    """A passage without an embedding."""

    passage: int
    text: str


def unit_vector(numbers: Sequence[float]) -> Vector:
    """Return a vector scaled to length 1. Raises ValueError if its length is zero or not finite."""
    length = math.sqrt(sum(map(mul, numbers, numbers)))
    if not length or not math.isfinite(length):
        raise ValueError("an embedding has no length")
    return array("f", [number / length for number in numbers])


class VectorIndex:
    """The embeddings in an index. All methods block: call them in a thread, like the index's.

    Args:
        model: identifies the model; embeddings of other models are dropped.
    """

    def __init__(self, index: SearchIndex, model: str) -> None:
        self._index = index
        self._model = model

    def unembedded(self, limit: int) -> tuple[Sequence[UnembeddedPassage], int]:
        """Return passages without an embedding, notes and newest first, and their total count.

        Raises:
            WorkspaceError: the index cannot be used.
        """
        with self._index.open_transaction() as db:
            self._drop_other_models(db)
            (count,) = db.execute("SELECT count(*) FROM vectors WHERE signature IS NULL").fetchone()
            rows = db.execute(
                "SELECT passage, shown FROM vectors JOIN passages ON passages.rowid = passage"
                " WHERE signature IS NULL ORDER BY vectors.session <> '', at DESC LIMIT ?",
                (limit,),
            )
            return [
                UnembeddedPassage(passage=passage, text=text[:MAX_EMBEDDED_LENGTH])
                for passage, text in rows
            ], count

    def store(self, vectors: Sequence[tuple[int, Vector]]) -> None:
        """Store the embeddings of passages. Raises WorkspaceError if the index cannot be used."""
        with self._index.open_transaction() as db:
            self._drop_other_models(db)
            db.executemany(
                "UPDATE vectors SET signature = ?, vector = ? WHERE passage = ?",
                [(_signature(vector), vector.tobytes(), passage) for passage, vector in vectors],
            )

    def nearest(self, vector: Vector, limit: int) -> Sequence[int]:
        """Return the passages that are similar to a vector, nearest first.

        Raises:
            WorkspaceError: the index cannot be used.
        """
        target_bits = int.from_bytes(_signature(vector))
        with self._index.open_transaction() as db:
            self._drop_other_models(db)
            signatures = db.execute(
                "SELECT passage, signature FROM vectors WHERE signature IS NOT NULL"
            )
            distances = (
                ((int.from_bytes(bits) ^ target_bits).bit_count(), passage)
                for passage, bits in signatures
            )
            similarities: list[tuple[float, int]] = []
            for _, passage in heapq.nsmallest(_MAX_EXACT, distances):
                (data,) = db.execute(
                    "SELECT vector FROM vectors WHERE passage = ?", (passage,)
                ).fetchone()
                stored_vector = array("f")
                stored_vector.frombytes(data)
                similarities.append((sum(map(mul, vector, stored_vector)), passage))
        similarities.sort(reverse=True)
        min_similarity = (
            max(_MIN_SIMILARITY, similarities[0][0] * _MIN_BEST_SHARE)
            if similarities
            else _MIN_SIMILARITY
        )
        return [passage for similarity, passage in similarities if similarity >= min_similarity][
            :limit
        ]

    def _drop_other_models(self, db: sqlite3.Connection) -> None:
        """Drop the embeddings of another model."""
        if db.execute("SELECT model FROM embedding").fetchall() == [(self._model,)]:
            return
        db.execute("UPDATE vectors SET signature = NULL, vector = NULL")
        db.execute("DELETE FROM embedding")
        db.execute("INSERT INTO embedding VALUES (?)", (self._model,))


def _signature(vector: Vector) -> bytes:
    bits = int("".join("1" if number > 0 else "0" for number in vector), 2)
    return bits.to_bytes((len(vector) + 7) // 8)
