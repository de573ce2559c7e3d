"""Load the configuration from its file and the environment variables that override it."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_type_hints

import msgspec

from acp_agent.config import types
from acp_agent.config.mcp_types import McpServerConfig
from acp_agent.config.types import BOOLEANS, VARIABLES, Config
from acp_agent.errors import ConfigError
from acp_agent.platform import descriptor_limit
from acp_agent.platform.decoding import convert, decode_json
from acp_agent.platform.posix import write_private

SIZE_LIMIT = 256 * 1024  # bytes; a configuration is a page or two


def load_config(path: Path, environ: Mapping[str, str], parsed: Path | None = None) -> Config:
    """Load the configuration from `path`; environment variables override the file.

    Without a file the defaults apply. An empty variable counts as not set.

    Args:
        parsed: a file that keeps the parsed text, so that the next start needs no TOML parser: to
            import it takes longer than everything else here.

    Raises:
        ConfigError: the file is unreadable, not TOML or invalid; the message names the file, the
            line, the key, what is wrong with it and what to write instead.
    """
    text = read_text(path)
    table = _parse_once(path, text, parsed) if text else {}
    try:
        return _convert(table, environ)
    except msgspec.ValidationError:
        rename_keys(table)  # it may be a configuration of an earlier version
    try:
        return _convert(_clear_broken_servers(table), environ)
    except msgspec.ValidationError as error:
        raise ConfigError(_describe(path, text, table, environ) or f"{path}: {error}") from None


@contextmanager
def locate_errors(path: Path) -> Iterator[None]:
    """Add the file and the line to a `ConfigError` about a value of `path`.

    Raises:
        ConfigError: the error raised inside, with its location if it has a key.
    """
    try:
        yield
    except ConfigError as error:
        if not error.key:
            raise
        from acp_agent.config.toml_errors import find_lines  # noqa: PLC0415 - only for an error

        (line,) = find_lines(read_text(path), [error.key])
        location = str(path) if line is None else f"{path}:{line}"
        raise ConfigError(f"{location}: {error}") from None


def list_problems(path: Path, environ: Mapping[str, str]) -> list[str]:
    """Return all errors in the file and the variables; empty if `load_config` would succeed."""
    from acp_agent.config.problems import (  # noqa: PLC0415 - not at start
        config_problems,
        variable_problems,
    )

    try:
        text = read_text(path)
        table = parse(path, text) if text else {}
    except ConfigError as error:
        return [str(error), *variable_problems(environ)]
    rename_keys(table)
    return config_problems(path, text, table, environ)


def _convert(table: Mapping[str, Any], environ: Mapping[str, str]) -> Config:
    config = _convert_table(table)
    if any(environ.get(name) for name in VARIABLES):
        return _convert_table(_apply_variables(table, environ))
    return config


def _convert_table(table: Mapping[str, Any]) -> Config:
    """Convert each key by itself: msgspec takes 10 ms to prepare the types of all keys."""
    try:
        return Config(**{key: convert(value, _value_type(key)) for key, value in table.items()})
    except (KeyError, msgspec.ValidationError):
        return convert(table, Config)  # its error has the whole path


@cache
def _value_type(key: str) -> Any:
    """Return the type of a key of the configuration.

    Raises:
        KeyError: there is no such key.
    """
    annotated = SimpleNamespace(__annotations__={key: Config.__annotations__[key]})
    return get_type_hints(annotated, vars(types), include_extras=True)[key]


def read_text(path: Path) -> str:
    """Return the file's text without a byte order mark; "" if there is no file.

    Raises:
        ConfigError: the path is not a regular file, or the file is unreadable, too large or not
            UTF-8.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{path} is not a file; move it away or put a TOML file there")
        if status.st_size > SIZE_LIMIT:
            raise ConfigError(f"{path} is larger than {SIZE_LIMIT // 1024} KiB; shorten it")
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        reason = descriptor_limit.describe_os_error(error)
        raise ConfigError(f"cannot read {path} ({reason}); check who may read it") from None
    return decode(path, raw)


def decode(path: Path, raw: bytes) -> str:
    """Return the text of a file's content, without a byte order mark.

    Raises:
        ConfigError: the content is too large, or not UTF-8.
    """
    if len(raw) > SIZE_LIMIT:
        raise ConfigError(f"{path} is larger than {SIZE_LIMIT // 1024} KiB; shorten it")
    line = 1
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if b"\0" not in raw[:2]:  # UTF-16 without a byte order mark can be valid UTF-8
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
    raise ConfigError(f"{path}:{line}: not UTF-8 text; save the file as UTF-8")


