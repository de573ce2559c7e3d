"""Parse the text of a shell command line with tree-sitter-bash, imported at the first use."""

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
    """Return the root of the syntax tree of UTF-8 text; offsets match `raw`, node texts may not.

    The grammar's scanner looks up every character in C tables of 256 entries, so it receives only
    ASCII; to the shell every other character is an ordinary letter.
    """
    from tree_sitter import Parser  # noqa: PLC0415 - likewise

    # A parser belongs to one thread, and commands are judged concurrently.
    return Parser(_language()).parse(_mask_escapes(raw.translate(_ASCII_ONLY))).root_node


def is_ambiguous(character: str) -> bool:
    """Return whether the shell and the grammar may interpret a character differently."""
    if character.isascii():
        return not character.isprintable() and character not in "\n\t"
    return character.isspace() or unicodedata.category(character) in {"Cf", "Cc", "Cs", "Co"}


def _mask_escapes(raw: bytes) -> bytes:
    """Return a text of equal length in which no line begins with an escaped letter or digit.

    The grammar joins such a line to the previous one. The walker reads the original text at the
    same offsets.
    """
    at = raw.find(b"\\")
    if at < 0:
        return raw
    masked = bytearray(raw)
    while at >= 0:
        before = raw[:at].rstrip(b" \t")
        if before.endswith(b"\n") and raw[at + 1 : at + 2].isalnum():
            masked[at] = ord("%")
        at = raw.find(b"\\", at + 1)
    return bytes(masked)
