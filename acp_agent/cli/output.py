"""Print text, tables and errors to the terminal, and end commands with a status."""

from __future__ import annotations

import errno
import io
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TextIO

from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.errors import AcpAgentError

FAILED = 1
USAGE = 2
INTERRUPTED = 130  # as in shells, for a process ended by Ctrl-C

# Escapes control characters in the text of models and tools, which could drive the terminal.
_VISIBLE = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_VISIBLE |= {9: "\t", 10: "\n", 13: ""}

# Characters that must not begin, and not end, a line (Requirements for Chinese Text Layout, 3.1.3).
_NEVER_FIRST = frozenset("，。、；：？！）》」』】〉”’,.;:?!)]}")
_NEVER_LAST = frozenset("（《「『【〈“‘([{")


def run_guarded(work: Callable[[], int]) -> int:
    """Run a command and return its exit status.

    One of our errors is printed as one line on stderr, with status 1; so is a full disk. Ctrl-C
    gives 130. A reader of stdout that ends (`| head`) ends the command quietly.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8
    try:
        try:
            return work()
        finally:
            sys.stdout.flush()
    except AcpAgentError as error:
        complain(translate_rendered(str(error)))
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        if error.errno not in {errno.EPIPE, errno.ENOSPC}:
            raise
        # Python must not try to write buffered output again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:
            return 0
        complain(translate("cannot write the output: {reason}", reason=error.strerror))
        return FAILED


def say(text: str = "") -> None:
    """Print `text` and a line break to stdout."""
    sys.stdout.write(_readable(text, sys.stdout) + "\n")


def say_styled(text: str, style: str, *, wrap: bool = True) -> None:
    """Print `text` and a line break to stdout; on a terminal with a style of rich, and wrapped."""
    if not on_terminal():
        say(text)
        return
    from rich.console import Console  # noqa: PLC0415 - only for a terminal
    from rich.text import Text  # noqa: PLC0415 - likewise

    Console().print(Text(escape_controls(text), style), soft_wrap=not wrap)


def complain(text: str) -> None:
    """Print an error to stderr in one line after the program's name."""
    sys.stderr.write(f"acp-agent: {_readable(' '.join(text.split()), sys.stderr)}\n")


def say_json(value: object) -> None:
    """Print `value` as indented JSON."""
    import msgspec  # noqa: PLC0415 - most commands print text

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def escape_controls(text: str) -> str:
    """Return `text` with control characters escaped, except line breaks and tabs."""
    return text.translate(_VISIBLE)


def escape_hidden(text: str) -> str:
    """Return `text` with control and invisible characters escaped."""
    from acp_agent.content import escaped  # noqa: PLC0415 - most text is ASCII

    return escaped(escape_controls(text))


def terminal_text(text: str) -> str:
    """Return `text` like `escape_hidden`, with tabs as spaces so that columns can be counted."""
    return escape_hidden(text).replace("\t", "    ")


def one_line(text: str, limit: int = 200) -> str:
    """Return the start of `text` as one line of at most `limit` visible characters."""
    line = " ".join(terminal_text(text[: 4 * limit]).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _readable(text: str, out: TextIO) -> str:
    """Return `text` with controls escaped, and on a terminal invisible characters as well."""
    escaped_text = escape_controls(text)
    return (
        escaped_text if escaped_text.isascii() or not out.isatty() else escape_hidden(escaped_text)
    )


def split_lines(text: str) -> list[str]:
    """Split a text at line feeds only; other line separators are shown as they are."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def on_terminal() -> bool:
    """Return whether stdout is a terminal."""
    return sys.stdout.isatty()


def confirm(question: str, flag: str, *, given: bool) -> bool:
    """Return whether the user agrees to a change: by an option, or in the terminal.

    Args:
        question: asked in the terminal.
        flag: the option that stands for yes.
        given: whether the option was given.
    """
    if given:
        return True
    if not (sys.stdin.isatty() and on_terminal()):
        complain(translate("Nothing changed: not a terminal. Use {flag} to apply.", flag=flag))
        return False
    try:
        answer = input(question).strip().lower()
    except EOFError:
        answer = ""
    if answer in {"y", "yes", "是"}:
        return True
    say(translate("Nothing changed."))
    return False


def say_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: int = 0) -> None:
    """Print a table, fitted to the terminal if there is one, otherwise in full width.

    Args:
        headings: in English; they are printed in the user's language.
        rows: the cells; each row has one per heading.
        numbers: how many of the last columns are right-aligned.
    """
    headings = [heading and translate(heading) for heading in headings]
    cells = [[" ".join(_readable(cell, sys.stdout).split()) for cell in row] for row in rows]
    left = len(headings) - numbers
    if on_terminal():
        from rich.console import Console  # noqa: PLC0415 - only for a terminal
        from rich.table import Table  # noqa: PLC0415 - likewise
        from rich.text import Text  # noqa: PLC0415 - likewise

        table = Table(box=None, pad_edge=False, header_style="bold")
        for index, heading in enumerate(headings):
            # In a narrow terminal, the last text column is shortened, so that IDs stay complete.
            justify: Literal["left", "right"] = "left" if index < left else "right"
            table.add_column(heading, justify=justify, no_wrap=index != left - 1)
        for row in cells:
            table.add_row(*(Text(cell) for cell in row))
        Console().print(table)
        return
    lines = [headings, *cells]
    widths = [max(width(line[index]) for line in lines) for index in range(len(headings))]
    for row in lines:
        fitted = [
            pad(cell, columns) if index < left else pad_left(cell, columns)
            for index, (cell, columns) in enumerate(zip(row, widths, strict=True))
        ]
        sys.stdout.write("  ".join(fitted).rstrip() + "\n")


def width(text: str) -> int:
    """Return the columns that `text` occupies (Unicode Standard Annex 11)."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def pad(text: str, columns: int) -> str:
    """Pad `text` with blanks on its right."""
    return text + " " * (columns - width(text))


def pad_left(text: str, columns: int) -> str:
    """Pad `text` with blanks on its left."""
    return " " * (columns - width(text)) + text


def wrap(text: str, columns: int) -> list[str]:
    """Wrap a paragraph at blanks and between wide characters."""
    lines: list[str] = []
    line = ""
    for piece in _pieces(" ".join(text.split())):
        if line and width(line) + width(piece.rstrip()) > columns:
            lines.append(line.rstrip())
            line = ""
        line += piece if line else piece.lstrip()
    return [*lines, line.rstrip()] if line.strip() else lines


def _pieces(text: str) -> Iterator[str]:
    """Split a text at possible line ends."""
    piece = ""
    for character, following in zip(text, [*text[1:], ""], strict=True):
        piece += character
        wide = _width(character) == 2 or (following and _width(following) == 2)
        if character in _NEVER_LAST or following in _NEVER_FIRST:
            continue
        if character == " " or (wide and following != " "):
            yield piece
            piece = ""
    if piece:
        yield piece
