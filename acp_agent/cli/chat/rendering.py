"""Render texts as terminal lines, which contain only escape codes made here."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from typing import Literal

from rich.console import Console, RenderableType
from rich.text import Text
from rich.theme import Theme

from acp_agent.cli.output import terminal_text

ColourSystem = Literal["standard", "256", "truecolor"]
# Characters that join or modify emoji (Unicode Technical Standard 51), and the letters that form
# flags in pairs. Terminals disagree on the width of the result, but not of single characters.
_EMOJI_MODIFIERS = re.compile(
    "(?<=[\u2190-\u2bff\U0001f000-\U0001faff])[\u200d\ufe0f\U0001f3fb-\U0001f3ff]+"
)
_FLAG_LETTERS = {0x1F1E6 + index: chr(0xFF21 + index) for index in range(26)}
_CODES = re.compile(r"\x1b\[[0-9;]*m")
MAX_FORMATTED_LENGTH = 20_000  # characters; longer texts are shown without formatting

# Only colours of the terminal's own palette, which suit light and dark backgrounds.
_THEME = Theme(
    {
        "markdown.paragraph": "none",
        "markdown.item": "none",
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.h1": "bold underline",
        "markdown.h2": "bold underline",
        "markdown.h3": "bold",
        "markdown.h4": "bold",
        "markdown.h5": "italic bold",
        "markdown.h6": "italic",
        "markdown.block_quote": "italic",
        "markdown.hr": "dim",
        "markdown.item.bullet": "dim",
        "markdown.item.number": "dim",
        "markdown.link": "underline",
        "markdown.link_url": "dim",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
        "thought": "dim italic",
        "call": "cyan",
        "good": "green",
        "bad": "red",
        "warning": "yellow",
        "added": "green",
        "removed": "red",
        "user": "bold",
    }
)


def _fixed_width(text: str) -> str:
    """Return `text` escaped and without characters whose width depends on the terminal."""
    return _EMOJI_MODIFIERS.sub("", terminal_text(text)).translate(_FLAG_LETTERS)


class Renderer:
    """Renders text and Markdown as lines for one terminal.

    Args:
        colours: the terminal's colour system; None for no escape codes at all.
        monochrome: whether to use only bold and dim.
        unicode: whether the terminal shows more than ASCII.
    """

    def __init__(
        self, colours: ColourSystem | None, *, monochrome: bool = False, unicode: bool = True
    ) -> None:
        self._colours = colours
        self._monochrome = monochrome
        self._coloured = colours is not None and not monochrome
        self.unicode = unicode
        self._cached_console: Console | None = None
        self._console_width = 0

    def markdown(self, text: str, width: int) -> list[str]:
        """Return the lines of a Markdown text; a large one is not formatted."""
        if len(text) > MAX_FORMATTED_LENGTH:
            return self.text(text, width)
        from acp_agent.cli.chat.markup import SafeMarkdown  # noqa: PLC0415 - with the first answer

        try:
            return _strip_margins(self._render(SafeMarkdown(text, _fixed_width), width))
        except Exception:  # noqa: BLE001 - rich has faults
            return self.text(text, width)

    def text(self, text: str, width: int, style: str = "") -> list[str]:
        """Return the lines of a text, wrapped at words."""
        return self._render(Text(_fixed_width(text), style), width)

    def spans(self, spans: Iterable[tuple[str, str]], width: int) -> list[str]:
        """Return the wrapped lines of a text in several styles."""
        text = Text()
        for part, style in spans:
            text.append(_fixed_width(part), style)
        return self._render(text, width)

    def marked(
        self, mark: tuple[str, str], spans: Iterable[tuple[str, str]], width: int
    ) -> list[str]:
        """Return the same lines after a mark; further lines are indented by its width."""
        first, *continuation = self.spans(spans, width - len(mark[0]))
        margin = " " * len(mark[0])
        [head] = self.spans([(mark[0].rstrip(), mark[1])], width)
        gap = " " * (len(mark[0]) - len(mark[0].rstrip()))
        return [f"{head}{gap}{first}", *(f"{margin}{line}" for line in continuation)]

    def changes(self, lines: Sequence[tuple[str, str]], path: str, width: int) -> list[str]:
        """Return the lines of one hunk of a diff; `lines` are its lines with their styles.

        If colours are enabled, the code is highlighted by its language.
        """
        code = [_fixed_width(line) for line, _ in lines]
        texts = [Text(line[1:]) for line in code]
        if self._coloured and sum(map(len, code)) <= MAX_FORMATTED_LENGTH:
            for side in (" +", " -"):  # the file after the change, then before it
                numbers = [number for number, line in enumerate(code) if line[:1] in side]
                part = _try_highlight([code[number][1:] for number in numbers], path)
                for number, line in zip(numbers, part, strict=False):
                    texts[number] = line
        return [
            row
            for line, text, (_, style) in zip(code, texts, lines, strict=True)
            for row in self._render(Text(f"  {line[:1]}", style).append_text(text), width)
        ]

    def cut(self, text: str, width: int, style: str = "") -> str:
        """Return a text as one line, cut at the width."""
        line = Text(
            " ".join(_fixed_width(text).split("\n")), style, no_wrap=True, overflow="ellipsis"
        )
        line.truncate(self._console(width).width, overflow="ellipsis")
        return (self._render(line, width) or [""])[0]

    def _console(self, width: int) -> Console:
        if self._cached_console is None or self._console_width != width:
            self._console_width = width
            self._cached_console = Console(
                file=io.StringIO(),
                force_terminal=self._colours is not None,
                color_system=self._colours,
                no_color=self._monochrome,
                # A free last column keeps terminals from wrapping by themselves.
                width=max(width - 1, 10),
                theme=_THEME,
                highlight=False,
                markup=False,
                emoji=False,
                legacy_windows=False,
                safe_box=not self.unicode,
                _environ={},
            )
        return self._cached_console

    def _render(self, renderable: RenderableType, width: int) -> list[str]:
        console = self._console(width)
        with console.capture() as capture:
            console.print(renderable)
        return [line.rstrip() for line in capture.get().rstrip("\n").split("\n")]


def _try_highlight(lines: Sequence[str], path: str) -> list[Text]:
    """Return the lines highlighted by language; empty if that fails."""
    from acp_agent.cli.chat.markup import highlight_code  # noqa: PLC0415 - with the first change

    try:
        return highlight_code("\n".join(lines), path)
    except Exception:  # noqa: BLE001 - lexers have faults
        return []


def _strip_margins(lines: list[str]) -> list[str]:
    """Return the lines without leading and trailing empty ones."""
    filled = [index for index, line in enumerate(lines) if _CODES.sub("", line).strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []
