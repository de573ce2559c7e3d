"""Detect questions that ask for a secret, using the patterns in `secret_questions.toml`.

Neither a form nor a question in text may ask for a secret: the user's answer is shown, stored and
sent to a model (Agent Client Protocol, Elicitation, Form mode).
"""

from __future__ import annotations

import functools
import re
from typing import Any

from acp_agent.platform.data_tables import read_table

_MAX_LENGTH = 20_000  # characters of a text that are checked


def asks_for_secret(*texts: str) -> bool:
    """Return whether one of the texts, a question or a field label, asks for a secret's value."""
    patterns = _patterns()
    return any(pattern.search(text[:_MAX_LENGTH]) for text in texts for pattern in patterns)


@functools.cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    words = read_table(__package__, "secret_questions.toml", dict[str, Any])
    names, verbs = _alternatives(words["names"]), _alternatives(words["asking"])
    end = rf"(?=\s*($|[^\w\s`'\"-]|[`'\"]|\b{_alternatives(words['followed_by'])}\b))"
    # The request and the name are in one sentence.
    request = rf"\b{verbs}\b[^.?!;\n]{{0,60}}?\b{names}\b{end}"
    bare = rf"^\W*{words['bare']}{names}\W*$"
    patterns = [request, bare, *(pattern.replace("NAMES", names) for pattern in words["whole"])]
    return tuple(re.compile(pattern, re.IGNORECASE | re.MULTILINE) for pattern in patterns)


def _alternatives(patterns: list[str]) -> str:
    return "(" + "|".join(patterns) + ")"
