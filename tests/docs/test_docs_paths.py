"""The paths through the code that docs/architecture.md lists are those that the agent runs."""

from __future__ import annotations

import pytest

from benchmarks.structure import (
    ARCHITECTURE,
    PATHS_BEGIN,
    PATHS_END,
    broken_rules,
    measured_paths,
    modules,
    path_lists,
)


@pytest.fixture(scope="module")
def listed() -> list[str]:
    text = ARCHITECTURE.read_text("utf-8")
    return text.split(PATHS_BEGIN)[1].split(PATHS_END)[0].strip().splitlines()


@pytest.fixture(scope="module")
def measured(listed: list[str]) -> list[str]:
    """The present paths. What is left of the work before may run into one, so it is tried again."""
    lines: list[str] = []
    for _ in range(3):
        lines = path_lists(measured_paths()).strip().splitlines()
        if sorted(lines) == sorted(listed) and until_model(lines) == until_model(listed):
            break
    return lines


def until_model(lines: list[str]) -> list[str]:
    """The files of a prompt before the model is asked: from there on threads run side by side."""
    return lines[: next(at for at, line in enumerate(lines) if "agent/answer.py" in line)]


def test_the_architecture_lists_every_file_of_the_three_paths_with_its_topic(
    listed: list[str], measured: list[str]
) -> None:
    assert sorted(listed) == sorted(measured), "run `python -m benchmarks.structure --write`"


def test_the_files_are_listed_in_the_order_in_which_they_run_until_the_model_is_asked(
    listed: list[str], measured: list[str]
) -> None:
    assert until_model(listed) == until_model(measured), (
        "run `python -m benchmarks.structure --write`"
    )


def test_no_module_imports_itself_in_a_circle_or_is_too_long_and_no_folder_is_too_full() -> None:
    assert broken_rules(modules()) == []
