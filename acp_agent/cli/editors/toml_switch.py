"""Set and remove a boolean key in a TOML file."""

from __future__ import annotations

import tomllib

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table

from acp_agent.errors import InvalidInputError


def add_switch(data: bytes, table: str, switch: str) -> bytes:
    """Return the file with `switch = true` in `[table]` and no other change.

    Raises:
        InvalidInputError: the file cannot be read or changed safely.
    """
    expected = _content(data)
    inner = expected.setdefault(table, {})
    if not isinstance(inner, dict):
        raise InvalidInputError(f"{table} is not a table")
    if inner.get(switch) is True:
        return data
    inner[switch] = True
    document = tomlkit.parse(data.decode())
    if table not in document:
        document[table] = tomlkit.table()
    _table(document, table)[switch] = True
    return _check_result(tomlkit.dumps(document), expected)


def remove_switch(data: bytes, table: str, switch: str) -> bytes:
    """Return the file without the switch, and without its table if that is empty.

    Raises:
        InvalidInputError: the file cannot be read or changed safely.
    """
    expected = _content(data)
    inner = expected.get(table)
    if not isinstance(inner, dict) or switch not in inner:
        return data
    del inner[switch]
    document = tomlkit.parse(data.decode())
    _table(document, table).remove(switch)
    if not inner:
        del expected[table]
        document.remove(table)
    return _check_result(tomlkit.dumps(document), expected)


def lines_to_add(table: str, switch: str) -> str:
    """Return the lines to add by hand."""
    return f"[{table}]\n{switch} = true"


def _content(data: bytes) -> dict[str, object]:
    try:
        content: dict[str, object] = tomllib.loads(data.decode())
        tomlkit.parse(data.decode())
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"it is not UTF-8 (byte {error.start + 1})") from None
    except RecursionError:
        raise InvalidInputError("it is nested too deeply") from None
    except (ValueError, TOMLKitError) as error:  # also for an integer with too many digits
        raise InvalidInputError(f"it cannot be read as TOML ({error})") from None
    return content


def _table(document: tomlkit.TOMLDocument, name: str) -> Table:
    table = document[name]
    if not isinstance(table, Table):  # written as `name = { … }` or with dotted keys
        raise InvalidInputError(f"[{name}] is written in a way that cannot be changed safely")
    return table


def _check_result(text: str, expected: object) -> bytes:
    if tomllib.loads(text) != expected:
        raise InvalidInputError("it is written in a way that cannot be changed safely")
    return text.encode()
