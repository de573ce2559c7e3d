"""The reasons of the rules in the user's language. The model is told them in English."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from acp_agent.permissions.choices import Language


@cache
def reason_texts(language: Language) -> Mapping[str, str]:
    """What stands for each reason; empty for English, which they are written in."""
    if language == "en":
        return {}
    text = (files(__package__) / "reason_texts.toml").read_text("utf-8")
    texts: Mapping[str, str] = tomllib.loads(text)[language]
    return texts


def reason_in(language: Language, reason: str) -> str:
    """A reason in the user's language; as it is where there is no text for it."""
    texts = reason_texts(language)
    if reason in texts:
        return texts[reason]
    for known, text in texts.items():
        before, gap, after = known.partition("{}")
        if gap and reason.startswith(before) and reason.endswith(after):
            return text.format(reason[len(before) : len(reason) - len(after)])
    return reason
