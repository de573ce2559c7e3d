"""Find known secrets in text, in many encodings.

A known value is found unchanged, URL-encoded, escaped for JSON or HTML, in hexadecimal, base32 or
base64 (at any alignment, wrapped or not, base64 also twice and of UTF-16), and with separators or
escapes between its characters or bytes. A value that looks like a key is also found cut off, masked
(`sk-abc***wxyz`), reversed, in ROT13, with other cases, uuencoded, in base85, in base64 of
hexadecimal and the reverse.

Each form of each secret is cut into pieces. One pass over the text finds all pieces of all secrets,
so the time hardly depends on their number.
"""

from __future__ import annotations

import base64
import codecs
import functools
import re
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from urllib.parse import quote

from msgspec import Struct

from acp_agent.workspace.string_search import PACKED_MARKS, Hit, StringSearcher, unpack

MIN_SECRET = 8  # characters; a shorter value would match ordinary text
_MIN_KEY = 16  # minimum length of a key whose parts are recognised
_MIN_PIECE = 6  # minimum characters of a piece
_MAX_PIECES = 16  # maximum number of pieces of a key
_MIN_BEGINNING = 8  # characters of the beginning of a key that identify it
_MIN_PART = 12  # characters of any other part of a key that identify it
_ENCODED_PIECES = 4  # so that a line break leaves some pieces of an encoded secret whole
_MIN_ENCODED = 16
_MIN_SEPARATED = 8  # characters or bytes with separators between them
_MIN_MASKED = 5  # visible characters of a masked key, in total
_MAX_ESCAPED_LENGTH = 1_000  # characters of a secret whose escaped forms are searched
# A prefix such as `sk-proj-`, which all keys of a kind have.
_PUBLIC_PREFIX = re.compile(r"(?:[A-Za-z0-9]{1,8}[-_]){0,3}")
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]+")
_FULL_WIDTH = 0xFEE0  # from an ASCII character to its full-width form
_MASK = re.compile(r"[*\u2022#xX]{3,}|\.{3,}|\u2026+|(?<!\[)\[(?:REDACTED|redacted)\]")
_MASKS = (*(char * 3 for char in "*\u2022#xX."), "\u2026", "[REDACTED]", "[redacted]")
Span = tuple[int, int]
_URL_SAFE = str.maketrans("+/", "-_")
_BASE64 = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
_UUENCODED = str.maketrans(_BASE64, "`" + "".join(map(chr, range(33, 96))))
# Separators between the characters of a key, and between its bytes in hexadecimal.
_CHARACTER_SEPARATORS = (
    " ", "  ", "   ", "\n", "-", ".", ",", ", ", "_", "|", '", "', "', '", "\\",
    "\t", "\0", "\u200b", "\u2060", "\u00ad",
)  # fmt: skip
_BYTE_SEPARATORS = (
    " ", ":", "-", ",", ", ", "\\x", " 0x", ", 0x", ",0x", "%", "=", "\n", "\\u00", ";&#x", "00",
    " U+00", "%25",
)  # fmt: skip
_DECIMAL_SEPARATORS = (" ", ",", ", ", ";&#", "\n", ".", ")+chr(")
_NAMED_ESCAPES: dict[str, Sequence[str]] = {
    "&": ("&amp;",), "<": ("&lt;",), ">": ("&gt;",), '"': ("&quot;",), "'": ("&apos;",),
    "\n": (r"\\\\?n",), "\t": (r"\\\\?t",), "\r": (r"\\\\?r",), " ": (r"\+",),
}  # fmt: skip


