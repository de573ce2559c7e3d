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

LONGEST = 1_500  # characters of a passage that are embedded: local models accept few tokens
_EXACT = 200  # vectors that are compared exactly
_LEAST = 0.2  # similarity; anything below is not similar, for any model
_OF_BEST = 0.75  # minimum similarity as a fraction of the best one's

Vector: TypeAlias = "array[float]"


class Waiting(Struct, frozen=True, kw_only=True):
    """A passage without an embedding."""

    passage: int
    text: str


def unit_vector(numbers: Sequence[float]) -> Vector:
    """Return a vector scaled to length 1.

    Raises:
        ValueError: its length is zero or not finite.
    """
    length = math.sqrt(sum(map(mul, numbers, numbers)))
    if not length or not math.isfinite(length):
        raise ValueError("an embedding has no length")
    return array("f", [one / length for one in numbers])


class VectorIndex:
    """The embeddings in an index. All methods block: call them in a thread, like the index's.

    Args:
        index: the index.
        model: identifies the model; embeddings of other models are dropped.
    """

    def __init__(self, index: RecallIndex, model: str) -> None:
        self._index = index
        self._model = model

    def waiting(self, most: int) -> tuple[Sequence[Waiting], int]:
        """Return passages without an embedding, notes and newest first, and their total count.

        Raises:
            WorkspaceError: the index cannot be used.
        """
        with self._index.opened() as db:
            self._begin(db)
            (count,) = db.execute("SELECT count(*) FROM vectors WHERE signature IS NULL").fetchone()
            found = db.execute(
                "SELECT passage, shown FROM vectors JOIN passages ON passages.rowid = passage"
                " WHERE signature IS NULL ORDER BY vectors.session <> '', at DESC LIMIT ?",
                (most,),
            )
            return [Waiting(passage=one, text=text[:LONGEST]) for one, text in found], count

    def keep(self, vectors: Sequence[tuple[int, Vector]]) -> None:
        """Store the embeddings of passages.

        Raises:
            WorkspaceError: the index cannot be used.
        """
        with self._index.opened() as db:
            self._begin(db)
            db.executemany(
                "UPDATE vectors SET signature = ?, vector = ? WHERE passage = ?",
                [(_signature(one), one.tobytes(), passage) for passage, one in vectors],
            )

    def nearest(self, vector: Vector, most: int) -> Sequence[int]:
        """Return the passages that are similar to a vector, nearest first.

        Raises:
            WorkspaceError: the index cannot be used.
        """
        wanted = int.from_bytes(_signature(vector))
        with self._index.opened() as db:
            self._begin(db)
            signatures = db.execute(
                "SELECT passage, signature FROM vectors WHERE signature IS NOT NULL"
            )
            distances = (
                ((int.from_bytes(bits) ^ wanted).bit_count(), passage)
                for passage, bits in signatures
            )
            near: list[tuple[float, int]] = []
            for _, passage in heapq.nsmallest(_EXACT, distances):
                (data,) = db.execute(
                    "SELECT vector FROM vectors WHERE passage = ?", (passage,)
                ).fetchone()
                other = array("f")
                other.frombytes(data)
                near.append((sum(map(mul, vector, other)), passage))
        near.sort(reverse=True)
        least = max(_LEAST, near[0][0] * _OF_BEST) if near else _LEAST
        return [passage for similarity, passage in near if similarity >= least][:most]

    def _begin(self, db: sqlite3.Connection) -> None:
        """Drop the embeddings of another model."""
        if db.execute("SELECT model FROM embedding").fetchall() == [(self._model,)]:
            return
        db.execute("UPDATE vectors SET signature = NULL, vector = NULL")
        db.execute("DELETE FROM embedding")
        db.execute("INSERT INTO embedding VALUES (?)", (self._model,))


def _signature(vector: Vector) -> bytes:
    bits = int("".join("1" if one > 0 else "0" for one in vector), 2)
    return bits.to_bytes((len(vector) + 7) // 8)
