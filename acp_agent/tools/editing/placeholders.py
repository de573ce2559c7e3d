"""Placeholders for code that a model left out, such as `// ... existing code ...`."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from acp_agent.errors import ToolError

_DOTS = r"(?:\.{2,}|\u2026)"
_NOUN = r"(?:[\w'/&-]+ ?){1,4}"
_SHOWN = 100  # characters


class _Patterns(NamedTuple):
    comment: re.Pattern[str]
    bare: re.Pattern[str]
    marked: re.Pattern[str]
    plain: re.Pattern[str]


def refuse_placeholder(text: str, before: str) -> None:
    """Refuse a text in which something is left out that the file has.

    Args:
        text: what is to be put into a file.
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


def find_placeholder(text: str, before: str = "") -> str | None:
    """The first placeholder in a text that the file does not have as well; None: there is none."""
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
    """What every placeholder has, to pass over other lines quickly."""
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
    said = "|".join(phrase.format(**values) for phrase in data["phrases"][:3])
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
        plain=re.compile(rf"(?!(?:the )?original)(?=\S+ .*(?:{kept})\W*$)(?:{said})\.?"),
    )