class _Form(Struct, frozen=True, eq=False):
    """One way to write a secret.

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

    def span(self, text: str, text_start: int, form_start: int, size: int) -> Span | None:
        """Return the span of the secret around a piece, or None if too little of it matches."""
        start, matched_start = self._extend_back(text, text_start, form_start)
        end, matched_end = self._extend_forward(text, text_start + size, form_start + size)
        return (
            (start, end)
            if matched_end - matched_start >= (self.part if matched_start else self.beginning)
            else None
        )

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
        self._forms = [form for value in secrets for form in _forms(value)]
        escaped_patterns = [_escaped_pattern(value) for value in secrets if _has_escapes(value)]
        self._escaped_pattern = re.compile("|".join(escaped_patterns)) if escaped_patterns else None
        pieces: dict[str, list[tuple[_Form, int]]] = {}
        for form in self._forms:
            for piece, at in form.pieces:
                pieces.setdefault(piece, []).append((form, at))
        self._pieces = list(pieces.values())
        self.strings = (*pieces, *PACKED_MARKS) if pieces else ()

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
        for number, start, end in hits:
            if number >= len(self._pieces):
                result += self._packed_spans(text, start)
                continue
            for form, at in self._pieces[number]:
                if start < last_ends.get(form, 0):
                    continue
                span = form.span(text, start, at, end - start)
                if span is not None:
                    result.append(span)
                    last_ends[form] = span[1]
        if self._keys:
            for mask in _masks(text):
                start = mask.start()
                if text[start - 1 : start] in self._ends or text[start - 2 : start] in self._ends:
                    result += self._masked_spans(text, mask)
        if self._escaped_pattern is not None and any(mark in text for mark in "%\\&"):
            result += (match.span() for match in self._escaped_pattern.finditer(text))
        return merge_spans(result)

    def _packed_spans(self, text: str, start: int) -> Iterator[Span]:
        """Yield the span of compressed data at a mark, if it contains a secret."""
        end, content = unpack(text, start)
        if content and any(
            form.span(content, piece_start, at, piece_end - piece_start)
            for number, piece_start, piece_end in self.searcher.find(content)
            if number < len(self._pieces)
            for form, at in self._pieces[number]
        ):
            yield start, end

    def incomplete_length(self, text: str) -> int:
        """Return the length of the longest end of `text` that is the beginning of a secret."""
        longest = 0
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
        for key in self._keys:
            before = _ends_with_beginning(text[max(0, start - len(key)) : start], key)
            if not before:
                continue
            # Reverse both to compare the end of the key.
            after = _ends_with_beginning(text[end : end + len(key)][::-1], key[::-1])
            if before + after >= _MIN_MASKED and (after > 1 or before > _prefix_length(key)):
                yield start - before, end + after


def _masks(text: str) -> Iterator[re.Match[str]]:
    """Yield the masks in `text`; a long mask costs one step, unlike its hits in a search."""
    for beginning in _MASKS:
        at = text.find(beginning)
        while at >= 0:
            mask = _MASK.match(text, at)
            if mask is not None:
                yield mask
            at = text.find(beginning, at + 1 if mask is None else mask.end())


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


def _forms(value: str) -> Iterator[_Form]:
    if _is_key(value):
        size = max(_MIN_PIECE, -(-len(value) // _MAX_PIECES))
        pieces = tuple((value[at : at + size], at) for at in range(0, len(value) - size + 1, size))
        yield _Form(
            value,
            pieces,
            max(_MIN_BEGINNING, _prefix_length(value) + 3),
            max(_MIN_PART, 2 * size - 1),
            wrapped=True,
        )
    else:
        yield _Form(value, ((value, 0),), len(value), len(value))
    raw = value.encode("utf-8", "surrogatepass")
    encoded = {raw.hex(), raw.hex().upper()}
    base64_cores = tuple(_aligned_encodings(base64.b64encode, raw, 3, 6))
    base32_cores = tuple(_aligned_encodings(base64.b32encode, raw, 5, 5))
    for core in (*base64_cores, *base32_cores):
        encoded |= {core, core.translate(_URL_SAFE)}
    encoded |= set(_aligned_encodings(base64.b64encode, base64.b64encode(raw).rstrip(b"="), 3, 6))
    if value.isascii():  # as in PowerShell's -EncodedCommand
        encoded |= set(_aligned_encodings(base64.b64encode, value.encode("utf-16-le"), 3, 6))
    for text in sorted(encoded):
        yield _encoded_form(text, min(len(text), _MIN_ENCODED), wrapped=True)
    key = _is_key(value)
    if key:
        backwards = base64.b64encode(raw).decode().rstrip("=")[::-1]
        wide = "".join(chr(ord(char) + _FULL_WIDTH) for char in value)
        for text in (
            value[::-1],
            codecs.encode(value, "rot13"),
            backwards,
            value.swapcase(),
            value.upper(),
            value.lower(),
            *(raw.hex()[::-1], raw[::-1].hex(), raw.hex().encode().hex()),
            *_aligned_encodings(base64.b64encode, raw[::-1], 3, 6),
            *(core.lower() for core in base32_cores),
            wide,
            *(core.translate(_UUENCODED) for core in base64_cores),
            *_aligned_encodings(base64.b64encode, raw.hex().encode(), 3, 6),
            *(core.encode().hex() for core in base64_cores),
            *_base85(raw),
        ):
            yield _encoded_form(text, _MIN_ENCODED, wrapped=True)
    for items, separator in _separated(value, raw):
        text = separator.join(items)
        min_length = _MIN_SEPARATED * (len(text) + len(separator)) // len(raw)
        yield _encoded_form(text, min(min_length, len(text)) if key else len(text), wrapped=False)


def _base85(raw: bytes) -> Iterator[str]:
    """Yield the encodings in base85 and Ascii85 at each alignment, without incomplete groups."""
    for shift in range(4):
        groups = raw[shift : shift + (len(raw) - shift) // 4 * 4]
        yield base64.b85encode(groups).decode()
        yield base64.a85encode(groups).decode()


def _separated(value: str, raw: bytes) -> Iterator[tuple[Sequence[str], str]]:
    """Yield the characters or bytes of a secret in each notation, with their separators."""
    pairs = [f"{byte:02x}" for byte in raw]
    for separator in _CHARACTER_SEPARATORS:
        yield value, separator
    for width in range(2, 6):  # like `fold`
        for first in range(1, width + 1):
            yield re.findall(f"(?s)^.{{{first}}}|.{{1,{width}}}", value), "\n"
    for separator in _BYTE_SEPARATORS:
        yield pairs, separator
        yield [pair.upper() for pair in pairs], separator
    for separator in _DECIMAL_SEPARATORS:
        yield [str(byte) for byte in raw], separator
    for separator in ("\\", " "):
        yield [f"{byte:03o}" for byte in raw], separator
    for separator in ("", " "):
        yield [f"{byte:08b}" for byte in raw], separator
    for width in (4, 5):  # like `od -t u1` and `od -t d1`
        # A form must not begin with a space: what ends with one would be held back.
        yield [f"{raw[0]}", *(f"{byte:{width}}" for byte in raw[1:])], ""
    for at in range(2):  # like xxd and od, which group two bytes
        joined = _join_pairs(pairs, at)
        yield joined, " "
        words = [pair[2:] + pair[:2] for pair in joined[at:] if len(pair) == 4]
        yield words, " "
        yield [f"{int(word, 16):06o}" for word in words], " "


def _encoded_form(text: str, min_length: int, *, wrapped: bool) -> _Form:
    size = max(8, -(-len(text) // _ENCODED_PIECES)) if wrapped else max(8, min_length // 2)
    pieces = tuple((text[at : at + size], at) for at in range(0, len(text) - size + 1, size))
    return _Form(text, pieces, min_length, min_length, wrapped=wrapped)


def _aligned_encodings(
    encode: Callable[[bytes], bytes], raw: bytes, group: int, bits: int
) -> Iterator[str]:
    """Yield the encodings of bytes at each alignment, without characters that depend on neighbours.

    Args:
        group: the number of bytes that are encoded together, which is the number of alignments.
        bits: the number of bits per character.
    """
    for shift in range(group):
        encoded = encode(b"\0" * shift + raw).decode()
        yield encoded[-(-shift * 8 // bits) : (shift + len(raw)) * 8 // bits]


def _join_pairs(pairs: list[str], first: int) -> list[str]:
    """Return pairs joined two at a time, after a single one if `first` is 1."""
    remainder = pairs[first:]
    return pairs[:first] + ["".join(remainder[at : at + 2]) for at in range(0, len(remainder), 2)]


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
