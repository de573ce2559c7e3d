"""Render a page as one HTML file, with style, script and pictures; it fetches nothing.

The security policy of the page (CSP level 3) allows one style and one script, by their hashes, and
pictures from `data:` addresses. The template engine escapes all text except Markdown, which
`markdown` makes safe.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from functools import cache
from importlib.resources import files as package_files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

from acp_agent.config.amounts import format_decimal
from acp_agent.config.localization import Language
from acp_agent.platform.data_tables import read_table
from acp_agent.view.page import Page, all_steps

_OPEN_LINES = 40  # changes of up to so many lines are shown unfolded
_OPEN_CALLS = 400  # a page with more calls shows all of them folded
MARKDOWN_LIMIT = 50_000  # characters; a longer text is shown verbatim
BRACKETS_LIMIT = 2_000  # likewise: the library's time for brackets grows quadratically
_WEB = re.compile(r"https?://[^/]", re.IGNORECASE)
_MIN_HEADING = 3  # lower levels are the page's own headings
_REGION = 'tabindex="0"'  # for elements that may be wider than the page, so that keys scroll them


def render(page: Page, *, language: Language, zone: tzinfo | None = None) -> Iterator[str]:
    """Yield the pieces of the file.

    Args:
        zone: the time zone of clocks; None: that of the system.
    """
    say = PageWords(language, zone)
    steps = (step for section in page.sections for step in all_steps(section.steps))
    calls = sum(step.kind == "call" for step in steps)
    yield from (
        _environment()
        .get_template("page.html")
        .generate(
            page=page,
            say=say,
            open_lines=_OPEN_LINES if calls <= _OPEN_CALLS else -1,
            calls=calls,
            style=Markup(_file("page.css")),  # noqa: S704 - our own
            script=Markup(_file("page.js")),  # noqa: S704 - our own
            policy=policy(),
        )
    )


def policy() -> str:
    """Return the security policy of the page."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'sha256-{_hash('page.js')}'",
            f"style-src 'sha256-{_hash('page.css')}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        )
    )


def _hash(name: str) -> str:
    return base64.b64encode(hashlib.sha256(_file(name).encode()).digest()).decode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_file),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "markdown": markdown,
        "code_spans": code_spans,
        "iso": iso,
        "count": count,
        "bytes": size,
    }
    return environment


@cache
def _file(name: str) -> str:
    return (package_files(__package__) / name).read_text("utf-8")


class _Renderer(RendererHTML):
    """Renders links, pictures, code and tables for the page."""

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
        opening = next(at for at in range(idx, -1, -1) if tokens[at].type == "link_open")
        address = str(tokens[opening].attrs.get("href", ""))
        if _WEB.match(address):
            return "</a>"
        words = "".join(token.content for token in tokens[opening:idx])
        return "</span>" if words == address else f"</span> ({escape(address)})"

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        words = self.renderInlineAsText(token.children or [], options, env)
        label = " ".join(part for part in (words, str(token.attrs.get("src", ""))) if part)
        return f'<span class="elsewhere">[{escape(label)}]</span>'


def _any_link(url: str) -> bool:  # noqa: ARG001 - the library's signature
    return True


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    parser.enable(["table", "strikethrough"])
    # Refuse no link here: `_Renderer` only makes links of web addresses.
    parser.validateLink = _any_link  # type: ignore[method-assign]  # the documented way
    return parser


@cache
def _spans() -> MarkdownIt:
    return MarkdownIt("zero", {"html": False}).enable("backticks")


def markdown(text: str) -> Markup:
    """Return a text as HTML. Its headings have levels without gaps, whatever levels they had."""
    if len(text) > MARKDOWN_LIMIT or text.count("[") > BRACKETS_LIMIT:
        return Markup('<pre class="text" tabindex="0">{}</pre>').format(text)
    parser = _parser()
    tokens = parser.parse(text)
    levels: list[int] = []  # the levels of the enclosing headings
    for token in tokens:
        if token.level == 0 and token.nesting == 1:
            token.attrs["dir"] = "auto"  # each block has the direction of its language
        if token.type == "heading_open":
            level = int(token.tag[1])
            levels = [*(outer for outer in levels if outer < level), level]
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, _MIN_HEADING + len(levels) - 1)}"
        elif "style" in token.attrs:  # column alignment; the page's policy allows no inline styles
            token.attrs = {"class": str(token.attrs["style"]).rpartition(":")[2]}
    # The renderer escapes all of the text; a test tries to inject markup.
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704


def code_spans(line: str) -> Markup:
    """Return a title with `code` spans as code and no other Markdown."""
    return Markup(_spans().renderInline(line))  # noqa: S704 - as above


class PageWords:
    """The texts of a language, and its formats of numbers, times and durations."""

    def __init__(self, language: Language, zone: tzinfo | None) -> None:
        """Create the words; `zone` is the time zone of clocks, None: that of the system."""
        self.language = language
        self._texts = _texts()[language]
        self._zone = zone

    def __call__(self, key: str, **values: object) -> str:
        """Return the text of a key, with its placeholders filled in."""
        text = self._texts[key]
        return text.format(**values) if values else text

    def clock(self, at: int) -> str:
        """Return the time of day."""
        return self._local(at).strftime("%H:%M:%S")

    def date(self, at: int) -> str:
        """Return day and time."""
        return self._local(at).strftime("%Y-%m-%d %H:%M")

    def took(self, milliseconds: int) -> str:
        """Return a duration with reasonable precision."""
        if milliseconds < 1_000:
            return f"{milliseconds} ms"
        seconds = milliseconds / 1_000
        if seconds < 60:
            return f"{seconds:.1f} s"
        minutes, remaining_seconds = divmod(round(seconds), 60)
        if minutes < 60:
            return f"{minutes} min {remaining_seconds} s"
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes} min"

    def money(self, dollars: float, unpriced: int = 0) -> str:
        """Return US dollars, with `+?` if some prices are unknown."""
        amount = f"${format_decimal(dollars, 2 if dollars >= 1 else 4)}"
        if not unpriced:
            return amount
        return f"{amount} +?" if dollars else "?"

    def _local(self, at: int) -> datetime:
        return datetime.fromtimestamp(at / 1000, UTC).astimezone(self._zone)


def iso(at: int) -> str:
    """Return a time in RFC 3339 format, for machines."""
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def count(number: float) -> str:
    """Return a short number for people."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def size(number: int) -> str:
    """Return a number of bytes with a unit."""
    return f"{number / 1e6:.1f} MB" if number >= 1e6 else f"{number / 1e3:.1f} kB"


@cache
def _texts() -> dict[Language, dict[str, str]]:
    return read_table(__package__, "texts.toml", dict[Language, dict[str, str]])
