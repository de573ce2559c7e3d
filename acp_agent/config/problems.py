"""Find every error in a configuration, with its location and how to fix it.

msgspec decides in one fast call whether a configuration is valid. Only if it is not, this module
walks types and values side by side: msgspec stops at the first error, and names neither the key of
a table, nor the allowed values, nor the word that was probably meant.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from acp_agent.config.toml_errors import find_lines
from acp_agent.config.types import BOOLEANS, VARIABLES, Config
from acp_agent.platform.decoding import convert, struct_fields

MAX_LISTED = 20  # errors of a file that are listed one by one
Key: TypeAlias = str | int
_SECRET_KEYS = frozenset({"key", "api_key", "apikey", "api-key", "token", "secret", "password"})
_KEY_VARIABLE_FIELD = "api_key_env"
_NOT_A_VARIABLE = (
    "expected the name of a variable, such as COMPANY_MODELS_KEY; if it is a key, remove it "
    "and run 'acp-agent login'"
)


def config_problems(
    path: Path, text: str, table: dict[str, Any], environ: Mapping[str, str]
) -> list[str]:
    """Return the errors in `table`, parsed from `text` of `path`, and in the variables."""
    problems = list(find_problems(table, Config))
    lines = []
    listed = problems[:MAX_LISTED]
    for problem, line in zip(listed, find_lines(text, [each.path for each in listed]), strict=True):
        location = str(path) if line is None else f"{path}:{line}"
        lines.append(f"{location}: {problem.key}: {problem.text}")
    if len(problems) > MAX_LISTED:
        lines.append(f"{path}: {len(problems) - MAX_LISTED} more errors")
    return lines + variable_problems(environ)


def variable_problems(environ: Mapping[str, str]) -> list[str]:
    """Return the errors in the environment variables."""
    lines = []
    for name, keys in VARIABLES.items():
        setting = environ.get(name)
        if not setting:
            continue
        value: object = BOOLEANS.get(setting, setting)
        for key in reversed(keys):
            value = {key: value}
        lines += [
            f"the variable {name}: {problem.text}" for problem in find_problems(value, Config)
        ]
    return lines


class Problem(Struct, frozen=True):
    """An error: the path of its key, and what is wrong and how to fix it, in one line."""

    path: tuple[Key, ...]
    text: str

    @property
    def key(self) -> str:
        """Return the key as written in TOML, with list positions in brackets."""
        text = ""
        for part in self.path:
            if isinstance(part, int):
                text += f"[{part}]"
            else:
                text += f"{'.' if text else ''}{_quoted_key(part)}"
        return text


def find_problems(value: object, kind: Any) -> Iterator[Problem]:
    """Yield every reason why `value` is not a valid `kind`.

    Args:
        value: the output of a TOML parser.
        kind: an annotation made of Structs, dicts with text keys, lists, unions with None,
            Literals, `Annotated` and plain types. Annotations have no common static type.
    """
    yield from _walk(value, kind, (), None)


def _walk(value: object, kind: Any, path: tuple[Key, ...], meta: Meta | None) -> Iterator[Problem]:
    origin = get_origin(kind)
    if origin is Annotated:
        inner, *extras = get_args(kind)
        meta = next((extra for extra in extras if isinstance(extra, Meta)), meta)
        yield from _walk(value, inner, path, meta)
    elif origin in {Union, types.UnionType}:
        yield from _walk(value, _choose_arm(value, get_args(kind)), path, None)
    elif origin is dict:
        if isinstance(value, dict):
            key_kind, item_kind = get_args(kind)
            for key, item in value.items():
                yield from _walk(key, key_kind, (*path, key), None)
                yield from _walk(item, item_kind, (*path, key), None)
        else:
            yield Problem(path, f"expected a table, found {_describe_value(value)}")
    elif origin is list:
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from _walk(item, get_args(kind)[0], (*path, index), None)
        else:
            yield Problem(path, f"expected a list in brackets, found {_describe_value(value)}")
    elif isinstance(kind, type) and issubclass(kind, Struct):
        yield from _walk_table(value, kind, path)
    else:
        yield from _check_leaf(value, kind, path, meta)


def _choose_arm(value: object, arms: tuple[Any, ...]) -> Any:
    """Return the arm of a union for a value: its table type for a table, else the first arm.

    Besides `X | None`, the only unions are of text and a table, and TOML has no null.
    """
    arms = tuple(arm for arm in arms if arm is not type(None))
    tables = [arm for arm in arms if isinstance(arm, type) and issubclass(arm, Struct)]
    return tables[0] if tables and isinstance(value, dict) else arms[0]


def _walk_table(value: object, kind: type[Struct], path: tuple[Key, ...]) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield Problem(path, f"expected a table, found {_describe_value(value)}")
        return
    fields = {field.encode_name: field for field in struct_fields(kind)}
    for key, item in value.items():
        if key in fields:
            yield from _walk(item, fields[key].type, (*path, key), None)
        else:
            yield Problem((*path, key), _unknown_key_text(key, list(fields)))
    for name, field in fields.items():
        if field.required and name not in value:
            yield Problem((*path, name), "this key is missing; add it")


def _check_leaf(
    value: object, kind: Any, path: tuple[Key, ...], meta: Meta | None
) -> Iterator[Problem]:
    annotation = kind if meta is None else Annotated[kind, meta]
    try:
        convert(value, annotation)
    except msgspec.ValidationError:
        # The value may be the key itself, so the message does not repeat it.
        names_variable = isinstance(value, str) and path[-1:] == (_KEY_VARIABLE_FIELD,)
        yield Problem(path, _NOT_A_VARIABLE if names_variable else _leaf_text(value, kind, meta))


def _leaf_text(value: object, kind: Any, meta: Meta | None) -> str:
    if get_origin(kind) is Literal:
        allowed = [str(choice) for choice in get_args(kind)]
        choices = ", ".join(f'"{choice}"' for choice in allowed)
        matches = get_close_matches(str(value), allowed, n=1)
        hint = f'; did you mean "{matches[0]}"?' if matches else ""
        return f"{_describe_value(value)} is not allowed; use one of {choices}{hint}"
    expected = {str: "text in quotes", bool: "true or false", int: "a whole number"}.get(
        kind, "a number"
    )
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if meta is None or not (isinstance(value, str) if kind is str else is_number):
        return f"expected {expected}, found {_describe_value(value)}"
    if kind is str:
        # The types have few patterns; their examples show the expected form.
        examples = " or ".join(f'"{example}"' for example in meta.examples or ())
        return f"{_describe_value(value)} has the wrong form; write it like {examples}"
    return f"expected {expected}{_bounds(meta)}, found {value}"


def _bounds(meta: Meta) -> str:
    low = f"at least {meta.ge:,}" if meta.ge is not None else None
    low = f"above {meta.gt:,}" if meta.gt is not None else low
    high = f"at most {meta.le:,}" if meta.le is not None else None
    bounds = [bound for bound in (low, high) if bound]
    return f" that is {' and '.join(bounds)}" if bounds else ""


def _unknown_key_text(key: str, allowed: list[str]) -> str:
    if key in _SECRET_KEYS:
        return "keys do not belong in this file; remove it and run 'acp-agent login'"
    suggestions = " or ".join(f'"{name}"' for name in get_close_matches(key, allowed, n=2))
    if suggestions:
        return f"unknown key; did you mean {suggestions}?"
    return f"unknown key; known here: {', '.join(sorted(allowed))}"


def _describe_value(value: object) -> str:
    """Return a short description of the value that was found."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        shortened = value if len(value) <= 40 else f"{value[:37]}..."
        return f'"{" ".join(shortened.split())}"'
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Mapping):
        return "a table"
    return "a list" if isinstance(value, list) else f"the date or time {value}"


def _quoted_key(key: str) -> str:
    bare = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
    return key if bare else f'"{" ".join(key.split())}"'
