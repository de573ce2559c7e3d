"""Find secrets in text whatever their encoding, separators and line breaks.

A text is reduced to its letters and digits, to its hexadecimal digits and to its decimal digits,
without what stands between the characters or bytes of a secret: spaces, quotes, escapes, line
breaks, `0x`. So one form of a secret matches all layouts of an encoding. Zeros are removed from
the digits, because notations pad with them.

Every eighth byte of a reduced text starts a word that is looked up in the words of all forms, so
the time hardly depends on the number of secrets. Most of a text has too few digits to contain a
secret in hexadecimal: only the blocks that have successive digits of one are searched for it.
"""

from __future__ import annotations

import base64
import bisect
import codecs
import itertools
import re
import string
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

_WORD = 8  # bytes
_MIN_PART = 2 * _WORD - 1  # bytes of a form that contain a whole word at any alignment
_MIN_WORDS = 2  # words that make it worth to look between the beginnings and ends of lines
_LETTERS = (string.ascii_letters + string.digits).encode()
_KEPT = (_LETTERS, b"123456789abcdef", b"123456789")  # letters, hexadecimal, decimal
_REMOVED = [bytes(sorted({*range(256)} - {*kept, *kept.upper()})) for kept in _KEPT]
_KEPT_FLAGS = [bytes(code not in removed for code in range(256)) for removed in _REMOVED]
_LOWER = bytes(range(256)).lower()
_BLOCK = 16_384  # bytes of a text
_BLOCK_MARGIN = 1_024  # bytes before and after a block in which a secret may begin or end
_MANY_DIGITS = _BLOCK // 8  # digits in a block that is searched in any case
_TAIL = 4_000  # characters at the end of a text that may be the start of a secret
_MIN_TAIL = 4  # bytes of a form that are held back before a separator
_BASE64 = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
_UUENCODED = str.maketrans(_BASE64, "`" + "".join(map(chr, range(33, 96))))
_ROT47 = str.maketrans({code: 33 + (code + 14) % 94 for code in range(33, 127)})
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_ALPHABETS = (
    _BASE58,
    string.digits + string.ascii_lowercase,
    string.digits + string.ascii_uppercase + string.ascii_lowercase,
)
# Escaped characters, by their first one, for which a text is searched much faster.
_ESCAPES = {
    b"%": re.compile(rb"%(?:25)*(?P<hex>[2-7][0-9a-fA-F])"),
    b"=": re.compile(rb"=(?P<hex>[2-7][0-9A-F])"),
    b"&": re.compile(rb"&(?:amp;)*\#(?:[xX]0*(?P<hex>[2-7][0-9a-fA-F])|0*(?P<dec>\d{2,3}));"),
    b"\\": re.compile(
        rb"\\\\*(?:(?:x|u00|u\{0*)(?P<hex>[2-7][0-9a-fA-F])\}?|(?P<oct>[01][0-7]{2})|[nrt])"
    ),
}
_BASES = {"hex": 16, "dec": 10, "oct": 8}
# Full-width and mathematical characters and tags, and how they begin in UTF-8.
_COMPATIBLE = re.compile("[\uff01-\uff5e\U0001d400-\U0001d7ff\U000e0020-\U000e007e]")
_COMPATIBLE_STARTS = (b"\xef\xbc", b"\xf0\x9d", b"\xf3\xa0")
# What terminals and browsers do not show, by a character of it.
_UNSEEN = {
    b"\x1b": re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[^\[\]])"),
    b"^": re.compile(rb"\^\[\[[0-?]*[@-~]"),
    b"<": re.compile(rb"<(?:/?[A-Za-z]\w{0,9}>|!\[CDATA\[)"),
    b"\b": re.compile(rb"[^\x08]\x08"),
}
# What precedes the content of a line: a name or a number, and separators.
_LINE_START = re.compile(
    rb"^[^\w\n]*(?:[\w./-]{1,40}[:=])?(?:(?:0x)?[0-9a-fA-F]{1,16}[]:.)=|?\s]+)?", re.MULTILINE
)
# The characters that follow the bytes of a line of a dump.
_LINE_END = re.compile(rb"(?<=[0-9a-fA-F]{2})[ \t]{2,}[|>]?\S[^\n]{0,17}$", re.MULTILINE)
_DUMP_END = re.compile(rb"(?:[ \t]+[0-9a-fA-F]{2,8})*" + _LINE_END.pattern, re.MULTILINE)
Span = tuple[int, int]


