"""A problem that only moved is no new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.language_servers.problems import (
    Problem,
    describe_problems,
    line_moves,
    moved_problems,
    new_problems,
)
from acp_agent.language_servers.wire import UTF_8, UTF_16, UTF_32, Position, to_column, to_position


def problems(*locations: str) -> list[Problem]:
    """Problems from `line message` each."""
    entries = [location.partition(" ") for location in locations]
    return [Problem(path="/p/a.py", line=int(line), message=text) for line, _, text in entries]


@pytest.mark.parametrize(
    ("old", "new", "before", "after", "found"),
    [
        ("a\nb\nc", "x\na\nb\nc", ["2 bad"], ["3 bad"], []),
        ("a\nb\nc", "a\nb\nc\nc", ["3 bad"], ["3 bad", "4 bad"], ["4 bad"]),
        ("a\nb\nc", "a\nB\nc", ["2 bad"], ["2 bad"], []),
        ("a\nb\nc", "a\nB\nc", ["2 bad"], ["2 worse"], ["2 worse"]),
        ("a\nb\nc\nd", "x\na\nb\ny\nc\nd", ["3 bad"], ["5 bad"], []),
        ("a\nb", "x\na\nb", ["2 see line 1"], ["3 see line 2"], []),
        ("a\r\nb", "x\r\na\r\nb", ["2 bad"], ["3 bad"], []),
        ("a\nb", "b", ["1 bad"], [], []),
        ("a\nb", "a\nb", [], ["1 bad", "1 bad"], ["1 bad", "1 bad"]),
        ("", "a", [], ["1 bad"], ["1 bad"]),
    ],
)
def test_only_new_problems_count(
    old: str, new: str, before: list[str], after: list[str], found: list[str]
) -> None:
    moved = moved_problems(problems(*before), line_moves(old, new))
    assert new_problems(moved, problems(*after)) == problems(*found)


@pytest.mark.parametrize(
    ("encoding", "units"), [(UTF_8, [0, 1, 3, 7]), (UTF_16, [0, 1, 2, 4]), (UTF_32, [0, 1, 2, 3])]
)
def test_columns_count_characters_with_every_encoding_of_the_server(
    encoding: str, units: list[int]
) -> None:
    lines = ["aé𝄞b"]
    for column, unit in enumerate(units, 1):
        position = Position(line=0, character=unit)
        assert to_position(lines, 1, column, encoding) == position
        assert to_column(lines, position, encoding) == column


def test_a_list_of_problems_is_short_and_begins_with_the_errors(tmp_path: object) -> None:
    del tmp_path

    many = [
        Problem(path="/p/a.py", line=line, message="m\nn", severity="warning")
        for line in range(1, 15)
    ]
    text = describe_problems([*many, Problem(path="/p/b.py", line=1, message="worst")], Path("/p"))
    lines = text.split("\n")
    assert lines[0] == "b.py:1:1: error: worst"
    assert lines[1] == "a.py:1:1: warning: m n"
    assert lines[-1] == "and 5 more"
    assert len(lines) == 11
