"""The grammar of the shell's language, and what must be done to a text before it may see it."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Node

_ASCII_ONLY = b"%%" + bytes(range(2, 128)) + b"%" * 128  # UNKNOWN and NONEMPTY are letters too


@cache
def _language() -> Language:
    import tree_sitter_bash  # noqa: PLC0415 - only the first command of a session needs it
    from tree_sitter import Language  # noqa: PLC0415 - likewise

    return Language(tree_sitter_bash.language())


def parse(raw: bytes) -> Node:
    """The root of the syntax tree of UTF-8 text. Its offsets are those of `raw`, its texts are not.

    The grammar's scanner looks characters up in C tables that end at 255, whatever they are, so it
    is shown ASCII only; to the shell all else is a letter like any other.
    """
    from tree_sitter import Parser  # noqa: PLC0415 - likewise

    # A parser is for one thread: commands are judged side by side.
    return Parser(_language()).parse(_tame(raw.translate(_ASCII_ONLY))).root_node


def is_odd(character: str) -> bool:
    """Whether the shell and the grammar may take a character for different things."""
    if character.isascii():
        return not character.isprintable() and character not in "\n\t"
    return character.isspace() or unicodedata.category(character) in {"Cf", "Cc", "Cs", "Co"}


def _tame(raw: bytes) -> bytes:
    """A text of the same length in which no line begins with a backslash before a plain character.

    The grammar takes such a line for a part of the one before it. What stands there is read from
    the text itself.
    """
    at = raw.find(b"\\")
    if at < 0:
        return raw
    tamed = bytearray(raw)
    while at >= 0:
        before = raw[:at].rstrip(b" \t")
        if before.endswith(b"\n") and raw[at + 1 : at + 2].isalnum():
            tamed[at] = ord("%")
        at = raw.find(b"\\", at + 1)
    return bytes(tamed)
