"""Recorded sessions replay as they were recorded: each file in `records` is a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.replay.record import read_record
from acp_agent.replay.replay import replay

RECORDS = sorted((Path(__file__).parent / "records").glob("*.jsonl"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_recorded_session_replays_as_it_was(path: Path) -> None:
    differences = replay(read_record(path)).differences
    assert not differences, "\n\n".join(
        f"{difference.field}\n{difference.diff}" for difference in differences
    )
