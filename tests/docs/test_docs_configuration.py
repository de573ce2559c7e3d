"""docs/configuration.md tells every setting, with its default, and its examples work."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
import pytest
from msgspec import NODEFAULT, Struct

from acp_agent.config.load import load_config
from acp_agent.config.paths import HOME_VARIABLE
from acp_agent.config.types import VARIABLES, Config
from acp_agent.models.providers import presets

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "configuration.md").read_text("utf-8")
BLOCKS = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
# How the page calls the keys that users choose.
ENTRY = {
    "providers": "NAME",
    "models": "REF",
    "skills": "NAME",
    "agents": "NAME",
    "language_servers": "NAME",
    "mcp_servers": "NAME",
    "hooks": "EVENT",
}


def settings(kind: type[Struct], above: str = "") -> Iterator[tuple[str, Any]]:
    """Every key as the page writes it, with its default."""
    for field in msgspec.structs.fields(kind):
        key = f"{above}{field.encode_name}"
        tables = [inner for inner in arms(field.type) if issubclass(inner, Struct)]
        if field.default_factory is list:  # a rule is text, or a table that docs/policy.md explains
            tables = []
        if key in ENTRY:
            key = f"{key}.{ENTRY[key]}"
        elif not tables or field.default is None:
            default = field.default
            if default is NODEFAULT and field.default_factory is not NODEFAULT:
                default = field.default_factory()
            yield key, default
        for table in tables:
            yield from settings(table, f"{key}.")


def arms(kind: Any) -> list[type]:
    """The plain types that an annotation is made of."""
    if get_origin(kind) is None:
        return [kind] if isinstance(kind, type) else []
    return [found for argument in get_args(kind) for found in arms(argument)]


def told() -> dict[str, list[str]]:
    """The rows about settings: meaning, default and example by key."""
    found = {}
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| `") and len(cells) == 4:
            found[cells[0].strip("`")] = cells[1:]
    return found


def test_every_key_is_explained() -> None:
    assert set(told()) == {key for key, _ in settings(Config)}
    assert all(meaning and example for meaning, _, example in told().values())


def test_the_defaults_are_the_programs() -> None:
    for key, default in settings(Config):
        said = told()[key][1]
        if default is None:
            assert said == "none", key
        elif default is NODEFAULT:
            assert said == "required", key
        else:
            assert tomllib.loads(f"it = {said.strip('`')}")["it"] == default, key


@pytest.mark.parametrize("block", BLOCKS)
def test_an_example_is_a_configuration(block: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(block, "utf-8")
    assert load_config(path, {}) != Config()


def test_the_examples_show_every_table() -> None:
    shown = {key for block in BLOCKS for key in tomllib.loads(block)}
    assert {"providers", "models", "limits", "editor", "log", "skills", "agents"} <= shown


def test_every_variable_and_every_preset_is_listed() -> None:
    assert all(f"| `{name}` |" in PAGE for name in (HOME_VARIABLE, *VARIABLES))
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    for preset in presets():
        row = next(line for line in rows if line.startswith(f"| `{preset.id}`"))
        expected = (*preset.aliases, *preset.key_env, *filter(None, [preset.base_url]))
        assert all(f"`{word}`" in row for word in expected), preset.id
