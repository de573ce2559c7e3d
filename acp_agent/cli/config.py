"""`acp-agent config path|show|schema`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec import Struct

from acp_agent.cli.localization import translate
from acp_agent.cli.output import say, say_json
from acp_agent.cli.parser import Parser
from acp_agent.cli.user_config import load_user_config
from acp_agent.config.types import VARIABLES

HIDDEN = "[hidden]"


def run(argv: list[str]) -> int:
    """Show the configuration or its path; return the exit status."""
    parser = Parser(prog="acp-agent config", description="Show the configuration or its path.")
    actions = parser.add_subparsers(dest="action")
    actions.add_parser("path", help="print the path of the configuration file")
    show = actions.add_parser("show", help="show every setting, including defaults")
    show.add_argument("--json", action="store_true", help="print JSON instead of TOML")
    actions.add_parser("schema", help="print the JSON Schema of the configuration file")
    options = parser.parse_args(argv)
    if options.action == "path":
        return _path()
    if options.action == "schema":
        return _schema()
    return _show(as_json=options.json)


def _path() -> int:
    import os  # noqa: PLC0415 - the one action that needs no valid configuration

    from acp_agent.config.paths import find_paths  # noqa: PLC0415 - likewise

    say(str(find_paths(os.environ).config_file))
    return 0


def _schema() -> int:
    from acp_agent.config.schema import config_schema  # noqa: PLC0415 - only for this action

    say(config_schema().rstrip())
    return 0


def _show(*, as_json: bool) -> int:
    setup = load_user_config()
    settings = {
        name: _without_secrets(name, value) for name, value in _all_fields(setup.config).items()
    }
    if as_json:
        say_json(settings)
        return 0
    exists = setup.paths.config_file.is_file()
    sources = {keys: name for name, keys in VARIABLES.items() if setup.environ.get(name)}
    absent = (
        "" if exists else translate(" (does not exist; all settings without a source are defaults)")
    )
    say(f"# {setup.paths.config_file}{absent}")
    say(_toml(settings, sources).rstrip())
    return 0


def _all_fields(table: Struct) -> dict[str, Any]:
    """Return every field of `table`, including defaults, in the order of the type."""
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(table):
        value = getattr(table, field.name)
        if isinstance(value, Struct):
            value = _all_fields(value)
        elif isinstance(value, dict):
            value = {k: _all_fields(v) if isinstance(v, Struct) else v for k, v in value.items()}
        values[field.encode_name] = value
    return values


def _without_secrets(name: str, value: Any) -> Any:  # any JSON-like value, same shape out
    """Return `value` without secrets that users put into the file against advice."""
    if isinstance(value, dict):
        if name == "headers":
            return dict.fromkeys(value, HIDDEN)
        return {key: _without_secrets(key, item) for key, item in value.items()}
    if name == "base_url" and isinstance(value, str):
        url = urlsplit(value)
        host = url.netloc.rpartition("@")[2]
        query = HIDDEN if url.query else ""
        return urlunsplit(url._replace(netloc=host, query=query))
    return value


def _toml(settings: dict[str, Any], sources: Mapping[tuple[str, ...], str]) -> str:
    """Return the settings as TOML. Unset ones are comments, because TOML has no null.

    A setting from an environment variable is followed by the variable's name.
    """
    import tomlkit  # noqa: PLC0415 - only for this action
    from tomlkit.container import Container  # noqa: PLC0415 - likewise
    from tomlkit.items import Table  # noqa: PLC0415 - likewise

    def fill(table: Container | Table, values: dict[str, Any], parents: tuple[str, ...]) -> None:
        # Everything after a table's header belongs to the table, so plain values come first.
        for key, value in sorted(values.items(), key=lambda item: isinstance(item[1], dict)):
            if value is None:
                table.add(tomlkit.comment(translate("{key} is not set", key=key)))
            elif isinstance(value, dict):
                inner = tomlkit.table()
                fill(inner, value, (*parents, key))
                table.add(key, inner)
            else:
                item = tomlkit.item(value)
                if (*parents, key) in sources:
                    item.comment(translate("from {variable}", variable=sources[(*parents, key)]))
                table.add(key, item)

    document = tomlkit.document()
    fill(document, settings, ())
    return document.as_string()
