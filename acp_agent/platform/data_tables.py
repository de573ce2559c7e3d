"""Tables of data in TOML files beside the modules that use them."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import TypeVar

from acp_agent.platform.decoding import convert

T = TypeVar("T")


def read_table(package: str, name: str, kind: type[T]) -> T:
    """Return the content of the file `name` of a package."""
    table = tomllib.loads((files(package) / name).read_text("utf-8"))
    return convert(table, kind)
