"""The editors that `acp-agent setup` knows, from catalog.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from msgspec import Struct

from acp_agent.errors import InvalidInputError
from acp_agent.platform.data_tables import read_table
from acp_agent.platform.decoding import convert

Form = Literal["json", "toml", "file", "print"]
_ROOT = Path(__file__).parents[3]  # of the source tree, if the program runs from it
_MARK = b"Written by `acp-agent setup "  # in the first line of each file that we write
_PLACEHOLDER = re.compile(r"@(\w+)@")


class Setting(Struct, frozen=True, forbid_unknown_fields=True):
    """A key in a settings file that lists agents, and the form of its entries."""

    key: str
    entry: dict[str, object]
    extension: str = ""


class Editor(Struct, frozen=True, forbid_unknown_fields=True):
    """An editor's entry in catalog.toml, which documents the fields."""

    title: str
    form: Form
    next: str
    places: dict[str, tuple[str, ...]] = {}
    step: str = "  "
    settings: tuple[Setting, ...] = ()
    extensions: dict[str, tuple[str, ...]] = {}
    template: str = ""
    plugin: str = ""
    table: str = ""
    switch: str = ""
    shell: bool = False


@cache
def editors() -> Mapping[str, Editor]:
    """Return all editors by their names on the command line, in the order of the file."""
    tables = read_table(__package__, "catalog.toml", dict[str, dict[str, object]])
    catalog: dict[str, Editor] = {}
    for name, table in tables.items():
        base = str(table.pop("like", ""))
        catalog[name] = convert({**tables[base], **table} if base else table, Editor)
    return catalog


def resolve_paths(paths: Sequence[str], environ: Mapping[str, str]) -> list[Path]:
    """Return paths of the catalog resolved for a user."""
    home = Path(environ.get("HOME") or Path.home())
    values = {
        "home": str(home),
        "config": _folder(environ.get("XDG_CONFIG_HOME"), home / ".config"),
        "data": _folder(environ.get("XDG_DATA_HOME"), home / ".local" / "share"),
        "nvim": environ.get("NVIM_APPNAME") or "nvim",
    }
    return [Path(path.format(**values)) for path in paths]


def fill_entry(entry: Mapping[str, object], command: Sequence[str]) -> dict[str, object]:
    """Return an entry with the command filled in."""
    values = {"{command}": command[0], "{args}": list(command[1:]), "{argv}": list(command)}
    return {
        name: values.get(value, value) if isinstance(value, str) else value
        for name, value in entry.items()
    }


def plugin(name: str) -> Path:
    """Return the path of one of our plugins: in the installed package, or in the source tree."""
    installed = Path(str(files(__package__))) / "plugins" / name
    return installed if installed.exists() else _ROOT / "editor-plugins" / name


def _folder(configured: str | None, default: Path) -> str:
    """Return a folder of the XDG Base Directory Specification, which ignores relative paths."""
    return configured if configured and configured.startswith("/") else str(default)


def fill_template(name: str, command: Sequence[str], plugin: Path | None) -> str:
    """Return a template of `templates/` with the values filled in.

    A template contains `@command@`, `@args@`, `@argv@`, `@list@` and `@plugin@`, which are
    replaced by literals of its language.
    """
    values = {
        "command": _quote(command[0]),
        "args": _table(command[1:]),
        "argv": _table(command),
        "list": f"({' '.join(_quote(word) for word in command)})",
        "plugin": _quote(str(plugin or "")),
    }
    text = (files(__package__) / "templates" / name).read_text("utf-8")
    return _PLACEHOLDER.sub(lambda match: values[match[1]], text)


def check_written_by_us(data: bytes | None) -> None:
    """Check that a file may be replaced or deleted.

    Raises:
        InvalidInputError: it was not written by this command.
    """
    if data is not None and _MARK not in data.partition(b"\n")[0]:
        raise InvalidInputError("it exists and was not written by this command")


def _table(words: Sequence[str]) -> str:
    """Return a Lua table."""
    return "{ " + ", ".join(_quote(word) for word in words) + " }" if words else "{}"


def _quote(word: str) -> str:
    """Return a string literal of Lua or Emacs Lisp; both support these escapes."""
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
