"""Take credentials out of text before it leaves a tool.

Three kinds are found: known values (the keys this program uses), however they are encoded
(`known_secrets`); keys that can be told by their form, whatever stands around them
(`secret_formats`); and values that look random, or like a password, behind a name that says that
they are secret (`named_secrets`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

from acp_agent.workspace import named_secrets, secret_formats
from acp_agent.workspace.known_secrets import Hit, KnownSecrets, Span, Strings, merged

REPLACEMENT = "[secret]"
_WORD_AT_END = re.compile(r"[A-Za-z0-9_+/=.%\\-]+\Z")
_LONGEST_WORD = 512  # characters; keys recognised by their form are not longer
_LEAST_WORD = 20  # letters and digits; keys of a form are longer, and few words are
_LONGEST_BLOCK = 8_192  # characters of a private key


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` with every credential replaced by `[secret]`.

    Args:
        text: what is about to be shown, sent or stored.
        secrets: values that must not appear; see `KnownSecrets`.
    """
    return _finder(frozenset(secrets)).scrub(text)


def scrub_known(text: str, secrets: Iterable[str]) -> str:
    """Return `text` with the known values replaced, and nothing that only looks like a credential.

    Args:
        text: what is about to be shown or stored.
        secrets: values that must not appear; see `KnownSecrets`.
    """
    return _without(text, _finder(frozenset(secrets)).known_spans(text))


def holds_credential(text: str, secrets: Iterable[str]) -> bool:
    """Return whether a known value stands in `text`, or a key that can be told by its form.

    Args:
        text: what is about to be sent.
        secrets: values that must not appear; see `KnownSecrets`.
    """
    return _finder(frozenset(secrets)).holds(text)


def incomplete_tail(text: str, secrets: Iterable[str]) -> int:
    """Return how many characters at the end of `text` may be part of a credential that goes on.

    Args:
        text: the beginning of a longer text.
        secrets: the known values.
    """
    finder = _finder(frozenset(secrets))
    cut = len(text) - finder.known.begun(text)
    word = _WORD_AT_END.search(text, max(0, len(text) - _LONGEST_WORD))
    if word is not None and _may_be_key(word.group()):
        cut = min(cut, word.start())
    cut = min(cut, named_secrets.begun(text, max(0, len(text) - _LONGEST_WORD)))
    begun = text.rfind("-----BEGIN ")
    if len(text) - begun <= _LONGEST_BLOCK and begun >= 0 and "-----END " not in text[begun:]:
        cut = min(cut, begun)
    for start, end in reversed(finder.known_spans(text)):
        if start < cut < end:  # its end may be the beginning of another one
            cut = start
    return len(text) - cut


class _Finder:
    """Finds credentials of all kinds in one pass over a text.

    Attributes:
        known: what finds known values.
    """

    def __init__(self, secrets: frozenset[str]) -> None:
        self.known = KnownSecrets(secrets)
        self._formats = len(self.known.strings)
        self._names = self._formats + len(secret_formats.strings())

    def scrub(self, text: str) -> str:
        """Return `text` without credentials."""
        known, formats, names = self._hits(text)
        spans = self.known.spans(text, known)
        if spans:  # What stands beside them ends there.
            text = _without(text, spans)
            _, formats, names = self._hits(text)
        found = [*secret_formats.spans(text, formats), *named_secrets.spans(text, names)]
        return _without(text, merged(found))

    def holds(self, text: str) -> bool:
        """Return whether `text` has a known value, or a key of a known form."""
        known, formats, _ = self._hits(text)
        return bool(self.known.spans(text, known) or secret_formats.spans(text, formats))

    def _hits(self, text: str) -> tuple[list[Hit], list[Hit], list[Hit]]:
        """Return where the strings of known values, of formats and of names are."""
        known: list[Hit] = []
        formats: list[Hit] = []
        names: list[Hit] = []
        for number, start, end in self._strings.find(text):
            if number >= self._names:
                names.append((number - self._names, start, end))
            elif number >= self._formats:
                formats.append((number - self._formats, start, end))
            else:
                known.append((number, start, end))
        return known, formats, names

    def known_spans(self, text: str) -> list[Span]:
        """Return where known values stand in `text`: in order, none in another."""
        return self.known.spans(text, self._known_strings.find(text))

    @functools.cached_property
    def _strings(self) -> Strings:
        return Strings([*self.known.strings, *secret_formats.strings(), *named_secrets.strings()])

    @functools.cached_property
    def _known_strings(self) -> Strings:
        return Strings(self.known.strings)


@functools.lru_cache(maxsize=16)
def _finder(secrets: frozenset[str]) -> _Finder:
    return _Finder(secrets)


def _may_be_key(word: str) -> bool:
    """Return whether a word that may go on is long, or has or may get a mark of a key."""
    return sum(map(str.isalnum, word)) >= _LEAST_WORD or secret_formats.may_begin(word)


def _without(text: str, spans: Sequence[Span]) -> str:
    """Return `text` with spans that do not overlap, in order, replaced."""
    if not spans:
        return text
    pieces: list[str] = []
    done = 0
    for start, end in spans:
        pieces += (text[done:start], REPLACEMENT)
        done = end
    return "".join((*pieces, text[done:]))
