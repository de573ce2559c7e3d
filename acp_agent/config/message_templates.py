"""Translate a rendered English text by finding the template that matches it.

A template is a text with `{}` for its values: `"cannot read {} ({}); check who may read it"`. Its
translation has the same values, as `{}` in the same order or as `{1}`, `{0}` in another. `{:text}`
is a value that is itself a translatable text, such as a reason. The space between it and the text
around it is removed between two Chinese characters. Other values stay unchanged, so that file names
are never translated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from string import Formatter

_PLACEHOLDER = "{}"
_MAX_DEPTH = 4  # levels of texts within texts
_CACHE_SIZE = 1_000  # cached translations: a replay often shows the same titles
_MAX_LENGTH = 4_000  # characters of a text that is translated; known texts have a line or two
_CHINESE = r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]"  # characters and punctuation
_ENDS_CHINESE = re.compile(f"{_CHINESE} ?$")
_BEGINS_CHINESE = re.compile(f" ?{_CHINESE}")


class Templates:
    """The translations of a catalog.

    Args:
        parts: translations of texts that occur only inside others, because they are ambiguous
            alone.
        stop: the full stop of the language.
    """

    def __init__(self, texts: Mapping[str, str], fragments: Mapping[str, str], stop: str) -> None:
        self._texts = _Table(texts)
        self._fragments = _Table({**texts, **fragments})
        self._stop = stop
        self._cached_translate = lru_cache(_CACHE_SIZE)(self._translate)

    def __call__(self, text: str, depth: int = 0) -> str:
        """Translate `text`; return it unchanged if it fits no template."""
        if not text or len(text) > _MAX_LENGTH or depth > _MAX_DEPTH:
            return text
        return self._cached_translate(text, depth)

    def _translate(self, text: str, depth: int) -> str:
        match = self._find(text, depth)
        ends_sentence = text.endswith(".") and not text.endswith((" .", ".."))
        if ends_sentence and (match is None or (match[1][-1:] and match[1][-1].endswith("."))):
            # A reason with a full stop added: the full stop is not part of its last value.
            reason = self._find(text[:-1], depth + 1)
            if reason is not None:
                return self._fill_in(*reason, depth + 2) + self._stop
        return text if match is None else self._fill_in(*match, depth + 1)

    def _find(self, text: str, depth: int) -> tuple[str, tuple[str, ...]] | None:
        return (self._fragments if depth else self._texts).find(text)

    def _fill_in(self, translation: str, values: Sequence[str], depth: int) -> str:
        # The result so far, and whether it ends with a translated value.
        text, ends_translated = "", False
        for index, (literal, field, specification, _) in enumerate(Formatter().parse(translation)):
            text = _join(text, literal) if ends_translated else text + literal
            if field is None:
                break
            value = values[int(field) if field else index]
            translated = self(value, depth) if specification else value
            ends_translated = translated != value
            text = _join(text, translated) if ends_translated else text + translated
        return text


class _Table:
    """Templates, looked up by the texts that match them."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._exact = {
            text: translation for text, translation in texts.items() if _PLACEHOLDER not in text
        }
        templates = [
            (text, translation) for text, translation in texts.items() if _PLACEHOLDER in text
        ]
        # If two templates match, the one with more literal text wins.
        templates.sort(key=lambda pair: -len(pair[0].replace(_PLACEHOLDER, "")))
        self._by_start: dict[str, list[tuple[re.Pattern[str], str]]] = {}
        for text, translation in templates:
            start = "" if text.startswith(_PLACEHOLDER) else text[0]
            self._by_start.setdefault(start, []).append((_pattern(text), translation))

    def find(self, text: str) -> tuple[str, tuple[str, ...]] | None:
        """Return the translation of the template that matches a text, and its values."""
        if text in self._exact:
            return self._exact[text], ()
        for pattern, translation in self._candidates(text):
            match = pattern.fullmatch(text)
            if match is not None:
                return translation, match.groups()
        return None

    def _candidates(self, text: str) -> Iterator[tuple[re.Pattern[str], str]]:
        yield from self._by_start.get(text[:1], ())
        yield from self._by_start.get("", ())


def _join(before: str, after: str) -> str:
    """Join two translated texts, without a space between Chinese characters."""
    if _ENDS_CHINESE.search(before) and _BEGINS_CHINESE.match(after):
        return before.removesuffix(" ") + after.removeprefix(" ")
    return before + after


def _pattern(template: str) -> re.Pattern[str]:
    literals = (re.escape(literal) for literal in template.split(_PLACEHOLDER))
    return re.compile("(.*?)".join(literals), re.DOTALL)
