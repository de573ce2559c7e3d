"""The line of a value in a TOML text."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from acp_agent.config.toml_errors import Key, find_lines, syntax_error_line


def find_line(text: str, path: Sequence[Key]) -> int | None:
    return find_lines(text, [path])[0]


TEXT = """# a comment with limits.max_retries = 9
mode = "ask"
limits.max_retries = 3   # dotted

[providers.x]
api = \"\"\"
two lines\"\"\"
headers = { a = "1", b = "2" }

[models."a/b"]
levels = [
  "low",
  # "high",
  "max", [
  1, 2],
]
price.input = 1
[[list]]
k = 1
[[list]]
k = { deep = 2 }
[far.below.here]
z = 1
[other]
[far.below]
y = 2
on = true
"""

PATHS_WITH_LINES: list[tuple[tuple[Key, ...], int | None]] = [
    (("mode",), 2),
    (("limits", "retries"), 3),
    (("limits",), 3),
    (("limits", "missing"), 3),
    (("providers",), 5),
    (("providers", "x"), 5),
    (("providers", "x", "api"), 6),
    (("providers", "x", "headers", "b"), 8),
    (("models", "a/b", "levels"), 11),
    (("models", "a/b", "levels", 0), 12),
    (("models", "a/b", "levels", 1), 14),
    (("models", "a/b", "levels", 2, 1), 15),
    (("models", "a/b", "price", "input"), 17),
    (("models", "a/b", "price", "output"), 17),
    (("list",), 18),
    (("list", 1), 20),
    (("list", 1, "k", "deep"), 21),
    (("far",), 22),
    (("far", "below", "here", "z"), 23),
    (("far", "below"), 22),
    (("far", "below", "y"), 26),
    (("far", "below", "on"), 27),
    (("nowhere",), None),
]


@pytest.mark.parametrize(
    ("path", "line"), PATHS_WITH_LINES, ids=[str(path) for path, _ in PATHS_WITH_LINES]
)
def test_the_line_of_a_value_is_returned(path: tuple[Key, ...], line: int | None) -> None:
    assert find_line(TEXT, path) == line


def test_many_values_have_the_same_lines_as_single_ones() -> None:
    paths = [path for path, _ in PATHS_WITH_LINES]
    assert find_lines(TEXT, paths) == [line for _, line in PATHS_WITH_LINES]


def test_a_value_in_an_array_has_the_line_of_its_element() -> None:
    text = "x = [\n  { a = 1 },\n  { b = 2 },\n]\n"
    assert find_lines(text, [("x", 1, "b"), ("x", 1), ("x", 0, "missing")]) == [3, 3, 2]


def test_line_endings_of_other_systems_count_as_lines() -> None:
    assert find_line(TEXT.replace("\n", "\r\n"), ("far", "below", "y")) == 26


def test_invalid_toml_has_no_values_but_the_line_of_its_error() -> None:
    assert find_line("a = ", ("a",)) is None
    assert syntax_error_line("a = 1\nb = \n") == 2
    assert syntax_error_line("a = 1\n") is None


@given(before=st.lists(st.sampled_from(["", "# x", "[t]", "[t.u]", "  # é"]), max_size=8))
def test_text_before_a_value_moves_its_line(before: list[str]) -> None:
    prefixes: list[str] = []
    for line in before:
        if not line.startswith("[") or line not in prefixes:
            prefixes.append(line)
    text = "\n".join([*prefixes, "[wanted]", "key = 1"])
    assert find_line(text, ("wanted", "key")) == len(prefixes) + 2
