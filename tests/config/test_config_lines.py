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
def test_a_value_is_found_on_its_line(path: tuple[Key, ...], line: int | None) -> None:
    assert find_line(TEXT, path) == line


def test_many_values_are_found_at_once_on_the_same_lines() -> None:
    paths = [path for path, _ in PATHS_WITH_LINES]
    assert find_lines(TEXT, paths) == [line for _, line in PATHS_WITH_LINES]


def test_a_value_is_found_together_with_the_element_that_it_is_in() -> None:
    text = "x = [\n  { a = 1 },\n  { b = 2 },\n]\n"
    assert find_lines(text, [("x", 1, "b"), ("x", 1), ("x", 0, "missing")]) == [3, 3, 2]


def test_line_ends_of_other_systems_count_the_same() -> None:
    assert find_line(TEXT.replace("\n", "\r\n"), ("far", "below", "y")) == 26


def test_what_is_no_toml_has_no_lines_but_an_error_line() -> None:
    assert find_line("a = ", ("a",)) is None
    assert syntax_error_line("a = 1\nb = \n") == 2
    assert syntax_error_line("a = 1\n") is None


@given(before=st.lists(st.sampled_from(["", "# x", "[t]", "[t.u]", "  # é"]), max_size=8))
def test_what_stands_before_moves_the_line_by_its_length(before: list[str]) -> None:
    prefixes: list[str] = []
    for line in before:
        if not line.startswith("[") or line not in prefixes:
            prefixes.append(line)
    text = "\n".join([*prefixes, "[wanted]", "key = 1"])
    assert find_line(text, ("wanted", "key")) == len(prefixes) + 2
