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
_VARIABLE = re.compile(r"\$\{(CLAUDE_[A-Z_]+)\}")
_MANIFESTS = (".claude-plugin/plugin.json", "plugin.json")
_NAMED_INPUT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_CHECKS: Mapping[str, tuple[Callable[[str], object], str]] = {
    "integer": (re.compile(r"[-+]?\d+").fullmatch, "a whole number"),
    "number": (re.compile(r"[-+]?(\d+\.?\d*|\.\d+)").fullmatch, "a number"),
    "boolean": (re.compile(r"true|false", re.IGNORECASE).fullmatch, "true or false"),
}
_TYPES = {"int": "integer", "float": "number", "bool": "boolean"}


class SkillInputs(Struct, frozen=True, kw_only=True):
    """The inputs given to a skill.

    Attributes:
        values: the values by input name, including defaults.
        remainder: the remaining words of the request.
    """

    values: Mapping[str, str]
    missing: tuple[Argument, ...]
    remainder: str


def read_inputs(inputs: Sequence[Argument], request: str, cwd: Path) -> SkillInputs:
    """Return the inputs in a request to a skill. Blocks: checks each named file on disk.

    Args:
        request: the text after its command: words in the order of the inputs, or `name=value`.
        cwd: the folder that relative paths start from.

    Raises:
        InvalidInputError: a value does not have its input's type.
    """
    names = {input_.name for input_ in inputs}
    values: dict[str, str] = {}
    words: list[str] = []
    for word in _words(request):
        match = _NAMED_INPUT.fullmatch(word)
        if match and match[1] in names:
            values[match[1]] = match[2]
        else:
            words.append(word)
    for input_ in inputs:
        if words and input_.name not in values:
            values[input_.name] = words.pop(0)
    for input_ in inputs:
        if input_.name in values:
            check_input(input_, values[input_.name], cwd)
        elif input_.default is not None:
            values[input_.name] = _as_text(input_.default)
    missing = tuple(input_ for input_ in inputs if input_.required and not values.get(input_.name))
    return SkillInputs(values=values, missing=missing, remainder=" ".join(words))


def _words(request: str) -> list[str]:
    try:
        return shlex.split(request)
    except ValueError:  # an unmatched quotation mark, as in "don't"
        return request.split()


def _as_text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_file(value: str, cwd: Path) -> bool:
    return "\0" not in value and os.path.lexists(cwd / Path(value.removeprefix("@")).expanduser())


def check_input(argument: Argument, value: str, cwd: Path) -> None:
    """Check that a value has its input's type. Blocks: may check a file on disk.

    Raises:
        InvalidInputError: it does not; the message says what is expected.
    """
    kind = argument.type.strip().lower()
    if kind in FILES:
        if not _is_file(value, cwd):
            raise InvalidInputError(f"{argument.name}: there is no {kind} {value}")
        return
    is_valid, expected = _CHECKS.get(_TYPES.get(kind, kind), (bool, "text"))
    if not is_valid(value):
        raise InvalidInputError(f"{argument.name}: expected {expected}, found {value!r}")


def folder_variables(path: Path) -> dict[str, str]:
    """Return the variables that name the folders of a skill or an agent and of its plugin."""
    folder = path.parent
    plugin = next(
        (
            parent
            for parent in (folder, *folder.parents[:3])
            if any(os.path.isfile(parent / name) for name in _MANIFESTS)
        ),
        folder,
    )
    return {"CLAUDE_SKILL_DIR": str(folder), "CLAUDE_PLUGIN_ROOT": str(plugin)}


def fill_inputs(
    text: str, request: str, values: Mapping[str, str], variables: Mapping[str, str]
) -> tuple[str, bool]:
    """Return a skill's text with placeholders filled in, and whether it has any for the request.

    Args:
        variables: the values of placeholders such as `${CLAUDE_SKILL_DIR}`.
    """
    words, has_placeholder = _words(request), False

    def replace(match: re.Match[str]) -> str:
        nonlocal has_placeholder
        placeholder, number, name = match[0], match[1] or match[2], match[3]
        if name is not None:
            if name not in values:
                return placeholder
            value = values[name]
        elif number is None:
            value = request
        elif match[2] and not request:  # `$1` may belong to a shell script
            return placeholder
        else:
            value = words[int(number)] if int(number) < len(words) else ""
        has_placeholder = True
        return value

    filled = _PLACEHOLDER.sub(replace, text)
    filled = _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), filled)
    return filled, has_placeholder
