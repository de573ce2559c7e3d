"""Every key of the published schema, with wrong values: the error names file, line and key."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from acp_agent.config.load import load_config
from acp_agent.errors import ConfigError

SCHEMA: Mapping[str, Any] = json.loads(
    (Path(__file__).parents[2] / "schemas" / "config.schema.json").read_text("utf-8")
)
NESTING = 5
ELEMENT = "[]"


def resolved(node: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in node:
        node = SCHEMA["$defs"][node["$ref"].rpartition("/")[2]]
    return node


def alternatives(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    node = resolved(node)
    return [resolved(each) for each in node.get("anyOf", [node])]


def keys(node: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of each key; a table with names of the user's gets one."""
    for alternative in alternatives(node) if len(path) < NESTING else ():
        inner = dict(alternative.get("properties", {}))
        if isinstance(more := alternative.get("additionalProperties"), dict):
            inner["some-name"] = more
        for key, value in inner.items():
            yield (*path, key)
            yield from keys(value, (*path, key))
        if isinstance(items := alternative.get("items"), dict):
            yield from keys(items, (*path, ELEMENT))


def written(path: tuple[str, ...], value: str) -> str:
    for key in reversed(path[1:]):
        value = f"[{value}]" if key == ELEMENT else f"{{ {key} = {value} }}"
    return f"# a comment\n\n{path[0]} = {value}\n"


def refusal(file: Path, path: tuple[str, ...], value: str) -> str:
    file.write_text(written(path, value), "utf-8")
    try:
        load_config(file, {})
    except ConfigError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("value", ["1979-05-27", "-7", "[[1]]", "{ unknown = 1 }"])
def test_a_wrong_value_of_any_key_is_an_error_with_file_line_and_key(
    value: str, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    problems = {path: problem for path in keys(SCHEMA) if (problem := refusal(file, path, value))}
    assert len(problems) > 150
    for path, problem in problems.items():
        first = next(key for key in path if key != ELEMENT)
        assert problem.startswith(f"{file}:3: {first}"), path
        assert "\n" not in problem