class _Form(Struct, frozen=True):
    """A reduced form of a secret.

    Attributes:
        part: how many bytes of it identify the secret.
        spread: whether it is only a secret with something between any two characters, because a
            password without it may be ordinary words.
    """

    data: bytes
    part: int
    spread: bool


class EncodedSecrets:
    """Finds a set of secrets in texts.

    Args:
        secrets: the secrets, and of each how many characters of it identify it.
    """

    def __init__(self, secrets: Iterable[tuple[str, int]]) -> None:
        forms: list[dict[bytes, _Form]] = [{}, {}, {}]
        for value, characters in secrets:
            is_key = characters < len(value)
            for kind, text in _forms(value):
                data = _reduced(text.encode("utf-8", "replace"), kind)
                part = max(_MIN_PART, -(-len(data) * characters // len(value)))
                if len(data) >= _WORD:
                    spread = not is_key and text in {value, value[::-1]}
                    forms[kind].setdefault(data, _Form(data, min(part, len(data)), spread))
        self._forms = [[*of_kind.values()] for of_kind in forms]
        self._searchers = [_Searcher(of_kind) for of_kind in self._forms]
        self._digits = _SuccessiveDigits([form.data for form in self._forms[1]])

    def spans(self, text: str) -> list[Span]:
        """Return the spans of secrets in `text`, in any order."""
        if not any(self._forms):
            return []
        encoded = _encoded(text)
        result = self._spans(encoded)
        if result is not None:
            bare = _LINE_END.sub(_blank, _LINE_START.sub(_blank, encoded))
            result += self._spans(bare) or []
        return [(start, _end_of_dump(encoded, end)) for start, end in result or []]

    def incomplete_length(self, text: str) -> int:
        """Return the length of the longest end of `text` that may be the beginning of a secret."""
        encoded = _encoded(text[-_TAIL:])
        min_length = 1 if encoded[-1:].isalnum() else _MIN_TAIL
        longest = 0
        for kind, forms in enumerate(self._forms):
            data = _reduced(encoded, kind)
            size = max((_beginning(data, form.data, min_length) for form in forms), default=0)
            if size:
                longest = max(longest, len(encoded) - _positions(encoded, kind)[-size])
        return longest

    def _spans(self, encoded: bytes) -> list[Span] | None:
        """Return the spans in a text, or None if it has hardly any words of secrets either.

        An escape hides a letter, but is itself the digits of a byte.
        """
        result: list[Span] = []
        words = 0
        sources = (_without_escapes(encoded), self._digits.blank_others(encoded), encoded)
        for kind, source in enumerate(sources):
            data = _reduced(source, kind)
            matches, found = self._searchers[kind].find(data)
            words += found if kind < 2 else 0  # any number may have the digits of a word
            positions = _positions(source, kind) if matches else []
            for start, end, form in matches:
                first, last = positions[start], positions[end - 1]
                if last - 1 > positions[end - 2] == positions[end - 3] + 1:
                    last = positions[end - 2]  # the start of the next word matches by chance
                if not form.spread or last - first >= 2 * (end - start - 1):
                    result.append((first, last + 1))
        return result if result or words >= _MIN_WORDS else None


class _SuccessiveDigits:
    """Finds the blocks of a text that may contain a whole word of forms in hexadecimal.

    Args:
        forms: the forms, without what is no hexadecimal digit.
    """

    def __init__(self, forms: list[bytes]) -> None:
        digits = [_reduced(form, 2) for form in forms]
        flags = [form.translate(_KEPT_FLAGS[2]) for form in forms]
        windows = (sum(f[at : at + _MIN_PART]) for f in flags for at in _starts(f, _MIN_PART))
        self._size = min(windows, default=0)  # digits that each part of a form has at least
        self._parts = {d[at : at + self._size] for d in digits for at in _starts(d, self._size)}

    def blank_others(self, encoded: bytes) -> bytes:
        """Return a text of the same length, with NUL in place of all other blocks."""
        blocks = []
        for start in range(0, len(encoded), _BLOCK):
            block = encoded[start : start + _BLOCK]
            margins = encoded[max(0, start - _BLOCK_MARGIN) : start + _BLOCK + _BLOCK_MARGIN]
            digits = _reduced(margins, 2)
            is_kept = len(digits) > _MANY_DIGITS or not self._parts.isdisjoint(
                digits[at : at + self._size] for at in _starts(digits, self._size)
            )
            blocks.append(block if is_kept else b"\0" * len(block))
        return b"".join(blocks)


def _starts(data: bytes, size: int) -> range:
    """Return where parts of a size begin."""
    return range(max(1, len(data) - size + 1))


class _Searcher:
    """Finds forms in reduced texts."""

    def __init__(self, forms: list[_Form]) -> None:
        self._short = [form for form in forms if form.part < _MIN_PART]
        self._forms = [form for form in forms if form.part >= _MIN_PART]
        self._all = b"\n".join(form.data for form in self._forms)
        sizes = (len(form.data) + 1 for form in self._forms)
        self._starts = [*itertools.accumulate(sizes, initial=0)]
        self._words = frozenset(word for at in range(_WORD) for word in _words(self._all[at:]))

    def find(self, data: bytes) -> tuple[list[tuple[int, int, _Form]], int]:
        """Return the spans of forms in a reduced text, and how many words of forms it has."""
        result: list[tuple[int, int, _Form]] = []
        for form in self._short:
            size = len(form.data)
            result += ((start, start + size, form) for start in _places(data, form.data))
        words = _words(data)
        if self._words.isdisjoint(words):
            return result, 0
        found = [number * _WORD for number, word in enumerate(words) if word in self._words]
        end = 0
        places: dict[bytes, list[int]] = {}
        for position in found:
            if position >= end:
                word = data[position : position + _WORD]
                if word not in places:
                    places[word] = _places(self._all, word)
                for span in self._around(data, position, places[word]):
                    result.append(span)
                    end = max(end, span[1])
        return result, len(found)

    def _around(
        self, data: bytes, position: int, places: Iterable[int]
    ) -> Iterator[tuple[int, int, _Form]]:
        """Yield the spans of forms around a word of a reduced text.

        Args:
            places: where the word is in the forms.
        """
        forms = self._all
        for at in places:
            start, form_start = position, at
            while start and form_start and data[start - 1] == forms[form_start - 1]:
                start, form_start = start - 1, form_start - 1
            end, form_end = position + _WORD, at + _WORD
            while end < len(data) and form_end < len(forms) and data[end] == forms[form_end]:
                end, form_end = end + 1, form_end + 1
            form = self._forms[bisect.bisect_right(self._starts, at) - 1]
            if end - start >= form.part:
                yield start, end, form


def _places(data: bytes, part: bytes) -> list[int]:
    """Return the positions of a part of `data`."""
    places = []
    at = data.find(part)
    while at >= 0:
        places.append(at)
        at = data.find(part, at + 1)
    return places


def _words(data: bytes) -> array[int]:
    """Return the successive words of bytes as numbers."""
    words = array("Q")
    words.frombytes(data[: len(data) // _WORD * _WORD])
    return words


def _reduced(encoded: bytes, kind: int) -> bytes:
    """Return the characters of a kind in lower case."""
    return encoded.translate(_LOWER, _REMOVED[kind])


def _positions(encoded: bytes, kind: int) -> list[int]:
    """Return the positions of the characters that `_reduced` keeps."""
    kept = encoded.translate(_KEPT_FLAGS[kind])
    return [*itertools.compress(range(len(encoded)), kept)]


def _beginning(data: bytes, form: bytes, min_length: int) -> int:
    """Return how many bytes at the end of `data` are the beginning of a form, if enough."""
    at = data.find(form[:min_length], max(0, len(data) - len(form) + 1))
    while at >= 0:
        if form.startswith(data[at:]):
            return len(data) - at
        at = data.find(form[:min_length], at + 1)
    return 0


def _end_of_dump(encoded: bytes, end: int) -> int:
    """Return the end of the line of a dump in which the bytes of a secret end, or `end`."""
    match = _DUMP_END.match(encoded, end)
    return end if match is None else match.end()


def _encoded(text: str) -> bytes:
    """Return one byte for each character of `text`."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        encoded = text.encode("utf-8", "replace")
        if any(start[0] in encoded and start in encoded for start in _COMPATIBLE_STARTS):
            text = _COMPATIBLE.sub(_compatible, text)
        return text.encode("latin-1", "replace")


def _compatible(match: re.Match[str]) -> str:
    char = match.group()
    return chr(ord(char) & 0x7F) if char > "\U000e0000" else unicodedata.normalize("NFKC", char)


def _without_escapes(encoded: bytes) -> bytes:
    """Return a text of the same length with escaped characters unescaped, followed by NUL."""
    for patterns, replacement in ((_UNSEEN, _blank), (_ESCAPES, _unescape)):
        for mark, pattern in patterns.items():
            if mark in encoded:
                encoded = pattern.sub(replacement, encoded)
    return encoded


def _blank(match: re.Match[bytes]) -> bytes:
    return b"\0" * len(match.group())


def _unescape(match: re.Match[bytes]) -> bytes:
    kind = match.lastgroup
    char = b"" if kind is None else bytes([int(match[kind], _BASES[kind]) & 0x7F])
    return char.ljust(len(match.group()), b"\0")


def _forms(value: str) -> Iterator[tuple[int, str]]:
    """Yield the encodings of a secret, each with the kind of its characters."""
    raw = value.encode("utf-8", "surrogatepass")
    code = raw.hex()
    cores = [*_aligned(base64.b64encode, raw, 3, 6)]
    letters = [value, value[::-1], codecs.encode(value, "rot13"), value.translate(_ROT47)]
    letters.append(re.sub("[nrt]", "", value))  # with a backslash, these are escapes
    letters += (_swapped(raw, 2, at).decode("latin-1") for at in range(2))
    letters += (core for core in cores)
    letters += (core[::-1] for core in cores)
    letters += (codecs.encode(core, "rot13") for core in cores)
    letters += (core.translate(_UUENCODED) for core in cores)
    for inner in (
        base64.b64encode(raw).rstrip(b"="),
        code.encode(),
        raw[::-1],
        value.encode("utf-16-le", "surrogatepass"),
        value.encode("utf-16-be", "surrogatepass"),
    ):
        letters += _aligned(base64.b64encode, inner, 3, 6)
    letters += _aligned(base64.b32encode, raw, 5, 5)
    letters += _aligned(base64.b32hexencode, raw, 5, 5)
    letters += _base85(raw)
    letters += (_number(raw, alphabet) for alphabet in _ALPHABETS)
    letters.append("".join(f"{byte:08b}" for byte in raw))
    yield from ((0, text) for text in letters)
    codes = [code, code[::-1], raw[::-1].hex(), code.encode().hex()]
    codes += (core.encode().hex() for core in cores)
    codes += (_swapped(raw, width, at).hex() for width in (2, 4, 8) for at in range(width))
    yield from ((1, text) for text in codes)
    yield 2, "".join(map(str, raw))
    yield 2, "".join(f"{byte:o}" for byte in raw)
    yield 2, str(int.from_bytes(raw, "big"))
    for at in range(2):  # like od, which shows numbers of two bytes
        pairs = [raw[start] | raw[start + 1] << 8 for start in range(at, len(raw) - 1, 2)]
        yield 2, "".join(map(str, pairs))
        yield 2, "".join(f"{pair:o}" for pair in pairs)


def _swapped(raw: bytes, width: int, at: int) -> bytes:
    """Return bytes with the order of each group reversed, after `at` bytes, as in dumps."""
    whole = range(at, len(raw) - width + 1, width)
    return raw[:at][::-1] + b"".join(raw[start : start + width][::-1] for start in whole)


def _number(raw: bytes, alphabet: str) -> str:
    """Return the number that the bytes are, with the digits of an alphabet."""
    number = int.from_bytes(raw, "big")
    digits = ""
    while number:
        number, digit = divmod(number, len(alphabet))
        digits = alphabet[digit] + digits
    return digits


def _base85(raw: bytes) -> Iterator[str]:
    """Yield the encodings in base85 and Ascii85 at each alignment, without incomplete groups."""
    for shift in range(4):
        groups = raw[shift : shift + (len(raw) - shift) // 4 * 4]
        yield base64.b85encode(groups).decode()
        yield base64.a85encode(groups).decode()


def _aligned(encode: Callable[[bytes], bytes], raw: bytes, group: int, bits: int) -> Iterator[str]:
    """Yield the encodings of bytes at each alignment, without characters that depend on neighbours.

    Args:
        group: the number of bytes that are encoded together, which is the number of alignments.
        bits: the number of bits per character.
    """
    for shift in range(group):
        encoded = encode(b"\0" * shift + raw).decode()
        yield encoded[-(-shift * 8 // bits) : (shift + len(raw)) * 8 // bits]
