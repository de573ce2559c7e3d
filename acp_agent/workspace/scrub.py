"""Takes credentials out of text before it leaves a tool.

Two kinds are found: values that are known (the keys this program uses; see `known_secrets`), and
keys that can be told by their form, listed in `secret_formats.toml`. A key of an unknown form is
not found.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable
from importlib.resources import files as package_files

from msgspec import Struct

from acp_agent.workspace.known_secrets import MIN_SECRET, KnownSecrets

__all__ = ["MIN_SECRET", "REPLACEMENT", "scrub", "scrub_known", "unfinished"]

REPLACEMENT = "[secret]"
_WORD_AT_END = re.compile(r"[A-Za-z0-9_+/=.%\\-]+\Z")
_LONGEST_WORD = 512  # characters; a key that is told by its form is not longer
_LEAST_WORD = 20  # letters and digits; keys of a form are longer, and few words are
_LEAST_MARK = 3  # characters of a mark that tells of a key by itself
_LONGEST_BLOCK = 8_192  # characters of a private key


class _Format(Struct, frozen=True):
    marks: tuple[str, ...]
    pattern: re.Pattern[str]


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with every credential replaced by `[secret]`.

    Args:
        text: what is about to be shown, sent or stored.
        secrets: values that must not appear; those shorter than `MIN_SECRET` are ignored.
    """
    text = scrub_known(text, secrets)
    for known in _formats():
        if any(mark in text for mark in known.marks):
            text = known.pattern.sub(_replace, text)
    return text


def scrub_known(text: str, secrets: Iterable[str]) -> str:
    """`text` with the known values replaced, and nothing that only looks like a credential.

    Args:
        text: what is about to be shown or stored.
        secrets: values that must not appear; those shorter than `MIN_SECRET` are ignored.
    """
    spans = _known(frozenset(secrets)).spans(text)
    if not spans:
        return text
    pieces: list[str] = []
    done = 0
    for start, end in spans:
        pieces += (text[done:start], REPLACEMENT)
        done = end
    return "".join((*pieces, text[done:]))


def unfinished(text: str, secrets: Iterable[str]) -> int:
    """How many characters at the end of `text` may be part of a credential that goes on.

    Args:
        text: the beginning of a longer text.
        secrets: the known values.
    """
    known = _known(frozenset(secrets))
    cut = len(text) - known.begun(text)
    word = _WORD_AT_END.search(text, max(0, len(text) - _LONGEST_WORD))
    if word is not None and _may_be_key(word.group()):
        cut = min(cut, word.start())
    begun = text.rfind("-----BEGIN ")
    if len(text) - begun <= _LONGEST_BLOCK and begun >= 0 and "-----END " not in text[begun:]:
        cut = min(cut, begun)
    for start, end in reversed(known.spans(text)):
        if start < cut < end:  # its end may be the beginning of another one
            cut = start
    return len(text) - cut


def _may_be_key(word: str) -> bool:
    """Whether a word that may go on is long, has a mark of a key in it, or ends as one begins."""
    if sum(map(str.isalnum, word)) >= _LEAST_WORD:
        return True
    marks = [mark for known in _formats() for mark in known.marks if len(mark) >= _LEAST_MARK]
    return any(
        mark in word or any(word.endswith(mark[:end]) for end in range(2, len(mark)))
        for mark in marks
    )


@functools.lru_cache(maxsize=16)
def _known(secrets: frozenset[str]) -> KnownSecrets:
    return KnownSecrets(secrets)


def _replace(match: re.Match[str]) -> str:
    if "secret" not in match.re.groupindex:
        return REPLACEMENT
    whole, start = match.group(), match.start()
    return (
        whole[: match.start("secret") - start] + REPLACEMENT + whole[match.end("secret") - start :]
    )


@functools.cache
def _formats() -> tuple[_Format, ...]:
    data = (package_files(__package__) / "secret_formats.toml").read_text("utf-8")
    return tuple(
        _Format(marks=tuple(entry["marks"]), pattern=re.compile(entry["pattern"]))
        for entry in tomllib.loads(data)["format"]
    )
