"""Lays texts out for a terminal: the result has no escape codes but those made here."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from typing import Literal

from rich.console import Console, RenderableType
from rich.text import Text
from rich.theme import Theme

from acp_agent.cli.output import inert

ColourSystem = Literal["standard", "256", "truecolor"]
# What makes one of several emoji, or changes one, behind another (Unicode Technical Standard 51);
# and the letters that are a flag in twos. Terminals do not agree on how wide the result is, and
# would draw a line wrong of which a part is drawn anew. One by one they agree.
_JOINED = re.compile(
    "(?<=[\u2190-\u2bff\U0001f000-\U0001faff])[\u200d\ufe0f\U0001f3fb-\U0001f3ff]+"
)
_LETTERS = {0x1F1E6 + index: chr(0xFF21 + index) for index in range(26)}
_CODES = re.compile(r"\x1b\[[0-9;]*m")
LARGE = 20_000  # characters from which on a text is shown as it is

# Colours of the terminal's own palette alone, which suit light and dark backgrounds.
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


def _even(text: str) -> str:
    """`text` made inert, and as wide in every terminal as it is counted."""
    return _JOINED.sub("", inert(text)).translate(_LETTERS)


class Renderer:
    """Makes lines of text and Markdown for one terminal.

    Args:
        colours: what the terminal can show; None for no escape codes at all.
        monochrome: whether bold and dim are all that is wanted.
        unicode: whether it shows more than ASCII.
    """

    def __init__(
        self, colours: ColourSystem | None, *, monochrome: bool = False, unicode: bool = True
    ) -> None:
        self._colours = colours
        self._monochrome = monochrome
        self._coloured = colours is not None and not monochrome
        self.unicode = unicode
        self._made: Console | None = None
        self._made_for = 0

    def markdown(self, text: str, width: int) -> list[str]:
        """The lines of a piece of Markdown; of a large one, its text as it is."""
        if len(text) > LARGE:
            return self.text(text, width)
        from acp_agent.cli.chat.markup import SafeMarkdown  # noqa: PLC0415 - with the first answer

        try:
            return _without_margins(self._render(SafeMarkdown(text, _even), width))
        except Exception:  # noqa: BLE001 - what cannot be laid out is shown as it was written
            return self.text(text, width)

    def text(self, text: str, width: int, style: str = "") -> list[str]:
        """The lines of a text, wrapped at words."""
        return self._render(Text(_even(text), style), width)

    def spans(self, spans: Iterable[tuple[str, str]], width: int) -> list[str]:
        """The lines of one line of text in several styles."""
        text = Text()
        for part, style in spans:
            text.append(_even(part), style)
        return self._render(text, width)

    def marked(
        self, mark: tuple[str, str], spans: Iterable[tuple[str, str]], width: int
    ) -> list[str]:
        """The same behind a mark, with what does not fit into the first line below its text."""
        first, *rest = self.spans(spans, width - len(mark[0]))
        margin = " " * len(mark[0])
        [head] = self.spans([(mark[0].rstrip(), mark[1])], width)
        gap = " " * (len(mark[0]) - len(mark[0].rstrip()))
        return [f"{head}{gap}{first}", *(f"{margin}{line}" for line in rest)]

    def changes(self, lines: Sequence[tuple[str, str]], path: str, width: int) -> list[str]:
        """The lines of one hunk of a change of a file, and the style of each.

        Where colours are wanted, the code has those of its language.
        """
        code = [_even(line) for line, _ in lines]
        shown = [Text(line[1:]) for line in code]
        if self._coloured and sum(map(len, code)) <= LARGE:
            for side in (" +", " -"):  # the file after the change, and before
                numbers = [number for number, line in enumerate(code) if line[:1] in side]
                part = _highlighted([code[number][1:] for number in numbers], path)
                for number, line in zip(numbers, part, strict=False):
                    shown[number] = line
        return [
            row
            for line, text, (_, style) in zip(code, shown, lines, strict=True)
            for row in self._render(Text(f"  {line[:1]}", style).append_text(text), width)
        ]

    def cut(self, text: str, width: int, style: str = "") -> str:
        """One line of a text, cut at the width."""
        line = Text(" ".join(_even(text).split("\n")), style, no_wrap=True, overflow="ellipsis")
        line.truncate(self._console(width).width, overflow="ellipsis")
        return (self._render(line, width) or [""])[0]

    def _console(self, width: int) -> Console:
        if self._made is None or self._made_for != width:
            self._made_for = width
            self._made = Console(
                file=io.StringIO(),
                force_terminal=self._colours is not None,
                color_system=self._colours,
                no_color=self._monochrome,
                # Leaving the last column free keeps terminals from wrapping by themselves.
                width=max(width - 1, 10),
                theme=_THEME,
                highlight=False,
                markup=False,
                emoji=False,
                legacy_windows=False,
                safe_box=not self.unicode,
                _environ={},
            )
        return self._made

    def _render(self, what: RenderableType, width: int) -> list[str]:
        console = self._console(width)
        with console.capture() as capture:
            console.print(what)
        return [line.rstrip() for line in capture.get().rstrip("\n").split("\n")]


def _highlighted(lines: Sequence[str], path: str) -> list[Text]:
    """Lines with the colours of their language; none where they cannot be coloured."""
    from acp_agent.cli.chat.markup import highlighted  # noqa: PLC0415 - with the first change

    try:
        return highlighted("\n".join(lines), path)
    except Exception:  # noqa: BLE001 - lexers have faults
        return []


def _without_margins(lines: list[str]) -> list[str]:
    """Lines without the empty ones around them; blocks are set apart by who shows them."""
    filled = [index for index, line in enumerate(lines) if _CODES.sub("", line).strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []
