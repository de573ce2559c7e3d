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
def measured() -> list[str]:
    return path_lists(measured_paths()).strip().splitlines()


def test_the_architecture_lists_every_file_of_the_three_paths_with_its_topic(
    listed: list[str], measured: list[str]
) -> None:
    assert sorted(listed) == sorted(measured), "run `python -m benchmarks.structure --write`"


def test_the_files_are_listed_in_the_order_in_which_they_run_until_the_model_is_asked(
    listed: list[str], measured: list[str]
) -> None:
    asks = next(at for at, line in enumerate(measured) if "agent/answer.py" in line)
    assert listed[:asks] == measured[:asks], "run `python -m benchmarks.structure --write`"


def test_no_module_imports_itself_in_a_circle_or_is_too_long_and_no_folder_is_too_full() -> None:
    assert broken_rules(modules()) == []
