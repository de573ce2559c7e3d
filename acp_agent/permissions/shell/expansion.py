"""Expand a word of the syntax tree into the words that the command most likely receives.

Variables that the line itself sets are followed; others are unknown, except HOME, PWD and IFS.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from acp_agent.permissions.shell.syntax import document_text
from acp_agent.permissions.shell.words import (
    EXPANDED,
    LISTED,
    LITERAL,
    MATCHED,
    NONEMPTY,
    QUOTED,
    UNKNOWN,
    Origin,
    Piece,
    Word,
    decode_ansi_c,
    to_words,
    unescape,
    unescape_quoted,
)

if TYPE_CHECKING:
    from tree_sitter import Node


_LITERALS = frozenset(
    {
        "word", "number", "variable_name", "special_variable_name", "test_operator",
        "file_descriptor", "brace_expression", "heredoc_content",
    }
)  # fmt: skip
_EXPANSIONS = frozenset(
    {
        "simple_expansion",
        "expansion",
        "arithmetic_expansion",
        "command_substitution",
        "process_substitution",
    }
)
_NUMBERS = frozenset("?#$!")  # special parameters whose value is always a number
_FALLBACKS = frozenset({":-", "-", ":=", "="})
_TRIMS = frozenset({"%", "%%", "#", "##"})
_TRIM_LIMIT = 256  # longest value that is trimmed, because every position is tried


class Expander:
    """Expands words.

    `public` are variables of the environment with values that may be shown. `substituted` returns
    what a command substitution prints, as far as it is known, and its origin. The parser keeps
    these attributes up to date: `raw`, the text of the current tree; `shortened`, true if long
    texts in it are replaced; `variables`, the known values; and `origins`, the origins of those
    that are certain.
    """

    def __init__(
        self,
        *,
        home: str,
        cwd: str,
        public: frozenset[str],
        substituted: Callable[[Node], tuple[str, Origin]],
    ) -> None:
        self._public = public
        self.raw = b""
        self.shortened = False
        self.home = home
        self.cwd = cwd
        self.variables: dict[str, str] = {"HOME": home, "PWD": cwd, "IFS": " "}
        self.origins: dict[str, Origin] = dict.fromkeys(public, "output")
        self.origins |= {"PWD": "folder"}
        self._substituted = substituted

    def source(self, node: Node) -> str:
        """Return the text of a node as written."""
        return self.between(node.start_byte, node.end_byte)

    def between(self, start: int, end: int) -> str:
        """Return the text between two byte offsets."""
        return self.raw[start : max(start, end)].decode("utf-8", "replace")

    def words(self, node: Node) -> list[Word]:
        """Return the words that the shell makes of one written word. Raises TooComplexError."""
        return to_words(self.piece(node), home=self.home, cwd=self.cwd)

    def to_words(self, piece: Piece) -> list[Word]:
        """Return the words that the shell makes of a piece."""
        return to_words(piece, home=self.home, cwd=self.cwd)

    def after_dollar(self, before: Piece, piece: Piece) -> Piece:
        """Return `piece` with the name expanded that belongs to a `$` at the end of `before`."""
        if not before.text.endswith("$") or before.kinds[-1] != LITERAL:
            return piece
        if piece.kinds[:1] == QUOTED:  # `$"…"`, which a translation may replace
            before.text, before.kinds = before.text[:-1], before.kinds[:-1]
            return Piece(piece.text, piece.kinds, static=False, quoted=True)
        name = piece.text
        while name and not name.isidentifier():
            name = name[:-1]
        before.text, before.kinds = before.text[:-1], before.kinds[:-1]
        value, *_ = self._parameter(name)
        expanded = Piece()
        expanded.add(value, EXPANDED, static=False, origin="")
        expanded.join(Piece(piece.text[len(name) :], piece.kinds[len(name) :], piece.static))
        return expanded

    def uncertain_words(self, text: str) -> list[Word]:
        """Return the words that unquoted text expands to; none of them is certain."""
        piece = Piece(text, LITERAL * len(text), static=False)
        return to_words(piece, home=self.home, cwd=self.cwd)

    def single_word(self, node: Node) -> Word:
        """Return one word: the value of an assignment, or the text of a here-string."""
        words = self.words(node)
        if len(words) == 1:
            return words[0]
        origins = {word.origin for word in words}
        origin: Origin = "unquoted" if origins & LISTED else ""
        if origins == {"revision"}:
            origin = "revision"
        static = all(word.static for word in words)
        return Word(" ".join(word.text for word in words), static, origin=origin)

    def assigned_word(self, node: Node) -> Word:
        """Return the value of an assignment; fields are not split and braces are not expanded."""
        word = self.single_word(node)
        raw = self.source(node)
        origin: Origin = "exact" if word.static else word.origin
        if {"{", "~"} & set(raw.replace("${", "")) or node.type == "array":
            origin = ""
        as_quoted: dict[Origin, Origin] = {"unquoted": "output", "split": "match"}
        as_quoted |= dict.fromkeys(LISTED, "output")
        return Word(word.text, word.static, word.pattern, as_quoted.get(origin, origin))

    def piece(self, node: Node) -> Piece:
        """Return the characters of a written word."""
        kind = node.type
        raw = self.source(node)
        piece = Piece()
        if kind == "raw_string":
            piece.add(raw[1:-1], QUOTED)
        elif kind == "ansi_c_string":
            piece.add(decode_ansi_c(raw[2:-1]), QUOTED)
        elif kind == "string":
            self._add_quoted(node, piece, node.start_byte + 1, node.end_byte - 1)
        elif kind in {"concatenation", "command_name", "translated_string"}:
            at = node.start_byte
            for child in node.children:
                if kind == "translated_string" and child.type == "$":
                    continue
                gap = self.between(at, child.start_byte)
                if gap and kind != "translated_string":
                    piece.join(unescape(gap))
                piece.join(self.piece(child))
                at = child.end_byte
        elif kind in _EXPANSIONS:
            text, static, origin = self.expansion(node)
            unquoted: dict[Origin, Origin] = {"output": "unquoted", "match": "split"}
            one_word = kind == "arithmetic_expansion" or raw.strip("${}") in self._public
            if not one_word:
                origin = unquoted.get(origin, origin)
            piece.add(self._split(text), EXPANDED, static=static, origin=origin)
        elif kind in _LITERALS or not node.is_named:
            piece.join(unescape(raw))
        else:
            piece.add(raw, LITERAL, static=False, origin="")
        return piece

    def _split(self, text: str) -> str:
        """Return the text of an unquoted expansion, with blanks where IFS splits it.

        The unsplit text is appended, because the value of IFS may apply only in a subshell, a
        function or one command. Unknown parts do not become blanks.
        """
        separators = {character for character in self.variables["IFS"] if not character.isspace()}
        blanks = dict.fromkeys(map(ord, separators - {UNKNOWN, NONEMPTY}), " ")
        split = text.translate(blanks)
        return text if split == text else f"{split} {text}"

    def _add_quoted(self, node: Node, piece: Piece, start: int, end: int) -> None:
        """Add the text in double quotes from byte `start` to `end`, with expansions replaced."""
        at = start
        for child in node.children:
            if child.type not in _EXPANSIONS:
                continue
            # The grammar includes blanks before a substitution in its node.
            raw = self.source(child)
            child_start = child.start_byte + len(raw) - len(raw.lstrip())
            piece.add(unescape_quoted(self.between(at, child_start)), QUOTED)
            text, static, origin = self.expansion(child)
            if child.type == "command_substitution" and origin in LISTED:
                origin = "output"  # all names in one word
            # "$@" expands to one word per argument, even in quotes.
            expands_arguments = raw.lstrip() in {"$@", "${@}"} or raw.endswith("[@]}")
            kind = MATCHED if origin == "match" else QUOTED
            piece.add(
                text,
                EXPANDED if expands_arguments else kind,
                static=static,
                origin="" if expands_arguments else origin,
            )
            at = child.end_byte
        piece.add(unescape_quoted(self.between(at, end)), QUOTED)

    def quoted_document(self, node: Node) -> str | None:
        """Return what a substitution in double quotes prints if that is a quoted here-document."""
        quoted = node.parent is not None and node.parent.type == "string"
        if self.shortened or not quoted or node.type != "command_substitution":
            return None
        source = self.source(node).lstrip()
        if "<<" not in source:
            return None
        following = self.between(node.end_byte, len(self.raw))
        return document_text(source, following.removeprefix('"'))

    def document(self, body: Node) -> Word:
        """Return the text of a here-document in which the shell expands."""
        piece = Piece()
        self._add_quoted(body, piece, body.start_byte, body.end_byte)
        return Word(piece.text, piece.static)

    def expansion(self, node: Node) -> tuple[str, bool, Origin]:
        """Return the value of an expansion, whether it is certain, and its origin."""
        if node.type == "command_substitution":
            text = self.quoted_document(node)
            if text is not None:
                return text, True, "exact"
            printed, origin = self._substituted(node)
            return printed, False, origin
        if node.type == "simple_expansion":
            return self._parameter(self.source(node).lstrip()[1:])
        if node.type == "expansion":
            return self._braced(node)
        return UNKNOWN, False, "pipe" if node.type == "process_substitution" else "output"

    def _parameter(self, name: str) -> tuple[str, bool, Origin]:
        if name in _NUMBERS:
            return "0", True, "exact"
        return self.variables.get(name, UNKNOWN), False, self.origins.get(name, "")

    def _braced(self, node: Node) -> tuple[str, bool, Origin]:
        name = ""
        operator = ""
        operands: list[Node] = []
        for child in node.children[1:-1]:
            if not name and child.type in {"variable_name", "special_variable_name", "subscript"}:
                name = self.source(child).partition("[")[0]
            elif not child.is_named and not operands and not operator:
                operator = self.source(child)
            else:
                operands.append(child)
        value = self.variables.get(name)
        if operator == "!" and value is not None:
            value = self.variables.get(value)
        if operator in {":+", "+"} or (operator in _FALLBACKS and not value):
            text = Piece()
            for child in operands:
                text.join(self.piece(child))
            if operator in {":=", "="}:
                self.variables[name] = text.text
            return text.text, False, ""
        if operator in {":?", "?"} and not value:
            return NONEMPTY, False, ""
        if not operator and not operands and self.source(node).lstrip() == f"${{{name}}}":
            return self._parameter(name)
        if value and operator in _TRIMS and operands:
            if len(value) > _TRIM_LIMIT:
                return UNKNOWN, False, ""
            return _trim(value, operator, "".join(map(self.source, operands))), False, ""
        if operator == "#" and not operands and self.source(node).lstrip().startswith("${#"):
            return "0", True, "exact"
        return (UNKNOWN if value is None else value), False, ""


def _trim(value: str, operator: str, pattern: str) -> str:
    """Return a value trimmed as in `${name%pattern}`, `%%`, `#` and `##`.

    The pattern is used as written; if the shell would see another one, nothing may be trimmed.
    """
    ends = operator[0] == "%"
    cuts = range(len(value) + 1)
    for at in reversed(cuts) if ends == (len(operator) == 1) else cuts:
        if fnmatchcase(value[at:] if ends else value[:at], pattern):
            return value[:at] if ends else value[at:]
    return value
