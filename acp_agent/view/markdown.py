"""Markdown of a model as HTML that can do nothing: no markup of its own, no pictures, few links.

What a link may be: an address that begins with http:// or https://. Of every other one the page
shows the words and where it would have led.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

MARKDOWN_LIMIT = 50_000  # characters; a longer text is shown as it is written
BRACKETS_LIMIT = 2_000  # likewise: the library's time for them grows with their square

_WEB = re.compile(r"https?://[^/]", re.IGNORECASE)
_LEAST_HEADING = 3  # below those of the page itself
_REGION = 'tabindex="0"'  # of what may be wider than the page: so its keys scroll it


class _Renderer(RendererHTML):
    """Writes links, pictures, code and tables in a way of its own."""

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return super().fence(tokens, idx, options, env).replace("<pre>", f"<pre {_REGION}>", 1)

    def code_block(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return super().code_block(tokens, idx, options, env).replace("<pre>", f"<pre {_REGION}>", 1)

    def table_open(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, _env: EnvType
    ) -> str:
        return f'<div class="wide" {_REGION}>{self.renderToken(tokens, idx, options, _env)}'

    def table_close(self, *_: object) -> str:
        return "</table></div>\n"

    def link_open(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        address = str(tokens[idx].attrs.get("href", ""))
        if not _WEB.match(address):
            return '<span class="elsewhere">'
        tokens[idx].attrs = {"href": address, "rel": "noopener noreferrer", "target": "_blank"}
        return self.renderToken(tokens, idx, options, env)

    def link_close(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        opening = _opening(tokens, idx)
        address = str(tokens[opening].attrs.get("href", ""))
        if _WEB.match(address):
            return "</a>"
        words = "".join(token.content for token in tokens[opening:idx])
        return "</span>" if words == address else f"</span> ({escape(address)})"

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        words = self.renderInlineAsText(token.children or [], options, env)
        said = " ".join(part for part in (words, str(token.attrs.get("src", ""))) if part)
        return f'<span class="elsewhere">[{escape(said)}]</span>'


def _opening(tokens: Sequence[Token], closing: int) -> int:
    """Where the link began that ends there; no link is inside another (CommonMark, 6.3)."""
    return next(at for at in range(closing, -1, -1) if tokens[at].type == "link_open")


def _any_link(url: str) -> bool:  # noqa: ARG001 - the library's form
    return True


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    parser.enable(["table", "strikethrough"])
    # What is no address of the web is not made one (see `_Renderer`), so nothing is refused here.
    parser.validateLink = _any_link  # type: ignore[method-assign]  # as the library has it done
    return parser


@cache
def _spans() -> MarkdownIt:
    return MarkdownIt("zero", {"html": False}).enable("backticks")


def markdown(text: str) -> Markup:
    """A text as HTML. Its headings follow on each other without a gap, whatever marks they have."""
    if len(text) > MARKDOWN_LIMIT or text.count("[") > BRACKETS_LIMIT:
        return Markup('<pre class="text" tabindex="0">{}</pre>').format(text)
    parser = _parser()
    tokens = parser.parse(text)
    above: list[int] = []  # the levels of the headings that the last one is below
    for token in tokens:
        if token.level == 0 and token.nesting == 1:
            token.attrs["dir"] = "auto"  # each part goes the way of its own language
        if token.type == "heading_open":
            level = int(token.tag[1])
            above = [*(one for one in above if one < level), level]
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, _LEAST_HEADING + len(above) - 1)}"
        elif "style" in token.attrs:  # how a column is aligned; the page's policy allows no styles
            token.attrs = {"class": str(token.attrs["style"]).rpartition(":")[2]}
    # The renderer escapes all that comes from the text; a test feeds it what could get through.
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704


def code_spans(line: str) -> Markup:
    """A title: its words, with `code` as code and nothing else as Markdown."""
    return Markup(_spans().renderInline(line))  # noqa: S704 - as above
