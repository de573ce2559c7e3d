"""docs/features.md says of every feature how far it is, and what it says exists."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "features.md"
IDS = [
    f"{group}{n}"
    for group, last in {"Z": 43, "C": 39, "K": 67, "W": 49}.items()
    for n in range(1, last + 1)
]
STATE = re.compile(r"yes|not yet|(partly|not applicable): \S.*")


def rows() -> list[list[str]]:
    """The cells of every row about a feature."""
    lines = PAGE.read_text("utf-8").splitlines()
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]
    return [row for row in cells if row[0] not in {"Id", "---"}]


def named(cell: str) -> str:
    """What a cell names between backticks; "" where it is empty."""
    assert not cell or (cell.startswith("`") and cell.endswith("`")), cell
    return cell.strip("`")


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_every_feature_has_exactly_one_row() -> None:
    counted = Counter(row[0] for row in rows())
    assert {feature: counted[feature] for feature in IDS} == dict.fromkeys(IDS, 1)
    assert set(counted) == set(IDS)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_a_row_says_how_far_it_is_and_names_what_exists(row: list[str]) -> None:
    _, name, state, where, test = row
    assert name
    assert STATE.fullmatch(state), state
    module, holder = named(where), named(test)
    if state == "yes":
        assert module
        assert holder
    if module:
        assert (ROOT / module).is_file(), module
    if holder:
        path, _, function = holder.partition("::")
        assert path.startswith("tests/")
        assert function in functions(ROOT / path), holder
