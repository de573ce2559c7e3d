"""Parse the text after a skill's command into named inputs, and fill placeholders with them.

`$ARGUMENTS`, `$ARGUMENTS[N]`, `$N` (from 0) and `$NAME` have the same meaning as in Claude
(2.1.80); named inputs with types come from zhi.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.errors import InvalidInputError
from acp_agent.extensions.definitions.types import Argument

FILES = frozenset({"file", "path", "folder", "directory"})
_PLACEHOLDER = re.compile(
    r"\$(?:ARGUMENTS(?:\[(\d+)\])?(?!\w)|(\d+)(?!\w)|([A-Za-z_]\w*)(?![\w\[]))"
)
_NAMED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


class Given(Struct, frozen=True, kw_only=True):
    """The inputs given to a skill.

    Attributes:
        values: the values by input name, including defaults.
        missing: required inputs that were not given.
        rest: the remaining words of the request.
    """

    values: Mapping[str, str]
    missing: tuple[Argument, ...]
    rest: str


def read_inputs(inputs: Sequence[Argument], request: str, cwd: Path) -> Given:
    """Return the inputs in a request to a skill. Blocks: checks each named file on disk.

    Args:
        inputs: the skill's inputs.
        request: the text after its command: words in the order of the inputs, or `name=value`.
        cwd: the folder that relative paths start from.

    Raises:
        InvalidInputError: a value does not have its input's type.
    """
    names = {one.name for one in inputs}
    values: dict[str, str] = {}
    words: list[str] = []
    for word in _words(request):
        named = _NAMED.fullmatch(word)
        if named and named[1] in names:
            values[named[1]] = named[2]
        else:
            words.append(word)
    for one in inputs:
        if words and one.name not in values:
            values[one.name] = words.pop(0)
    for one in inputs:
        if one.name in values:
            check_input(one, values[one.name], cwd)
        elif one.default is not None:
            values[one.name] = _as_text(one.default)
    missing = tuple(one for one in inputs if one.required and not values.get(one.name))
    return Given(values=values, missing=missing, rest=" ".join(words))


def _words(request: str) -> list[str]:
    try:
        return shlex.split(request)
    except ValueError:  # an unmatched quotation mark, as in "don't"
        return request.split()


def _as_text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_file(value: str, cwd: Path) -> bool:
    return "\0" not in value and os.path.lexists(cwd / Path(value.removeprefix("@")).expanduser())


_CHECKS: Mapping[str, tuple[Callable[[str], object], str]] = {
    "integer": (re.compile(r"[-+]?\d+").fullmatch, "a whole number"),
    "number": (re.compile(r"[-+]?(\d+\.?\d*|\.\d+)").fullmatch, "a number"),
    "boolean": (re.compile(r"true|false", re.IGNORECASE).fullmatch, "true or false"),
}
_TYPES = {"int": "integer", "float": "number", "bool": "boolean"}


def check_input(one: Argument, value: str, cwd: Path) -> None:
    """Check that a value has its input's type. Blocks: may check a file on disk.

    Raises:
        InvalidInputError: it does not; the message says what is expected.
    """
    kind = one.type.strip().lower()
    if kind in FILES:
        if not _is_file(value, cwd):
            raise InvalidInputError(f"{one.name}: there is no {kind} {value}")
        return
    is_valid, wanted = _CHECKS.get(_TYPES.get(kind, kind), (bool, "text"))
    if not is_valid(value):
        raise InvalidInputError(f"{one.name}: expected {wanted}, found {value!r}")


def fill_in(text: str, request: str, given: Mapping[str, str], folder: Path) -> tuple[str, bool]:
    """Return a skill's text with placeholders filled in, and whether it has any.

    Args:
        text: the text of the skill.
        request: the text after its command.
        given: its named inputs.
        folder: the skill's folder.
    """
    words, found = _words(request), False

    def replaced(match: re.Match[str]) -> str:
        nonlocal found
        whole, number, name = match[0], match[1] or match[2], match[3]
        if name is not None:
            if name not in given:
                return whole
            value = given[name]
        elif number is None:
            value = request
        elif match[2] and not request:  # `$1` may belong to a shell script
            return whole
        else:
            value = words[int(number)] if int(number) < len(words) else ""
        found = True
        return value

    filled = _PLACEHOLDER.sub(replaced, text)
    return filled.replace("${CLAUDE_SKILL_DIR}", str(folder)), found
