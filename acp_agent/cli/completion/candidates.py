"""Completion candidates for a shell.

The first line names their kind: `words`, followed by one candidate per line, each with a
description after a tab; or `files` or `folders`, which the shell completes itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp_agent.cli.completion.grammar import CompletionPoint, grammar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from acp_agent.cli.completion.grammar import Value
    from acp_agent.cli.completion.values import Candidate


_UNQUOTED_CHARACTERS = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@+,%"
)
_WORD_BREAKS = "=:"  # characters in our words at which bash splits words
_MAX_TITLE = 60


def answer(arguments: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the candidates for a shell, as text.

    Args:
        arguments: the shell, and the words of the line up to the one to complete. `bash-menu`
            is bash in a mode that inserts one candidate after the other.
    """
    if len(arguments) < 3:
        return ""
    shell, *words = arguments
    if shell.startswith("bash"):
        words = [_unquote(word) for word in _join_words(words)]
    point = CompletionPoint(grammar(), words)
    kind = point.value.get("kind", "") if point.value is not None else ""
    typed = words[-1].removeprefix(point.prefix)
    wants_option = typed.startswith("-") and not point.needed
    if kind in {"file", "folder"} and not wants_option:
        return f"{kind}s\n"
    translate = _translator(environ) if shell in {"zsh", "fish"} else str
    candidates = [
        (value, description)
        for value, description in _candidates(point, typed, environ, translate)
        if value.startswith(typed)
    ]
    if shell == "fish":
        candidates = [(point.prefix + value, description) for value, description in candidates]
    elif shell.startswith("bash"):
        sessions = kind in {"session", "session id"} and not typed.startswith("-")
        titles = sessions and shell == "bash" and len(candidates) > 1
        candidates = [_bash_candidate(candidate, typed, titles=titles) for candidate in candidates]
    return "".join(["words\n", *(_line(value, description) for value, description in candidates)])


def _candidates(
    point: CompletionPoint, typed: str, environ: Mapping[str, str], translate: Callable[[str], str]
) -> Iterator[Candidate]:
    """Yield all candidates for a place, whatever is already typed there."""
    if point.value is not None and (point.needed or not typed.startswith("-")):
        yield from _values(point.value, environ, translate)
    if point.needed:
        return
    for name, action in point.command["actions"].items():
        yield name, translate(action["about"])
    options_only = point.value is None and not point.command["actions"]
    if typed.startswith("-") or options_only:
        for option in point.options:
            for name in option["names"]:
                if name.startswith("--") or typed == "-":
                    yield name, translate(option.get("about", ""))


def _values(
    value: Value, environ: Mapping[str, str], translate: Callable[[str], str]
) -> Iterator[Candidate]:
    if "choices" in value:
        for choice in value["choices"]:
            yield choice, translate(value.get("about", ""))
        return
    if "kind" not in value:
        return
    from sqlite3 import Error  # noqa: PLC0415 - options do without

    from acp_agent.cli.completion.values import UserValues  # noqa: PLC0415 - likewise

    try:
        yield from UserValues(environ).candidates(value["kind"])
    except Error:
        return  # the commands report the error


def _translator(environ: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that translates to the user's language."""
    from acp_agent.cli.completion.values import UserValues  # noqa: PLC0415 - bash does without
    from acp_agent.config.localization import (  # noqa: PLC0415 - only where needed
        choose_language,
        command_line_translator,
    )

    return command_line_translator(choose_language(UserValues(environ).language(), environ))


def _join_words(words: Sequence[str]) -> list[str]:
    """Return our words from those of bash, which splits words before and after `=` and `:`."""
    joined: list[str] = []
    continues = False
    for word in words:
        breaks = bool(word) and not word.strip(_WORD_BREAKS)
        if joined and (continues or breaks):
            joined[-1] += word
        else:
            joined.append(word)
        continues = breaks
    return joined


def _unquote(word: str) -> str:
    """Return a word of bash without its quotes; the closing one may be missing."""
    if word[:1] in {"'", '"'}:
        return word[1:].removesuffix(word[0])
    return word.replace("\\", "")


def _bash_candidate(candidate: Candidate, typed: str, *, titles: bool) -> Candidate:
    """Return what bash inserts for its last word, which may be only the end of ours.

    Bash shows no descriptions. If several sessions match, their titles are part of the listed
    candidates, because bash then inserts only the common prefix.
    """
    value, description = candidate
    offset = max(typed.rfind(mark) for mark in _WORD_BREAKS) + 1
    quoted = "".join(
        mark if mark in _UNQUOTED_CHARACTERS else f"\\{mark}" for mark in value[offset:]
    )
    return (f"{quoted}  ({_one_line(description)})" if titles else quoted), ""


def _line(value: str, text: str) -> str:
    description = _one_line(text)
    return f"{_one_line(value)}\t{description}\n" if description else f"{value}\n"


def _one_line(text: str) -> str:
    """Return a text without line breaks and control characters, shortened."""
    line = " ".join(
        "".join(character if character.isprintable() else " " for character in text).split()
    )
    return line if len(line) <= _MAX_TITLE else f"{line[: _MAX_TITLE - 1]}…"
