"""Edits of real source files with random slips: as intended, or refused."""

from __future__ import annotations

import os

from benchmarks.harness.mutations import trials

WRONG = 2  # to become none
SEED = int(os.environ.get("ACP_AGENT_FUZZ_SEED", "1"))


def test_an_edit_with_a_slip_is_made_as_intended_or_refused() -> None:
    wrong = [trial for trial in trials(SEED, 500) if trial.result == "wrong"]
    assert len(wrong) <= WRONG, wrong[:3]