class _Parsed(msgspec.Struct):
    text: str
    table: dict[str, Any]


def _parse_once(path: Path, text: str, parsed: Path | None) -> dict[str, Any]:
    """Return what `parse` returns, from the file `parsed` if it has this text."""
    if parsed is None:
        return parse(path, text)
    with suppress(OSError, msgspec.DecodeError):
        known = decode_json(parsed.read_bytes(), _Parsed)
        if known.text == text:
            return known.table
    table = parse(path, text)
    with suppress(OSError, ValueError, OverflowError):  # it is parsed again
        raw = msgspec.json.encode(_Parsed(text, table))
        if decode_json(raw, _Parsed).table == table:  # JSON has no dates and no infinity
            write_private(parsed, raw)
    return table


def parse(path: Path, text: str) -> dict[str, Any]:
    """Parse the TOML document `text` of the file `path`.

    Raises:
        ConfigError: the text is not TOML; the message has the line.
    """
    import tomllib  # noqa: PLC0415 - most people have no configuration file

    try:
        return _parse_amounts(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        from acp_agent.config.toml_errors import explain_syntax_error  # noqa: PLC0415 - only for an error

        line, reason = explain_syntax_error(text, error)
        location = str(path) if line is None else f"{path}:{line}"
        raise ConfigError(f"{location}: not TOML: {reason}; fix the line") from None


def _clear_broken_servers(table: dict[str, Any]) -> dict[str, Any]:
    """Return the document with an empty table for each invalid MCP server.

    A session reports the error and opens without the server.
    """
    servers = table.get("mcp_servers")
    if not isinstance(servers, dict):
        return table

    def usable_or_empty(server: object) -> object:
        try:
            convert(server, McpServerConfig)
        except msgspec.ValidationError:
            return {}
        return server

    return table | {
        "mcp_servers": {name: usable_or_empty(server) for name, server in servers.items()}
    }


def rename_keys(table: dict[str, Any]) -> None:
    """Replace keys and values of earlier versions by their current names, in place."""
    from acp_agent.platform.data_tables import read_table  # noqa: PLC0415 - few are that old

    renamed = read_table(__package__, "renamed_keys.toml", dict[str, Any])
    for table_path, names in renamed["keys"].items():
        name, _, wildcard = table_path.partition(".")
        target = table.get(name) if name else table
        tables = target.values() if wildcard and isinstance(target, dict) else [target]
        for candidate in tables:
            if isinstance(candidate, dict):
                for old in candidate.keys() & names.keys():
                    value = candidate.pop(old)
                    candidate.setdefault(names[old], value)
    for key, values in renamed["values"].items():
        if isinstance(table.get(key), str):
            table[key] = values.get(table[key], table[key])


def _parse_amounts(table: dict[str, Any]) -> dict[str, Any]:
    """Return the document with budgets written as text, such as "$2", converted to numbers.

    A text that is not an amount in the budget's unit is left unchanged and reported later.
    """
    budget = table.get("budget")
    if isinstance(budget, dict) and any(isinstance(value, str) for value in budget.values()):
        from acp_agent.config.amounts import parse_amount  # noqa: PLC0415 - few write text

        for key, value in budget.items():
            unit, number = (isinstance(value, str) and parse_amount(value)) or ("", 0)
            if unit and key.endswith(f"_{unit}"):
                budget[key] = int(number) if unit == "tokens" else float(number)
    return table


def _apply_variables(table: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return a copy of `table` with the environment variables applied."""
    changed = dict(table)
    for name, keys in VARIABLES.items():
        value = environ.get(name)
        if not value:
            continue
        target = changed
        for key in keys[:-1]:
            target[key] = dict(target.get(key, {}))
            target = target[key]
        target[keys[-1]] = BOOLEANS.get(value, value)
    return changed


def _describe(path: Path, text: str, table: dict[str, Any], environ: Mapping[str, str]) -> str:
    from acp_agent.config.problems import config_problems  # noqa: PLC0415 - only for an error

    problems = config_problems(path, text, table, environ)
    more = len(problems) - 1
    suffix = f" ({more} more: see 'acp-agent doctor')" if more > 0 else ""
    return problems[0] + suffix if problems else ""
