"""The corpus of slightly wrong edits, calls and answers: run over one API, with the real agent."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.harness.cases import load
from benchmarks.harness.report import describe
from benchmarks.harness.run import run

# `python -m benchmarks harness` has the same goal for each API.
BEST = 0.95  # the least share of cases


@pytest.mark.cold
@pytest.mark.timeout(300)
async def test_few_mistakes_of_a_model_cost_a_request_and_none_does_harm() -> None:
    judged = await run(load()[::12], "chat")  # `python -m benchmarks harness` runs all
    grades = Counter(one.grade for one in judged)
    report = "\n".join(line for one in judged for line in describe("chat", one))
    assert not grades["wrong"], report
    assert grades["best"] >= BEST * len(judged), report
