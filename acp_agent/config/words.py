"""What the program says to its user, in the user's language.

A text is written in English where it is said, and is its own key in the catalogs of the other
languages (`words_<language>.toml`); so English costs nothing at start, and another language one
small file the first time. What the model is told is English, whatever the user speaks; so is what
only a client's developers read, the messages of JSON-RPC errors among them (docs/languages.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

Language = Literal["en", "zh"]


class Words:
    """The texts of one language.

    Args:
        texts: what stands for each English text; one that is missing is said in English.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def __call__(self, text: str, **values: object) -> str:
        """A text in the language, its placeholders filled in."""
        said = self._texts.get(text, text)
        return said.format(**values) if values else said


ENGLISH = Words({})


@cache
def words_in(language: Language) -> Words:
    """The words of a language. Blocks while it reads a small file, once."""
    return ENGLISH if language == "en" else Words(catalog(language))


def catalog(language: Language) -> Mapping[str, str]:
    """The catalog of a language: its texts by their English ones."""
    import tomllib  # noqa: PLC0415 - not in English
    from importlib.resources import files  # noqa: PLC0415 - so

    text = (files(__package__) / f"words_{language}.toml").read_text("utf-8")
    texts: Mapping[str, str] = tomllib.loads(text)
    return texts
