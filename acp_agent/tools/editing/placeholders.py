"""Placeholders for code that a model left out, such as `// ... existing code ...`."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from itertools import takewhile
from typing import NamedTuple

from acp_agent.errors import ToolError

_DOTS = r"(?:\.{2,}|\u2026)"
_NOUN = r"(?:[\w'/&-]+ ?){1,4}"
_MAX_SHOWN_LENGTH = 100  # characters
_MAX_PLACEHOLDERS = 20  # lines of one text that are compared with `old`
_MIN_OMITTED_LINES = 2  # lines in place of which dots are no text of their own
_PYTHON_SUFFIXES = (".py", ".pyi", ".pyx")


class _Patterns(NamedTuple):
    comment: re.Pattern[str]
    bare: re.Pattern[str]
    marked: re.Pattern[str]
    plain: re.Pattern[str]
    omission: re.Pattern[str]
    dots: re.Pattern[str]


def refuse_placeholder(text: str, before: str) -> None:
    """Refuse a text that leaves out text of the file.

    Args:
        before: the whole file as it is. What it has itself is no placeholder.

    Raises:
        ToolError: a line, or a comment in it, is nothing but a placeholder.
    """
    placeholder = find_placeholder(text, before)
    if placeholder is not None:
        raise ToolError(
            f"the new text has a placeholder for code that is left out: "
            f"{placeholder[:_MAX_SHOWN_LENGTH]!r}",
            advice="write out all of the text; to keep lines, leave them out of `old` in an `edit`",
        )


def refuse_omission(old: str, new: str, before: str, name: str) -> None:
    """Refuse a line of `new` with dots, or "rest of the code", where `old` has two lines or more.

    Args:
        name: that of the file. In Python three dots are code.

    Raises:
        ToolError: the lines around such a line follow each other in `new` only.
    """
    old_lines, new_lines = (
        [line.strip() for line in text.split("\n") if line.strip()] for text in (old, new)
    )
    if len(old_lines) < _MIN_OMITTED_LINES:
        return
    indices = [
        index
        for index, line in enumerate(new_lines)
        if len(line) <= _MAX_SHOWN_LENGTH
        and _patterns().omission.fullmatch(line.lower())
        and not (name.endswith(_PYTHON_SUFFIXES) and not line.strip("."))
    ]
    file_lines = set(map(str.strip, before.split("\n"))) if indices else set()
    for index in indices[:_MAX_PLACEHOLDERS]:
        line = new_lines[index]
        if line in file_lines:
            continue
        start = (
            old_lines.index(new_lines[index - 1]) + 1
            if index and new_lines[index - 1] in old_lines
            else 0
        )
        end_lines = set(old_lines[start:])
        following_lines = (
            following for following in reversed(new_lines[index + 1 :]) if following in end_lines
        )
        ends = zip(reversed(old_lines[start:]), following_lines, strict=False)
        end = len(old_lines) - len(list(takewhile(lambda pair: pair[0] == pair[1], ends)))
        if end - start >= _MIN_OMITTED_LINES:
            raise ToolError(
                f"{line!r} stands for {end - start} lines of `old`, which would be deleted",
                advice="write them out, or leave them out of `old` as well",
            )


def find_placeholder(text: str, before: str = "") -> str | None:
    """Return the first placeholder that the file does not have; None if there is none."""
    patterns = _patterns()
    filled = [line.strip() for line in text.split("\n") if line.strip()]
    if len(filled) == 1 and filled[0] not in before and patterns.dots.fullmatch(filled[0]):
        return filled[0]
    for line in text.split("\n"):
        if len(line) > 300 or not _hints().search(line):
            continue
        bodies = [(match["body"], True) for match in patterns.comment.finditer(line)]
        bodies += [(match["body"], False) for match in patterns.bare.finditer(line)]
        for body, is_comment in bodies:
            words = " ".join(body.lower().split())
            pattern = patterns.plain if is_comment else patterns.marked
            if (patterns.marked.fullmatch(words) or pattern.fullmatch(words)) and (
                body.strip() not in before
            ):
                return body.strip()
    return None


@lru_cache(maxsize=1)
def _hints() -> re.Pattern[str]:
    """Return a pattern that every placeholder matches, to skip other lines quickly."""
    return re.compile(
        r"rest\b|remain|existing|previous|original|unchanged|other|else|same|omitted|no change|here"
        r"|not shown|untouched|continues|intact|preserved|as (?:is|before|it was)|not changed"
        r"|[其剩余原现已]|后续|之前|省略|不变",
        re.IGNORECASE,
    )


@lru_cache(maxsize=1)
def _patterns() -> _Patterns:
    data = tomllib.loads((files(__package__) / "placeholders.toml").read_text("utf-8"))
    state_words = "|".join(data["kept"])
    state = rf"(?:is |are |remains? |stays? |stay |kept |code )?(?:{state_words})"
    values = {
        "noun": _NOUN,
        "noun_or_none": rf"(?: {_NOUN})?",
        "kept": rf"(?: ?{state})?",
        "stays": rf" ?(?:is |are |remains? |stays? |kept )?(?:{'|'.join(data['stays'])})",
    }
    phrases = "|".join(phrase.format(**values) for phrase in data["phrases"])
    full_phrases = "|".join(phrase.format(**values) for phrase in data["phrases"][:3])
    openings, closings = "|".join(data["openings"]), "|".join(data["closings"])
    return _Patterns(
        comment=re.compile(
            rf"(?:^|(?<=[\s{{}};,>)]))(?:{openings})(?P<body>.*?)(?:{closings}|$)", re.IGNORECASE
        ),
        bare=re.compile(rf"^\s*(?P<body>{_DOTS} .* {_DOTS}|\[ ?{_DOTS}.*\]|{_DOTS} ?\(.*\))\s*$"),
        marked=re.compile(
            rf"{_DOTS} ?[(\[]?(?:{phrases})[)\]]? ?{_DOTS}?|[(\[]?(?:{phrases})[)\]]? ?{_DOTS}"
            rf"|[(\[<] ?{_DOTS}? ?(?:{phrases}) ?{_DOTS}? ?[)\]>]"
        ),
        omission=re.compile(
            rf"(?:{openings})? ?{_DOTS} ?(?:{closings})?"
            rf"|(?:{openings}) ?{_DOTS} ?(?:{closings}) ?(?:{openings}).*"
            rf"|(?:{openings}) ?(?:{phrases}) ?(?:{closings})?"
            rf"|(?:{openings})[ =~-]*(?:{data['phrases'][0].format(**values)})[ =~-]*"
        ),
        dots=re.compile(rf"(?:{openings}) ?{_DOTS} ?(?:{closings})?"),
        plain=re.compile(
            rf"(?!(?:the )?original)(?=\S+ .*(?:{state_words})\W*$)(?:{full_phrases})\.?"
            rf"|(?:{'|'.join(data['plain'])})[.。]?"
        ),
    )
