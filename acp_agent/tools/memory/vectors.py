"""The embeddings of the index of notes and earlier sessions, and a search for the nearest.

A vector is stored as 32-bit floats with length 1. Its signature has a bit per float, set if it is
positive. The vectors whose signatures differ least are compared exactly; the others are not read.
So 10,000 vectors are searched in a few hundredths of a second without another package.
"""

from __future__ import annotations

import heapq
import math
import sqlite3
from array import array
from collections.abc import Sequence
from operator import mul
from typing import TypeAlias

from msgspec import Struct

from acp_agent.tools.memory.recall import RecallIndex

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

    def __init__(self, index: RecallIndex, model: str) -> None:
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
