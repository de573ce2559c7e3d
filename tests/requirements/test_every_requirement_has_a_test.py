"""The requirements of the wire and the tests that hold them, compared both ways."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

_TESTS = Path(__file__).resolve().parents[1]
_FIELDS = {"title", "later", "waived"}


def marked(source: str) -> Iterator[str]:
    """The ids in every `covers` mark of a module, whether it decorates or is a parameter's."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "covers"
        ):
            for argument in node.args:
                assert isinstance(argument, ast.Constant), "an id has to stand there literally"
                yield str(argument.value)


@cache
def covered() -> dict[str, list[str]]:
    """The test files that name each id."""
    found: dict[str, list[str]] = {}
    for path in sorted(_TESTS.rglob("test_*.py")):
        if "node_modules" in path.parts:
            continue
        for name in marked(path.read_text("utf-8")):
            found.setdefault(name, []).append(path.name)
    return found


@pytest.fixture(scope="module")
def requirements() -> dict[str, dict[str, str]]:
    """The requirements by id."""
    return tomllib.loads((_TESTS / "requirements" / "wire.toml").read_text("utf-8"))


def test_every_requirement_is_held_by_a_test_or_waived_with_a_reason(
    requirements: dict[str, dict[str, str]],
) -> None:
    held = covered()
    open_ones = {
        name: entry["title"]
        for name, entry in requirements.items()
        if name not in held and not entry.get("waived", "").strip()
    }
    assert not open_ones


def test_no_requirement_is_both_waived_and_held(
    requirements: dict[str, dict[str, str]],
) -> None:
    held = covered()
    assert not {
        name: held[name] for name, e in requirements.items() if "waived" in e and name in held
    }


def test_no_test_names_a_requirement_that_does_not_exist(
    requirements: dict[str, dict[str, str]],
) -> None:
    assert not {name: files for name, files in covered().items() if name not in requirements}


def test_the_list_is_complete_and_says_of_each_what_it_is(
    requirements: dict[str, dict[str, str]],
) -> None:
    expected = [
        f"{letter}{number}"
        for letter, last in (("T", 10), ("I", 6), ("S", 6), ("P", 14))
        for number in range(1, last + 1)
    ]
    assert list(requirements) == expected
    for name, entry in requirements.items():
        assert set(entry) <= _FIELDS, name
        assert entry["title"].strip(), name


def test_a_mark_is_found_wherever_it_stands() -> None:
    source = (
        "@pytest.mark.covers('T1', 'T2')\ndef test_a(): ...\n"
        "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.covers('T3'))])\n"
        "def test_b(): ...\n# @pytest.mark.covers('T4')\n"
    )
    assert sorted(marked(source)) == ["T1", "T2", "T3"]
