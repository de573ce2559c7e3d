"""Render Markdown and source code in colour.

Imported with the first response, because importing rich is slow. Uses the terminal's palette,
which suits light and dark backgrounds. Added and removed lines are green and red, so code tokens
use neither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text

_TOKENS = ANSISyntaxTheme(
    {
        ("Comment",): Style(dim=True, italic=True),
        ("Keyword",): Style(color="magenta"),
        ("Keyword", "Type"): Style(color="cyan"),
        ("Literal", "Number"): Style(color="cyan"),
        ("Literal", "String"): Style(color="yellow"),
        ("Name", "Builtin"): Style(color="cyan"),
        ("Name", "Class"): Style(color="blue", bold=True),
        ("Name", "Function"): Style(color="blue", bold=True),
        ("Name", "Tag"): Style(color="magenta"),
    }
)


def highlight_code(code: str, path: str) -> list[Text]:
    """Return the lines of a piece of a file, coloured by its language; plain if unknown."""
    syntax = Syntax("", Syntax.guess_lexer(path, code), theme=_TOKENS)
    return list(syntax.highlight(code).split("\n", allow_blank=True))


class _Heading(Heading):
    """A left-aligned heading."""

    LEVEL_ALIGN: ClassVar = dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "left")


class _CodeBlock(CodeBlock):
    """A code block, indented by two columns, on the terminal's own background."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip("\n")
        content: Text | Syntax = Text(code)
        if console.color_system is not None and not console.no_color:
            content = Syntax(code, self.lexer_name, theme=_TOKENS, word_wrap=True)
        yield Padding(content, (0, 0, 0, 2))


class SafeMarkdown(Markdown):
    """Markdown in which HTML is shown as text, and images as links."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
    }

    def __init__(self, text: str, escape: Callable[[str], str]) -> None:
        super().__init__("", hyperlinks=False)
        parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
        self.markup = text
        self.parsed = parser.disable("image").parse(escape(text))
        _escape_tokens(self.parsed, escape)


def _escape_tokens(tokens: Sequence[Token], escape: Callable[[str], str]) -> None:
    """Escape characters that come from entities, such as `&#x202e;`."""
    for token in tokens:
        token.content = escape(token.content)
        token.attrs = {
            name: escape(value) if isinstance(value, str) else value
            for name, value in token.attrs.items()
        }
        _escape_tokens(token.children or (), escape)
