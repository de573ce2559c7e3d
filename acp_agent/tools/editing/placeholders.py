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
_SHOWN = 100  # characters
_OMITTED = 2  # lines in place of which dots are no text of their own
_DOTS_ARE_CODE = (".py", ".pyi", ".pyx")


class _Patterns(NamedTuple):
    comment: re.Pattern[str]
    bare: re.Pattern[str]
    marked: re.Pattern[str]
    plain: re.Pattern[str]
    omission: re.Pattern[str]


def refuse_placeholder(text: str, before: str) -> None:
    """Refuse a text that leaves out text of the file.

    Args:
        text: the new text.
        before: the whole file as it is. What it has itself is no placeholder.

    Raises:
        ToolError: a line, or a comment in it, is nothing but a placeholder.
    """
    found = find_placeholder(text, before)
    if found is not None:
        raise ToolError(
            f"the new text has a placeholder for code that is left out: {found[:_SHOWN]!r}",
            advice="write out all of the text; to keep lines, leave them out of `old` in an `edit`",
        )


def refuse_omission(old: str, new: str, before: str, name: str) -> None:
    """Refuse a line of `new` with dots, or "rest of the code", where `old` has two lines or more.

    Args:
        old: the text to replace.
        new: the new text.
        before: the whole file as it is.
        name: that of the file. In Python three dots are code.

    Raises:
        ToolError: the lines around such a line follow each other in `new` only.
    """
    given = [line.strip() for line in old.split("\n") if line.strip()]
    lines = [line.strip() for line in new.split("\n") if line.strip()]
    for at, line in enumerate(lines):
        if len(line) > _SHOWN or not _patterns().omission.fullmatch(line.lower()):
            continue
        if line in map(str.strip, before.split("\n")) or (
            name.endswith(_DOTS_ARE_CODE) and not line.strip(".")
        ):
            continue
        start = given.index(lines[at - 1]) + 1 if at and lines[at - 1] in given else 0
        rest = [one for one in lines[at + 1 :] if one in given[start:]]
        ends = zip(reversed(given[start:]), reversed(rest), strict=False)
        end = len(given) - len(list(takewhile(lambda pair: pair[0] == pair[1], ends)))
        if end - start >= _OMITTED:
            raise ToolError(
                f"{line!r} stands for {end - start} lines of `old`, which would be deleted",
                advice="write them out, or leave them out of `old` as well",
            )


def find_placeholder(text: str, before: str = "") -> str | None:
    """Return the first placeholder that the file does not have; None if there is none."""
    patterns = _patterns()
    for line in text.split("\n"):
        if len(line) > 300 or not _hints().search(line):
            continue
        pieces = [(found["body"], True) for found in patterns.comment.finditer(line)]
        pieces += [(found["body"], False) for found in patterns.bare.finditer(line)]
        for body, is_comment in pieces:
            words = " ".join(body.lower().split())
            pattern = patterns.plain if is_comment else patterns.marked
            if (patterns.marked.fullmatch(words) or pattern.fullmatch(words)) and (
                body.strip() not in before
            ):
                return body.strip()
    return None


@lru_cache(maxsize=1)
def _hints() -> re.Pattern[str]:
    """A pattern that every placeholder matches, to skip other lines quickly."""
    return re.compile(
        r"rest\b|remain|existing|previous|original|unchanged|other|else|same|omitted|no change|here"
        r"|not shown|untouched|continues|intact|preserved|as (?:is|before|it was)|not changed",
        re.IGNORECASE,
    )


@lru_cache(maxsize=1)
def _patterns() -> _Patterns:
    data = tomllib.loads((files(__package__) / "placeholders.toml").read_text("utf-8"))
    kept = "|".join(data["kept"])
    state = rf"(?:is |are |remains? |stays? |stay |kept |code )?(?:{kept})"
    values = {
        "noun": _NOUN,
        "noun_or_none": rf"(?: {_NOUN})?",
        "kept": rf"(?: ?{state})?",
        "stays": rf" ?(?:is |are |remains? |stays? |kept )?(?:{'|'.join(data['stays'])})",
    }
    phrases = "|".join(phrase.format(**values) for phrase in data["phrases"])
    whole = "|".join(phrase.format(**values) for phrase in data["phrases"][:3])
    openings, closings = "|".join(data["openings"]), "|".join(data["closings"])
    return _Patterns(
        comment=re.compile(
            rf"(?:^|(?<=[\s{{}};,>)]))(?:{openings})(?P<body>.*?)(?:{closings}|$)", re.IGNORECASE
        ),
        bare=re.compile(rf"^\s*(?P<body>{_DOTS} .* {_DOTS}|\[ ?{_DOTS}.*\])\s*$"),
        marked=re.compile(
            rf"{_DOTS} ?[(\[]?(?:{phrases})[)\]]? ?{_DOTS}?|[(\[]?(?:{phrases})[)\]]? ?{_DOTS}"
            rf"|[(\[<] ?{_DOTS}? ?(?:{phrases}) ?{_DOTS}? ?[)\]>]"
        ),
        omission=re.compile(
            rf"(?:{openings})? ?{_DOTS} ?(?:{closings})?"
            rf"|(?:{openings}) ?(?:{phrases}) ?(?:{closings})?"
        ),
        plain=re.compile(rf"(?!(?:the )?original)(?=\S+ .*(?:{kept})\W*$)(?:{whole})\.?"),
    )
