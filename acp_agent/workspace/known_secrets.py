"""Find known secrets in text.

A known value is found unchanged, cut off, wrapped, masked (`sk-abc***wxyz`) or with some of its
characters escaped, here, and encoded in `encoded_secrets`. Values are cut into pieces. One pass
over the text finds all pieces of all secrets, so the time hardly depends on their number.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote

from msgspec import Struct

from acp_agent.workspace.encoded_secrets import EncodedSecrets, Span
from acp_agent.workspace.string_search import PACKED_MARKS, Hit, StringSearcher, rare_pieces, unpack

MIN_SECRET = 8  # characters; a shorter value would match ordinary text
_MIN_KEY = 16  # minimum length of a key whose parts are recognised
_MIN_PIECE = 6  # minimum characters of a piece
_MAX_PIECES = 16  # maximum number of pieces of a key
_MIN_BEGINNING = 8  # characters of the beginning of a key that identify it
_MIN_PART = 12  # characters of any other part of a key that identify it
_MIN_SCATTERED = 3  # parts of a key that stand near each other
_MAX_SCATTERED = 400  # characters in which they stand, and around them
_MIN_FRAGMENT = 4  # characters of the key that are replaced there
_MIN_MASKED = 5  # visible characters of a masked key, in total
_MAX_ESCAPED_LENGTH = 1_000  # characters of a secret whose escaped forms are searched
# A prefix such as `sk-proj-`, which all keys of a kind have.
_PUBLIC_PREFIX = re.compile(r"(?:[A-Za-z0-9]{1,8}[-_]){0,3}")
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]+")
_MASK = re.compile(r"[*\u2022#xX]{3,}|\.{3,}|\u2026+|(?<!\[)\[(?:REDACTED|redacted)\]")
_MASKS = (*(char * 3 for char in "*\u2022#xX."), "\u2026", "[REDACTED]", "[redacted]")
_NAMED_ESCAPES: dict[str, Sequence[str]] = {
    "&": ("&amp;",), "<": ("&lt;",), ">": ("&gt;",), '"': ("&quot;",), "'": ("&apos;",),
    "\n": (r"\\\\?n",), "\t": (r"\\\\?t",), "\r": (r"\\\\?r",), " ": (r"\+",),
}  # fmt: skip


class _Form(Struct, frozen=True, eq=False):
    """A secret as it is written.

    Attributes:
        pieces: the parts of it that are searched, with their offsets.
        beginning: how many characters of its beginning identify it.
        part: how many characters of any other part identify it.
        wrapped: whether line breaks in it are ignored.
    """

    text: str
    pieces: tuple[tuple[str, int], ...]
    beginning: int
    part: int
    wrapped: bool = False

    def match(self, text: str, text_start: int, form_start: int, size: int) -> tuple[Span, Span]:
        """Return the span of the secret around a piece, and the part of the form that it is."""
        start, matched_start = self._extend_back(text, text_start, form_start)
        end, matched_end = self._extend_forward(text, text_start + size, form_start + size)
        return (start, end), (matched_start, matched_end)

    def is_identified(self, part: Span) -> bool:
        """Return whether a part of the form is enough to identify the secret."""
        start, end = part
        return end - start >= (self.part if start else self.beginning)

    def _extend_back(self, text: str, matched: int, form_position: int) -> tuple[int, int]:
        """Return how far the match extends before a piece, as positions in the text and form."""
        position = matched
        while form_position and position:
            if text[position - 1] == self.text[form_position - 1]:
                position, form_position = position - 1, form_position - 1
                matched = position
            elif self.wrapped and text[position - 1] in "\r\n":
                position -= 1
            else:
                break
        return matched, form_position

    def _extend_forward(self, text: str, matched: int, form_position: int) -> tuple[int, int]:
        """Return how far the match extends after a piece, as positions in the text and form."""
        position = matched
        while form_position < len(self.text) and position < len(text):
            if text[position] == self.text[form_position]:
                position, form_position = position + 1, form_position + 1
                matched = position
            elif self.wrapped and text[position] in "\r\n":
                position += 1
            else:
                break
        return matched, form_position


class KnownSecrets:
    """Finds a set of secrets in texts.

    Args:
        values: the secrets; those shorter than `MIN_SECRET` are ignored.
    """

    def __init__(self, values: frozenset[str]) -> None:
        secrets = sorted(value for value in values if len(value) >= MIN_SECRET)
        self._keys = [value for value in secrets if _is_key(value)]
        self._ends = {key[at : at + 2] for key in self._keys for at in range(len(key) - 1)}
        self._ends |= {key[0] for key in self._keys}
        self._forms = [*map(_form, secrets)]
        self._encoded = EncodedSecrets(
            (value, _min_characters(value) if value in self._keys else len(value))
            for value in secrets
        )
        escaped_patterns = [_escaped_pattern(value) for value in secrets if _has_escapes(value)]
        self._escaped_pattern = re.compile("|".join(escaped_patterns)) if escaped_patterns else None
        pieces: dict[str, list[tuple[_Form, int]]] = {}
        for form in self._forms:
            for piece, at in form.pieces:
                pieces.setdefault(piece, []).append((form, at))
        self._pieces = list(pieces.values())
        self.strings = (*pieces, *PACKED_MARKS, *(_MASKS if self._keys else ())) if pieces else ()

    @functools.cached_property
    def searcher(self) -> StringSearcher:
        """Finds `strings` in a text."""
        return StringSearcher(self.strings)

    def spans(self, text: str, hits: Iterable[Hit]) -> list[Span]:
        """Return the spans of secrets in `text`, in order and without overlaps.

        Args:
            hits: the places of `strings` in it.
        """
        result: list[Span] = []
        last_ends: dict[_Form, int] = {}  # the end of the last span of each form
        parts: dict[_Form, dict[Span, Span]] = {}  # by their places in the text
        mask_end = 0
        for number, start, end in hits:
            if number >= len(self._pieces) + len(PACKED_MARKS):
                mask = _MASK.match(text, start) if start >= mask_end else None
                if mask is not None:
                    mask_end = mask.end()
                    result += self._masked_spans(text, mask)
                continue
            if number >= len(self._pieces):
                result += self._packed_spans(text, start)
                continue
            for form, at in self._pieces[number]:
                if start < last_ends.get(form, 0):
                    continue
                span, part = form.match(text, start, at, end - start)
                if form.is_identified(part):
                    result.append(span)
                    last_ends[form] = span[1]
                if part[1] - part[0] < len(form.text) and part[1] > form.beginning:
                    parts.setdefault(form, {})[span] = part
        for form, found in parts.items():
            result += _scattered(text, form, found)
        if self._escaped_pattern is not None and any(mark in text for mark in "%\\&"):
            result += (match.span() for match in self._escaped_pattern.finditer(text))
        result += self._encoded.spans(text)
        return merge_spans(result)

    def _packed_spans(self, text: str, start: int) -> Iterator[Span]:
        """Yield the span of compressed data at a mark, if it contains a secret."""
        end, content = unpack(text, start)
        if content and any(
            form.is_identified(form.match(content, piece_start, at, piece_end - piece_start)[1])
            for number, piece_start, piece_end in self.searcher.find(content)
            if number < len(self._pieces)
            for form, at in self._pieces[number]
        ):
            yield start, end

    def incomplete_length(self, text: str) -> int:
        """Return the length of the longest end of `text` that is the beginning of a secret."""
        longest = self._encoded.incomplete_length(text)
        for form in self._forms:
            first = form.text[0]
            at = text.find(first, max(0, len(text) - len(form.text) + 1))
            while 0 <= at < len(text) - longest:
                if form.text.startswith(text[at:]):
                    longest = len(text) - at
                at = text.find(first, at + 1)
        return longest

    def _masked_spans(self, text: str, mask: re.Match[str]) -> Iterator[Span]:
        """Yield the spans of keys around a mask, as in `sk-abc***wxyz`."""
        start, end = mask.span()
        if text[start - 1 : start] not in self._ends and text[start - 2 : start] not in self._ends:
            return
        for key in self._keys:
            before = _ends_with_beginning(text[max(0, start - len(key)) : start], key)
            if not before:
                continue
            # Reverse both to compare the end of the key.
            after = _ends_with_beginning(text[end : end + len(key)][::-1], key[::-1])
            if before + after >= _MIN_MASKED and (after > 1 or before > _prefix_length(key)):
                yield start - before, end + after


def _scattered(text: str, form: _Form, parts: Mapping[Span, Span]) -> Iterator[Span]:
    """Yield what stands of a key around several parts of it that are near each other.

    Args:
        parts: parts of the key, by their places in the text.
    """
    places = sorted(parts)
    at = 0
    for start, first in enumerate(places):
        near = places[start : start + _MIN_SCATTERED]
        if near[-1][1] - first[0] > _MAX_SCATTERED or len({*map(parts.get, near)}) < _MIN_SCATTERED:
            continue
        at = max(at, first[0] - _MAX_SCATTERED)
        while at < min(len(text) - _MIN_FRAGMENT + 1, near[-1][1] + _MAX_SCATTERED):
            size = _MIN_FRAGMENT if text[at : at + _MIN_FRAGMENT] in form.text else 1
            while size > 1 and at + size < len(text) and text[at : at + size + 1] in form.text:
                size += 1
            if size > 1:
                yield at, at + size
            at += size


def _ends_with_beginning(text: str, key: str) -> int:
    """Return how many characters at the end of `text` are the beginning of `key`."""
    at = key.rfind(text[-1], 0, len(text)) if text else -1
    while at >= 0:
        if text.endswith(key[: at + 1]):
            return at + 1
        at = key.rfind(text[-1], 0, at)
    return 0


def _prefix_length(key: str) -> int:
    """Return the length of the prefix that shows the kind of a key."""
    match = _PUBLIC_PREFIX.match(key)
    return 0 if match is None else match.end()


def _is_key(value: str) -> bool:
    """Return whether a value looks like a key, so that even a part of it is no coincidence."""
    return (
        len(value) >= _MIN_KEY
        and value.isascii()
        and value.isprintable()
        and " " not in value
        and "://" not in value
        and value[0].isalnum()
        and any(char.isdigit() for char in value)
        and any(char.isalpha() for char in value)
    )


def _min_characters(key: str) -> int:
    """Return how many characters of the beginning of a key identify it."""
    return max(_MIN_BEGINNING, _prefix_length(key) + 3)


def _form(value: str) -> _Form:
    if not _is_key(value):
        return _Form(value, ((value, 0),), len(value), len(value))
    size = max(_MIN_PIECE, -(-len(value) // _MAX_PIECES))
    part = max(_MIN_PART, 2 * size - 1)
    starts = {0, *rare_pieces(value, size, part)}
    pieces = tuple((value[at : at + size], at) for at in sorted(starts))
    return _Form(value, pieces, _min_characters(value), part, wrapped=True)


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, with overlapping ones merged."""
    result: list[Span] = []
    for start, end in sorted(spans):
        if result and start < result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def _has_escapes(value: str) -> bool:
    return len(value) <= _MAX_ESCAPED_LENGTH and _PLAIN.fullmatch(value) is None


def _escaped_pattern(value: str) -> str:
    """Return a pattern for the value with any characters escaped as in URLs, JSON or HTML."""
    return "".join(re.escape(char) if _PLAIN.match(char) else _escaped(char) for char in value)


@functools.cache
def _escaped(char: str) -> str:
    code = ord(char)
    patterns = [re.escape(char), rf"\\{{1,3}}{re.escape(char)}"]
    patterns.append(f"(?i:{re.escape(quote(char, safe=''))})")
    patterns += [rf"\\\\?(?i:u{code:04x})", f"&#0*{code};", f"(?i:&#x0*{code:x};)"]
    patterns += _NAMED_ESCAPES.get(char, ())
    return f"(?:{'|'.join(patterns)})"
