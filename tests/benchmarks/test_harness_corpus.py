"""The corpus of slightly wrong edits, calls and answers: run over one API, with the real agent."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.harness.cases import load
from benchmarks.harness.report import describe
from benchmarks.harness.run import run

# Raised as the harness gets better; `python -m benchmarks harness` has the goal, over all APIs.
BEST = 0.7  # the least share of cases
WRONG = 6


@pytest.mark.cold
@pytest.mark.timeout(300)
async def test_hardly_a_model_s_slip_costs_a_request_and_none_does_harm() -> None:
    judged = await run(load(), "chat")
    grades = Counter(one.grade for one in judged)
    report = "\n".join(line for one in judged for line in describe("chat", one))
    assert grades["wrong"] <= WRONG, report
    assert grades["best"] >= BEST * len(judged), report
