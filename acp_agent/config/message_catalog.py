"""What the program says to its user, in the user's language.

A text is written in English where it is said, and is its own key in the catalogs of the other
languages; so English costs nothing at start, and another language one small file the first time.
What the model is told is English, whatever the user speaks (docs/languages.md).

Some texts are English before it is known who reads them: what the journal keeps, and what an
exception says. `Words.told` puts those into the user's language when they are shown, by the
templates of `words_told_<language>.toml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from acp_agent.config.message_templates import Templates


Language = Literal["en", "zh"]
Table = Literal["titles", "texts", "parts"]


class Words:
    """The texts of one language.

    Args:
        language: whose; English needs no texts.
        texts: what stands for each English text; one that is missing is said in English.
    """

    def __init__(self, language: Language, texts: Mapping[str, str]) -> None:
        self._language: Language = language
        self._texts = texts
        self._templates: dict[bool, Templates] = {}

    def __call__(self, text: str, /, **values: object) -> str:
        """A text in the language, its placeholders filled in."""
        said = self._texts.get(text, text)
        return said.format(**values) if values else said

    def told(self, text: str) -> str:
        """An English text, its values in it already, in the language.

        A text that is none of ours stays as it is. Blocks while it reads a small file, once.
        """
        return text if self._language == "en" else self._of(titles=False)(text)

    def titled(self, title: str) -> str:
        """An English title of a call in the language, as `told` puts texts."""
        return title if self._language == "en" else self._of(titles=True)(title)

    def _of(self, *, titles: bool) -> Templates:
        if titles not in self._templates:
            from acp_agent.config.message_templates import Templates  # noqa: PLC0415 - not in English

            tables = templates(self._language)
            texts = {**tables["titles"], **tables["texts"]} if titles else tables["texts"]
            self._templates[titles] = Templates(texts, tables["parts"], stop="。")
        return self._templates[titles]


ENGLISH = Words("en", {})


def with_more(title: str, description: str) -> str:
    """A title and what explains it, where both are one line."""
    if not description:
        return title
    if title.endswith((".", "!", "?", ":")):
        return f"{title} {description}"
    if title.endswith(("。", "！", "？", "：")):
        return f"{title}{description}"
    colon = "：" if "\u4e00" <= title[-1:] <= "\u9fff" else ": "
    return f"{title}{colon}{description}"


@cache
def words_in(language: Language) -> Words:
    """The words of a language. Blocks while it reads a small file, once."""
    return ENGLISH if language == "en" else Words(language, catalog("words", language))


@cache
def command_line_words(language: Language) -> Words:
    """The words of a language that the command line needs, too."""
    if language == "en":
        return ENGLISH
    return Words(language, {**catalog("words", language), **catalog("words_cli", language)})


def catalog(name: Literal["words", "words_cli"], language: Language) -> Mapping[str, str]:
    """A catalog of a language: its texts by their English ones."""
    texts: Mapping[str, str] = _read(name, language)
    return texts


def templates(language: Language) -> Mapping[Table, Mapping[str, str]]:
    """The catalog of templates of a language: of calls' titles, whole texts, and parts of texts."""
    tables: Mapping[Table, Mapping[str, str]] = _read("words_told", language)
    return tables


def _read(name: str, language: Language) -> Any:  # what TOML has, which a test examines
    import tomllib  # noqa: PLC0415 - not in English
    from pathlib import Path  # noqa: PLC0415 - `importlib.resources` would take 8 ms of the start

    return tomllib.loads(Path(__file__).with_name(f"{name}_{language}.toml").read_text("utf-8"))


_KNOWN: Mapping[str | None, Literal["en", "zh"]] = {"en": "en", "zh": "zh"}


def choose_language(setting: str | None, environ: Mapping[str, str]) -> Literal["en", "zh"]:
    """`en` or `zh`: the configured one, else that of the system's locale, else English.

    A setting that names neither counts as `auto`: what is wrong with it is told where the
    configuration is read.

    The variables are read in POSIX's order (The Open Group Base Specifications, section 8.2): the
    first that is set decides.
    """
    if setting in _KNOWN:
        return _KNOWN[setting]
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = environ.get(name, "")
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"
