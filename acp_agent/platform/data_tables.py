"""Tables of data in TOML files beside the modules that use them."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import TypeVar

from msgspec import convert

from acp_agent.platform.first_use import first_use

T = TypeVar("T")


def read_table(package: str, name: str, kind: type[T]) -> T:
    """Return the content of the file `name` of a package."""
    table = tomllib.loads((files(package) / name).read_text("utf-8"))
    with first_use:
        return convert(table, kind)
