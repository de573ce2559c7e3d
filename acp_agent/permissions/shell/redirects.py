"""Read redirections: files, here-strings and here-documents."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from msgspec import Struct

from acp_agent.permissions.shell.expansion import Expander
from acp_agent.permissions.shell.syntax import Redirect
from acp_agent.permissions.shell.words import Word

if TYPE_CHECKING:
    from tree_sitter import Node

# A line with one here-document, its text, and the lines after it.
_DOCUMENT = re.compile(
    r"""(?:(?!<<|[$<>]\(|[`\\]).)*<<(?P<tabs>-?)[ ]?(?P<quote>['"]?)(?P<name>[A-Za-z_]\w*)(?P=quote)
    (?P<line>[ |>&;][^$`\\()\n#<]*)?\n
    (?P<text>(?:.*\n)*?)(?(tabs)\t*)(?P<end>(?P=name))(?:\n(?:(?!<<).)*)?""",
    re.ASCII | re.DOTALL | re.VERBOSE,
)


class Attached(Struct, frozen=True, kw_only=True):
    """The parts of a command that follow its words.

    `words` are further arguments (`rm > log -rf x`); `following` are the statements between the
    mark of a here-document and its text (`cat <<END | sh`).
    """

    redirects: tuple[Redirect, ...] = ()
    words: tuple[Word, ...] = ()
    stdin: Word | None = None
    following: tuple[Node, ...] = ()

    def combine(self, later: Attached) -> Attached:
        """Return both combined; the later input takes precedence."""
        return Attached(
            redirects=self.redirects + later.redirects,
            words=self.words + later.words,
            stdin=later.stdin or self.stdin,
            following=self.following + later.following,
        )


def read_redirect(node: Node, expander: Expander) -> Attached:
    """Read a `file_redirect`, `herestring_redirect` or `heredoc_redirect`."""
    if node.type == "file_redirect":
        return _read_file_redirect(node, expander)
    if node.type == "herestring_redirect":
        texts = [expander.single_word(child) for child in node.named_children]
        return Attached(stdin=texts[-1] if texts else Word(""), words=tuple(texts[:-1]))
    return _read_document(node, expander)


def _read_file_redirect(node: Node, expander: Expander) -> Attached:
    operator = next((child.type for child in node.children if not child.is_named), "<")
    words: list[Word] = []
    for child in node.children:
        if child.is_named and child.type != "file_descriptor":
            words += expander.words(child)
    target = words[0] if words else Word("", static=False)
    return Attached(redirects=(Redirect(operator, target),), words=tuple(words[1:]))


def _read_document(node: Node, expander: Expander) -> Attached:
    start = ""
    attached = Attached(stdin=Word(""))
    for child in node.children:
        if child.type == "heredoc_start":
            start = expander.source(child)
        elif child.is_named and expander.source(child).startswith("\n"):
            # In a text that begins with a backslash, the grammar reads the first line as arguments.
            end = next((c for c in node.children if c.type == "heredoc_end"), node)
            last = end.start_byte if end != node else node.end_byte
            body = expander.between(child.start_byte + 1, last)
            return attached.combine(Attached(stdin=Word(body, not set(body) & set("$`"))))
        elif child.type == "heredoc_body":
            quoted = any(mark in start for mark in "'\"\\")
            text = Word(expander.source(child)) if quoted else expander.document(child)
            attached = attached.combine(Attached(stdin=text))
        elif child.type.endswith("redirect"):
            attached = attached.combine(read_redirect(child, expander))
        elif child.type in {"word", "string", "raw_string", "concatenation", "simple_expansion"}:
            attached = attached.combine(Attached(words=tuple(expander.words(child))))
        elif child.is_named and child.type != "heredoc_end":
            attached = attached.combine(Attached(following=(child,)))
    return attached


def is_quoted_document(document: Node) -> bool:
    """Return whether a here-document's delimiter is quoted, so that nothing in it is expanded."""
    start = next((child for child in document.children if child.type == "heredoc_start"), None)
    return start is not None and bool(set(b"'\"\\") & set(start.text or b""))


def is_certain_input(node: Node, expander: Expander) -> bool:
    """Return whether a here-string or here-document has the same end for every shell.

    A document must be the only one of the text, outside substitutions, and free of expansions.
    """
    if node.type == "herestring_redirect":
        return len(node.named_children) == 1
    raw = expander.between(0, len(expander.raw))
    match = None if expander.shortened else _DOCUMENT.fullmatch(raw)
    end = next((child for child in node.children if child.type == "heredoc_end"), None)
    if match is None or end is None or node.has_error:
        return False
    if end.end_byte != len(raw[: match.end("end")].encode("utf-8", "replace")):
        return False
    if match["name"] in (line.lstrip("\t") for line in match["text"].split("\n")):
        return False
    try:
        shlex.split(match["line"] or "")
    except ValueError:
        return False
    return bool(match["quote"]) or not set(match["text"]) & set("$`\\")
