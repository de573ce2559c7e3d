"""The embeddings of a memory's index."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from acp_agent.tools.memory import semantic_search as vectors_module
from acp_agent.tools.memory.notes import Note
from acp_agent.tools.memory.semantic_search import VectorIndex, unit_vector
from acp_agent.tools.memory.text_search import SearchIndex


def test_the_nearest_of_many_vectors_are_found_by_their_signatures_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "_MAX_EXACT", 5)
    index = SearchIndex(tmp_path / "recall.db")
    notes = [
        Note(scope="user", name=f"n{number}", text=f"note {number}", changed=number)
        for number in range(600)
    ]
    index.replace_notes(notes)
    vectors = VectorIndex(index, "model")
    unembedded, count = vectors.unembedded(1_000)
    assert (len(unembedded), count) == (600, 600)
    chance = random.Random(7)
    generated = {entry.passage: [chance.gauss(0, 1) for _ in range(64)] for entry in unembedded}
    vectors.store([(passage, unit_vector(numbers)) for passage, numbers in generated.items()])
    assert vectors.unembedded(1_000) == ([], 0)
    for passage, numbers in list(generated.items())[::60]:
        like = unit_vector([number + chance.gauss(0, 0.3) for number in numbers])
        assert vectors.nearest(like, 3)[0] == passage
    assert VectorIndex(index, "another").nearest(unit_vector([1.0, 2.0]), 3) == []
