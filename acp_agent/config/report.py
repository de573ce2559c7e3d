"""Says what is wrong with a configuration, one line a mistake, with the line it is on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acp_agent.config.check import find_problems
from acp_agent.config.lines import lines_of
from acp_agent.config.load import VARIABLES, parse, read_text
from acp_agent.config.types import Config
from acp_agent.errors import ConfigError

MOST = 20  # mistakes of a file that are told one by one


def list_problems(path: Path, environ: Mapping[str, str]) -> list[str]:
    """Everything wrong with the file and the variables; empty where `load_config` would succeed."""
    try:
        text = read_text(path)
        table = parse(path, text) if text else {}
    except ConfigError as error:
        return [str(error), *_variable_problems(environ)]
    return config_problems(path, text, table, environ)


def config_problems(
    path: Path, text: str, table: dict[str, Any], environ: Mapping[str, str]
) -> list[str]:
    """The mistakes in `table`, parsed from the `text` of `path`, and in the variables."""
    found = list(find_problems(table, Config))
    said = []
    told = found[:MOST]
    for problem, line in zip(told, lines_of(text, [each.path for each in told]), strict=True):
        where = str(path) if line is None else f"{path}:{line}"
        said.append(f"{where}: {problem.key}: {problem.text}")
    if len(found) > MOST:
        said.append(f"{path}: {len(found) - MOST} more mistakes")
    return said + _variable_problems(environ)


def _variable_problems(environ: Mapping[str, str]) -> list[str]:
    said = []
    for name, keys in VARIABLES.items():
        value: object = environ.get(name)
        if not value:
            continue
        for key in reversed(keys):
            value = {key: value}
        said += [f"the variable {name}: {found.text}" for found in find_problems(value, Config)]
    return said
