"""Shorten long quoted texts of a command line before it is parsed.

The grammar's error recovery takes time quadratic in the number of tokens, so only short lines may
be parsed. Legitimate lines are long because of quoted texts: scripts and here-documents. Such a
text is replaced by a short placeholder. The syntax tree must then show every placeholder inside the
expected quotes, or the line is rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.permissions.shell.syntax import Command
from acp_agent.permissions.shell.words import TooComplexError, Word

if TYPE_CHECKING:
    from tree_sitter import Node


TOKEN_LIMIT = 1_200  # words and signs, about; error recovery then takes a quarter of a second
_MIN_LENGTH = 48  # shorter texts are not replaced
_SIGNS = frozenset("|&;<>(){}[]$`'\"\\*?~#!=,\n")
_ACTIVE = frozenset("$`\\")


class _Placeholder(Struct, frozen=True):
    """A replaced text, with its placeholder and the kind of quotes around it."""

    mark: str
    text: str
    kind: Literal["single", "double", "document"]
    delimiter: str = ""


class ShortenedLine(Struct, frozen=True):
    """A line in which placeholders replace long quoted texts."""

    text: str
    placeholders: tuple[_Placeholder, ...] = ()

    def check(self, root: Node) -> None:
        """Check that the tree has every placeholder where its text was found.

        Raises:
            TooComplexError: a placeholder is elsewhere, or the tree has errors.
        """
        if self.placeholders and root.has_error:
            raise TooComplexError
        raw = self.text.encode("utf-8", "replace")
        for placeholder in self.placeholders:
            start = raw.index(placeholder.mark.encode())
            node = root.descendant_for_byte_range(start, start + len(placeholder.mark))
            if node is None or not _is_in_quotes(node, placeholder):
                raise TooComplexError

    def restore(self, command: Command) -> Command:
        """Return the command with its placeholders replaced by the texts."""
        if not self.placeholders:
            return command
        return replace(
            command,
            words=tuple(self._word(word) for word in command.words),
            assignments=tuple(
                replace(each, value=self._word(each.value)) for each in command.assignments
            ),
            redirects=tuple(
                replace(each, target=self._word(each.target)) for each in command.redirects
            ),
            stdin=None if command.stdin is None else self._word(command.stdin),
        )

    def _word(self, word: Word) -> Word:
        text = word.text
        for placeholder in self.placeholders:
            text = text.replace(placeholder.mark, placeholder.text)
        return word if text == word.text else replace(word, text=text)


def shorten_line(text: str) -> ShortenedLine:
    """Return a line that is short enough to parse.

    Raises:
        TooComplexError: the line is too long even without its quoted texts.
    """
    if _tokens(text) <= TOKEN_LIMIT:
        return ShortenedLine(text)
    shortened_line = _Scanner(text).scan()
    if _tokens(shortened_line.text) > TOKEN_LIMIT:
        raise TooComplexError
    return shortened_line


def _tokens(text: str) -> int:
    return len(text.split()) + sum(character in _SIGNS for character in text)


def _is_in_quotes(node: Node, placeholder: _Placeholder) -> bool:
    if placeholder.kind == "single":
        return node.type == "raw_string" and len(node.text or b"") == len(placeholder.mark) + 2
    if placeholder.kind == "double":
        return node.type == "string_content" and len(node.text or b"") == len(placeholder.mark)
    while node.type != "heredoc_redirect":
        if node.type not in {"heredoc_body", "heredoc_content"} or node.parent is None:
            return False
        node = node.parent
    starts = [child for child in node.children if child.type == "heredoc_start"]
    return len(starts) == 1 and (starts[0].text or b"").decode() == placeholder.delimiter


class _Scanner:
    """Finds the quoted texts of a line, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.out: list[str] = []
        self.placeholders: list[_Placeholder] = []
        self.pending: list[tuple[str, bool]] = []  # delimiters; whether tabs are removed

    def scan(self) -> ShortenedLine:
        """Scan the whole line and return it shortened."""
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == "\\":
                self._copy(2)
            elif character in "'\"":
                self._quoted(character)
            elif (
                self.text.startswith("<<", self.at) and self.text[self.at + 2 : self.at + 3] != "<"
            ):
                self._delimiter()
            elif character == "\n":
                self._copy(1)
                self._documents()
            else:
                self._copy(3 if self.text.startswith("<<<", self.at) else 1)
        return ShortenedLine("".join(self.out), tuple(self.placeholders))

    def _copy(self, count: int) -> None:
        self.out.append(self.text[self.at : self.at + count])
        self.at += count

    def _replace(
        self, text: str, kind: Literal["single", "double", "document"], delimiter: str = ""
    ) -> str:
        mark = f"held{len(self.placeholders):04d}text"
        if len(text) <= _MIN_LENGTH or (kind != "single" and _is_active(text, delimiter)):
            return text
        if mark in self.text:
            raise TooComplexError
        self.placeholders.append(_Placeholder(mark, text, kind, delimiter))
        return mark

    def _quoted(self, mark: str) -> None:
        end = self.text.find(mark, self.at + 1)
        inside = self.text[self.at + 1 : end]
        if end < 0 or (mark == '"' and _is_active(inside, "")):
            self._copy(1)  # its content is scanned as if there were no quote
            return
        kind: Literal["single", "double"] = "single" if mark == "'" else "double"
        self.out += [mark, self._replace(inside, kind), mark]
        self.at = end + 1

    def _delimiter(self) -> None:
        start = self.at
        self._copy(2)
        tabs = self.text.startswith("-", self.at)
        end = self.at + tabs
        while end < len(self.text) and self.text[end] in " \t":
            end += 1
        word_start = end
        while end < len(self.text) and self.text[end] not in " \t\n;|&<>()":
            end += 1
        self.pending.append((self.text[word_start:end], tabs))
        self._copy(end - start - 2)

    def _documents(self) -> None:
        """Copy or replace the here-documents that begin on this new line."""
        pending, self.pending = self.pending, []
        for delimiter, tabs in pending:
            name = delimiter.translate({ord(mark): None for mark in "'\"\\"})
            body: list[str] = []
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                if (line.lstrip("\t") if tabs else line) == name:
                    break
                body.append(self.text[self.at : end + 1])
                self.at = end + 1
            text = "".join(body)
            if text.endswith("\n"):
                self.out += [self._replace(text[:-1], "document", delimiter), "\n"]
            else:
                self.out.append(text)


def _is_active(text: str, delimiter: str) -> bool:
    """Return whether the shell would expand anything in a double-quoted text or a here-document."""
    return not set(delimiter) & set("'\"\\") and bool(_ACTIVE & set(text))
