"""Quote foreign text in titles, Markdown and lists, so that it cannot imitate anything else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

_MARKDOWN_SYNTAX = re.compile(r"[\[<&]")
# Unicode's general categories.
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_MAX_DESCRIPTION = 300  # characters of a description
_MAX_LIST = 12_000  # characters of a list; about 3,000 tokens
_MIN_DESCRIPTION = 24  # characters below which a description is useless
_MAX_NAMES = 1_000  # characters of the names in an error


def first_line(text: str, limit: int) -> str:
    """Return the first non-empty line, cut at `limit` characters with a mark.

    Invisible characters and those that change the writing direction are escaped: the user must see
    what is really asked.
    """
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if not lines:
        return ""
    line = "".join(_visible(character) for character in lines[0][: limit + 1])
    if len(lines) == 1 and len(line) <= limit:
        return line
    return line[: limit - 2].rstrip() + " …"


def code_span(text: str) -> str:
    """`text`, one line, as a Markdown code span, whatever backticks it has (CommonMark, 6.1)."""
    fence = "`" * (_longest_run(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def escape_markdown(text: str) -> str:
    """`text` as Markdown that has no link, picture, tag or entity of its own (CommonMark, 2.4)."""
    return _MARKDOWN_SYNTAX.sub(r"\\\g<0>", text)


def code_block(text: str, language: str) -> str:
    """`text` as a fenced Markdown block, whatever backticks it has (CommonMark, 4.5)."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def shorten(text: str, limit: int) -> str:
    """`text`, its middle left out if it is longer than `limit`; the end weighs more."""
    if len(text) <= limit:
        return text
    head = limit // 3
    return f"{text[:head]}\n[...]\n{text[len(text) - (limit - head) :]}"


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _INVISIBLE_CATEGORIES:
        return character
    return " " if character == "\t" else f"\\u{{{ord(character):x}}}"


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest


def described_list(descriptions: Mapping[str, str]) -> list[str]:
    """Return a line for each name with its description, shorter if there are many.

    The last line has the number of names that do not fit.
    """
    names = sum(len(name) + len("- : \n") for name in descriptions)
    share = min(_MAX_DESCRIPTION, (_MAX_LIST - names) // max(1, len(descriptions)))
    lines: list[str] = []
    remaining = _MAX_LIST
    for name, text in descriptions.items():
        line = f"- {name}: {first_line(text, share)}" if share >= _MIN_DESCRIPTION else f"- {name}"
        remaining -= len(line) + 1
        if remaining < 0:
            lines.append(f"and {len(descriptions) - len(lines)} more, which the user can name.")
            break
        lines.append(line)
    return lines


def joined_names(names: Iterable[str]) -> str:
    """Return the names as text for an error."""
    return shorten(", ".join(names), _MAX_NAMES)
