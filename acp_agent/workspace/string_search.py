"""Find many strings in a text, and unpack compressed data in it, in base64 or hexadecimal.

A secret in compressed data has no fixed form, so the data is unpacked, up to a limit.
"""

from __future__ import annotations

import base64
import bz2
import lzma
import re
import zlib
from collections.abc import Sequence

from ahocorasick import Automaton

_HEX_MARKS = ("1f8b08", "425a68", "fd377a585a", "789c", "78da", "785e", "7801")
_ZLIB_MARKS = {"eA": "EFGH", "eF": "4567", "eJ": "wxyz", "eN": "opqr"}
# The beginnings of gzip, bzip2, xz, zip and zlib; two bits of zlib's third character are of data.
PACKED_MARKS = (
    *("H4sI", "QlpoO", "/Td6WFo", "UEsDB"),
    *(begin + last for begin, lasts in _ZLIB_MARKS.items() for last in lasts),
    *_HEX_MARKS,
)
_BASE64 = re.compile(
    r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/_-]{20,}(?:[\r\n]{1,2}[A-Za-z0-9+/_-]+)*={0,2}"
)
_HEX = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{32,}(?:[\r\n]{1,2}[0-9a-f]+)*(?![0-9A-Za-z])")
_MAX_PACKED = 100_000  # characters of packed data
_MAX_UNPACKED = 200_000  # bytes
_CLEANED = str.maketrans("-_", "+/", "\r\n=")
# Characters of code and logs, the most frequent first, and their ranks.
_FREQUENT = " etaonirsl0123dc456789bfupmhg_./=-vwy,k\n\"':()xjqz;EASTRINOCLDPMUFBGHVKWYXJQZ"
_RANKS = str.maketrans(dict(zip(_FREQUENT, map(chr, range(len(_FREQUENT))), strict=True)))
_RANKED_LENGTH = 4  # deeper nodes have few children
_RUN = 3  # length of strings such as `***`
_COMMON = 16  # frequent characters that get a node of their own
Hit = tuple[int, int, int]  # the index of a found string, its start and end


class StringSearcher:
    """Finds many strings in a text in one pass (Aho and Corasick, 1975).

    Args:
        strings: the strings to find; duplicates are allowed, and empty strings are ignored.
    """

    def __init__(self, strings: Sequence[str]) -> None:
        self._automaton = Automaton()
        numbers: dict[str, list[int]] = {}
        for number, string in enumerate(strings):
            if string:
                numbers.setdefault(string, []).append(number)
        if not numbers:
            return
        # A node's children are searched one by one, in the order in which they were added. So a
        # frequent character is found at once, even if no string begins with it.
        for char in _FREQUENT[:_COMMON]:
            self._automaton.add_word(char + "\0", ((), 0))
        for string in sorted(numbers, key=lambda string: string[:_RANKED_LENGTH].translate(_RANKS)):
            self._automaton.add_word(string, (tuple(numbers[string]), len(string)))
        self._automaton.make_automaton()

    def find(self, text: str) -> list[Hit]:
        """Return all places of all strings, including overlapping ones, ordered by their ends.

        Of a string such as `***`, only the first of successive places is returned: a long line
        of one character would have one at each.
        """
        hits: list[Hit] = []
        if not len(self._automaton):
            return hits
        last_end, last = -1, ()
        for end, (numbers, length) in self._automaton.iter(text):
            if numbers is not last or end != last_end + 1 or length != _RUN:
                hits += [(number, end + 1 - length, end + 1) for number in numbers]
            last_end, last = end, numbers
        return hits


def rare_pieces(text: str, size: int, part: int) -> list[int]:
    """Return the starts of pieces of `text`, of which each part of it contains a whole one.

    Pieces that begin with rare characters are found faster.

    Args:
        size: the length of a piece.
        part: the length of a part.
    """
    ranks = text.translate(_RANKS)
    starts = range(len(text) - size + 1)
    windows = (starts[at : at + part - size + 1] for at in range(max(1, len(text) - part + 1)))
    return sorted({max(window, key=ranks.__getitem__) for window in windows})


def unpack(text: str, start: int) -> tuple[int, str]:
    """Return the end of the compressed data that begins at a mark, and the text in it.

    The text is "" if there is no such data.
    """
    is_hex = text.startswith(_HEX_MARKS, start)
    match = (_HEX if is_hex else _BASE64).match(text, start, start + _MAX_PACKED)
    if match is None:
        return start, ""
    packed = match.group().translate(_CLEANED)
    try:
        if is_hex:
            data = bytes.fromhex(packed[: len(packed) // 2 * 2])
        else:
            data = base64.b64decode(packed[: len(packed) // 4 * 4] + _last_group(packed))
        return match.end(), _decompress(data).decode("latin-1")
    except (ValueError, zlib.error, OSError, EOFError, lzma.LZMAError):
        return start, ""


def _last_group(packed: str) -> str:
    """Return the incomplete last group of base64 text, padded."""
    group = packed[len(packed) // 4 * 4 :]
    return group + "=" * (4 - len(group)) if len(group) > 1 else ""


def _decompress(data: bytes) -> bytes:
    if data.startswith(b"BZh"):
        return bz2.BZ2Decompressor().decompress(data, _MAX_UNPACKED)
    if data.startswith(b"\xfd7zXZ"):
        return lzma.LZMADecompressor().decompress(data, _MAX_UNPACKED)
    if data.startswith(b"PK"):  # the first file of an archive, after its name and extra fields
        start = 30 + int.from_bytes(data[26:28], "little") + int.from_bytes(data[28:30], "little")
        return zlib.decompressobj(-15).decompress(data[start:], _MAX_UNPACKED)
    return zlib.decompressobj(47).decompress(data, _MAX_UNPACKED)
