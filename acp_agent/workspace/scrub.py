"""Remove credentials from text before it leaves a tool.

Three kinds are found: known values (the keys that this program uses), in many encodings
(`known_secrets`); keys with a recognisable format, in any context (`secret_formats`); and values
that look random or like a password, after a name such as `API_KEY` (`named_secrets`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

from acp_agent.workspace import named_secrets, secret_formats
from acp_agent.workspace.encoded_secrets import Span
from acp_agent.workspace.known_secrets import KnownSecrets, merge_spans
from acp_agent.workspace.string_search import Hit, StringSearcher

REPLACEMENT = "[secret]"
_WORD_AT_END = re.compile(r"[A-Za-z0-9_+/=.%\\-]+\Z")
_KEY = re.compile(r"[\w.~+/=-]{16,512}", re.ASCII)
_MAX_WORD = 512  # characters; keys recognised by their format are not longer
_MIN_WORD = 20  # letters and digits; keys with a format are longer, and most words shorter
_MAX_BLOCK = 8_192  # characters of a private key


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` with every credential replaced by `[secret]`.

    Args:
        text: the text to be shown, sent or stored.
        secrets: values that must not appear; see `KnownSecrets`.
    """
    return _finder(frozenset(secrets)).scrub(text)


def scrub_known(text: str, secrets: Iterable[str]) -> str:
    """Return `text` with only the known values replaced, not what looks like a credential.

    Args:
        text: the text to be shown or stored.
        secrets: values that must not appear; see `KnownSecrets`.
    """
    return _without(text, _finder(frozenset(secrets)).secret_spans(text))


def holds_credential(text: str, secrets: Iterable[str]) -> bool:
    """Return whether `text` contains a known value, or a key with a recognisable format.

    Args:
        secrets: values that must not appear; see `KnownSecrets`.
    """
    return _finder(frozenset(secrets)).holds(text)


def find_keys(text: str) -> set[str]:
    """Return the keys in `text` that are recognised by their format and have only one line."""
    keys = {text[start:end] for start, end in _finder(frozenset()).format_spans(text)}
    return {key for key in keys if _KEY.fullmatch(key)}


def incomplete_tail(text: str, secrets: Iterable[str]) -> int:
    """Return how many characters at the end of `text` may be the start of a longer credential."""
    finder = _finder(frozenset(secrets))
    cut = len(text) - finder.known_secrets.incomplete_length(text)
    word = _WORD_AT_END.search(text, max(0, len(text) - _MAX_WORD))
    if word is not None and _may_be_key(word.group()):
        cut = min(cut, word.start())
    cut = min(cut, named_secrets.incomplete_name_start(text, max(0, len(text) - _MAX_WORD)))
    block_start = text.rfind("-----BEGIN ")
    if (
        len(text) - block_start <= _MAX_BLOCK
        and block_start >= 0
        and "-----END " not in text[block_start:]
    ):
        cut = min(cut, block_start)
    for start, end in reversed(finder.secret_spans(text)):
        if start < cut < end:  # do not cut inside a known value
            cut = start
    return len(text) - cut


class _Finder:
    """Finds credentials of all kinds in one pass over a text."""

    def __init__(self, secrets: frozenset[str]) -> None:
        self.known_secrets = KnownSecrets(secrets)
        self._formats = len(self.known_secrets.strings)
        self._names = self._formats + len(secret_formats.strings())

    def scrub(self, text: str) -> str:
        """Return `text` without credentials."""
        value_hits, formats, names = self._find_hits(text)
        spans = self.known_secrets.spans(text, value_hits)
        if spans:  # search again, since the replacements end adjacent values
            text = _without(text, spans)
            _, formats, names = self._find_hits(text)
        candidate_spans = [*secret_formats.spans(text, formats), *named_secrets.spans(text, names)]
        return _without(text, merge_spans(candidate_spans))

    def holds(self, text: str) -> bool:
        """Return whether `text` contains a known value, or a key with a recognisable format."""
        value_hits, formats, _ = self._find_hits(text)
        return bool(
            self.known_secrets.spans(text, value_hits) or secret_formats.spans(text, formats)
        )

    def format_spans(self, text: str) -> list[Span]:
        """Return the spans of keys with a recognisable format."""
        return secret_formats.spans(text, self._find_hits(text)[1])

    def _find_hits(self, text: str) -> tuple[list[Hit], list[Hit], list[Hit]]:
        """Return the places of the strings of known values, of formats and of names."""
        hits = self._strings.find(text)
        value_hits = [hit for hit in hits if hit[0] < self._formats] if self._formats else []
        formats = [
            (number - self._formats, start, end)
            for number, start, end in hits
            if self._formats <= number < self._names
        ]
        names = [(n - self._names, start, end) for n, start, end in hits if n >= self._names]
        return value_hits, formats, names

    def secret_spans(self, text: str) -> list[Span]:
        """Return the spans of known values in `text`, in order and without overlaps."""
        return self.known_secrets.spans(text, self.known_secrets.searcher.find(text))

    @functools.cached_property
    def _strings(self) -> StringSearcher:
        return StringSearcher(
            [*self.known_secrets.strings, *secret_formats.strings(), *named_secrets.strings()]
        )


@functools.lru_cache(maxsize=16)
def _finder(secrets: frozenset[str]) -> _Finder:
    return _Finder(secrets)


def _may_be_key(word: str) -> bool:
    """Return whether an unfinished word is long, or contains the beginning of a key."""
    return sum(map(str.isalnum, word)) >= _MIN_WORD or secret_formats.may_start_key(word)


def _without(text: str, spans: Sequence[Span]) -> str:
    """Return `text` with the spans replaced; they must be in order and must not overlap."""
    if not spans:
        return text
    pieces: list[str] = []
    position = 0
    for start, end in spans:
        pieces += (text[position:start], REPLACEMENT)
        position = end
    return "".join((*pieces, text[position:]))
