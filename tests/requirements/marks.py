"""Reads which tests name which wire requirement."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def requirements() -> dict[str, dict[str, str]]:
    """The requirements by id, as they stand in the file."""
    return tomllib.loads((TESTS / "requirements" / "wire.toml").read_text("utf-8"))


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
    """The test files that name each id, by id; a file as often as it has marks with the id."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        if "node_modules" in path.parts:
            continue
        source = path.read_text("utf-8")
        for name in marked(source) if "covers" in source else ():  # most modules have no mark
            found.setdefault(name, []).append(path.relative_to(TESTS).as_posix())
    return found
