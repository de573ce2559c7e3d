"""Completion candidates for a shell.

The first line names their kind: `words`, followed by one candidate per line, each with a
description after a tab; or `files` or `folders`, which the shell completes itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp_agent.cli.completion.grammar import Place, grammar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from acp_agent.cli.completion.grammar import Value
    from acp_agent.cli.completion.values import Candidate


_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@+,%")
_BREAKS = "=:"  # characters in our words at which bash splits words
_TITLE = 60


def answer(arguments: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the candidates for a shell, as text.

    Args:
        arguments: the shell, and the words of the line up to the one to complete. `bash-menu`
            is bash in a mode that inserts one candidate after the other.
        environ: the user's environment.
    """
    if len(arguments) < 3:
        return ""
    shell, *words = arguments
    if shell.startswith("bash"):
        words = [_unquoted(word) for word in _joined(words)]
    place = Place(grammar(), words)
    kind = place.value.get("kind", "") if place.value is not None else ""
    typed = words[-1].removeprefix(place.prefix)
    wants_option = typed.startswith("-") and not place.needed
    if kind in {"file", "folder"} and not wants_option:
        return f"{kind}s\n"
    said = _said(environ) if shell in {"zsh", "fish"} else str
    found = [
        (value, about)
        for value, about in _candidates(place, typed, environ, said)
        if value.startswith(typed)
    ]
    if shell == "fish":
        found = [(place.prefix + value, about) for value, about in found]
    elif shell.startswith("bash"):
        sessions = kind in {"session", "session id"} and not typed.startswith("-")
        titles = sessions and shell == "bash" and len(found) > 1
        found = [_for_bash(one, typed, titles=titles) for one in found]
    return "".join(["words\n", *(_line(value, about) for value, about in found)])


def _candidates(
    place: Place, typed: str, environ: Mapping[str, str], said: Callable[[str], str]
) -> Iterator[Candidate]:
    """Yield all candidates for a place, whatever is already typed there."""
    if place.value is not None and (place.needed or not typed.startswith("-")):
        yield from _values(place.value, environ, said)
    if place.needed:
        return
    for name, action in place.command["actions"].items():
        yield name, said(action["about"])
    nothing_else = place.value is None and not place.command["actions"]
    if typed.startswith("-") or nothing_else:
        for option in place.options:
            for name in option["names"]:
                if name.startswith("--") or typed == "-":
                    yield name, said(option.get("about", ""))


def _values(
    value: Value, environ: Mapping[str, str], said: Callable[[str], str]
) -> Iterator[Candidate]:
    if "choices" in value:
        for choice in value["choices"]:
            yield choice, said(value.get("about", ""))
        return
    if "kind" not in value:
        return
    from sqlite3 import Error  # noqa: PLC0415 - options do without

    from acp_agent.cli.completion.values import UserValues  # noqa: PLC0415 - likewise

    try:
        yield from UserValues(environ).of(value["kind"])
    except Error:
        return  # the commands report the error


def _said(environ: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that translates to the user's language."""
    from acp_agent.cli.completion.values import UserValues  # noqa: PLC0415 - bash does without
    from acp_agent.config.localization import (  # noqa: PLC0415 - only where needed
        choose_language,
        command_line_translator,
    )

    return command_line_translator(choose_language(UserValues(environ).language(), environ))


def _joined(words: Sequence[str]) -> list[str]:
    """Return our words from those of bash, which splits words before and after `=` and `:`."""
    joined: list[str] = []
    goes_on = False
    for word in words:
        breaks = bool(word) and not word.strip(_BREAKS)
        if joined and (goes_on or breaks):
            joined[-1] += word
        else:
            joined.append(word)
        goes_on = breaks
    return joined


def _unquoted(word: str) -> str:
    """Return a word of bash without its quotes; the closing one may be missing."""
    if word[:1] in {"'", '"'}:
        return word[1:].removesuffix(word[0])
    return word.replace("\\", "")


def _for_bash(candidate: Candidate, typed: str, *, titles: bool) -> Candidate:
    """Return what bash inserts for its last word, which may be only the end of ours.

    Bash shows no descriptions. If several sessions match, their titles are part of the listed
    candidates, because bash then inserts only the common prefix.
    """
    value, about = candidate
    settled = max(typed.rfind(mark) for mark in _BREAKS) + 1
    quoted = "".join(mark if mark in _PLAIN else f"\\{mark}" for mark in value[settled:])
    return (f"{quoted}  ({_one_line(about)})" if titles else quoted), ""


def _line(value: str, about: str) -> str:
    shown = _one_line(about)
    return f"{_one_line(value)}\t{shown}\n" if shown else f"{value}\n"


def _one_line(text: str) -> str:
    """Return a text without line breaks and control characters, shortened."""
    shown = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return shown if len(shown) <= _TITLE else f"{shown[: _TITLE - 1]}…"
