"""Redirections of the syntax tree, and words that the grammar counts to them by mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from acp_agent.permissions.expansion import Expander
from acp_agent.permissions.shell_syntax import Redirect
from acp_agent.permissions.words import Word

if TYPE_CHECKING:
    from tree_sitter import Node


class Attached(Struct, frozen=True, kw_only=True):
    """What hangs on a command behind its words.

    `words` are further arguments (`rm > log -rf x`), `following` the statements that stand between
    a here-document's mark and its text (`cat <<END | sh`).
    """

    redirects: tuple[Redirect, ...] = ()
    words: tuple[Word, ...] = ()
    stdin: Word | None = None
    following: tuple[Node, ...] = ()

    def and_also(self, other: Attached) -> Attached:
        """Both together; the later input counts."""
        return Attached(
            redirects=self.redirects + other.redirects,
            words=self.words + other.words,
            stdin=other.stdin or self.stdin,
            following=self.following + other.following,
        )


def read_redirect(node: Node, expander: Expander) -> Attached:
    """Read a `file_redirect`, `herestring_redirect` or `heredoc_redirect`."""
    if node.type == "file_redirect":
        return _file(node, expander)
    if node.type == "herestring_redirect":
        texts = [expander.one(child) for child in node.named_children]
        return Attached(stdin=texts[-1] if texts else Word(""), words=tuple(texts[:-1]))
    return _document(node, expander)


def _file(node: Node, expander: Expander) -> Attached:
    operator = next((child.type for child in node.children if not child.is_named), "<")
    words: list[Word] = []
    for child in node.children:
        if child.is_named and child.type != "file_descriptor":
            words += expander.words(child)
    target = words[0] if words else Word("", static=False)
    return Attached(redirects=(Redirect(operator, target),), words=tuple(words[1:]))


def _document(node: Node, expander: Expander) -> Attached:
    start = ""
    attached = Attached(stdin=Word(""))
    for child in node.children:
        if child.type == "heredoc_start":
            start = expander.source(child)
        elif child.is_named and expander.source(child).startswith("\n"):
            # A text that begins with a backslash: the grammar takes its first line for arguments.
            end = next((c for c in node.children if c.type == "heredoc_end"), node)
            last = end.start_byte if end != node else node.end_byte
            body = expander.between(child.start_byte + 1, last)
            return attached.and_also(Attached(stdin=Word(body, not set(body) & set("$`"))))
        elif child.type == "heredoc_body":
            quoted = any(mark in start for mark in "'\"\\")
            text = Word(expander.source(child)) if quoted else expander.document(child)
            attached = attached.and_also(Attached(stdin=text))
        elif child.type.endswith("redirect"):
            attached = attached.and_also(read_redirect(child, expander))
        elif child.type in {"word", "string", "raw_string", "concatenation", "simple_expansion"}:
            attached = attached.and_also(Attached(words=tuple(expander.words(child))))
        elif child.is_named and child.type != "heredoc_end":
            attached = attached.and_also(Attached(following=(child,)))
    return attached
