"""Translate all texts that the program shows to its user.

A text is written in English in the source code, and the English text is the key in the message
catalogs of other languages. English therefore costs nothing at start, and another language reads
one small file once. Text for the model is always English (docs/languages.md).

Some texts are rendered in English before the reader's language is known: those in the journal and
those of exceptions. `Translator.rendered` translates them when they are shown, using the templates
of `message_templates_<language>.toml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from acp_agent.config.message_templates import Templates

Language = Literal["en", "zh"]
Catalog = Literal["messages", "messages_cli"]
Table = Literal["titles", "texts", "parts"]

_LANGUAGES: Mapping[str | None, Language] = {"en": "en", "zh": "zh"}


def choose_language(setting: str | None, environ: Mapping[str, str]) -> Language:
    """Return the configured language, else that of the system's locale, else English.

    Any other setting counts as `auto`; loading the configuration reports it.

    The variables are read in POSIX's order (The Open Group Base Specifications, section 8.2); the
    first one that is set decides.
    """
    if setting in _LANGUAGES:
        return _LANGUAGES[setting]
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = environ.get(name, "")
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


class Translator:
    """Translates texts into one language.

    Args:
        language: the target language; English needs no messages.
        messages: the translations by their English texts; a text without one stays English.
    """

    def __init__(self, language: Language, messages: Mapping[str, str]) -> None:
        self.language: Language = language
        self._messages = messages
        self._templates: dict[bool, Templates] = {}

    def __call__(self, text: str, /, **values: object) -> str:
        """Translate `text` and fill in its placeholders."""
        translated = self._messages.get(text, text)
        return translated.format(**values) if values else translated

    def rendered(self, text: str) -> str:
        """Translate an English text whose values are already filled in.

        An unknown text is returned unchanged. Blocks while it reads a small file, once.
        """
        return text if self.language == "en" else self._load_templates(titles=False)(text)

    def rendered_title(self, title: str) -> str:
        """Translate the English title of a tool call, as `rendered` does."""
        return title if self.language == "en" else self._load_templates(titles=True)(title)

    def _load_templates(self, *, titles: bool) -> Templates:
        if titles not in self._templates:
            from acp_agent.config.message_templates import Templates  # noqa: PLC0415 - not in English

            tables = read_templates(self.language)
            texts = {**tables["titles"], **tables["texts"]} if titles else tables["texts"]
            self._templates[titles] = Templates(texts, tables["parts"], stop="。")
        return self._templates[titles]


ENGLISH = Translator("en", {})


@cache
def translator_for(language: Language) -> Translator:
    """Return the translator for a language. Blocks while it reads a small file, once."""
    return ENGLISH if language == "en" else Translator(language, read_catalog("messages", language))


@cache
def command_line_translator(language: Language) -> Translator:
    """Return a translator that also has the messages of the command line."""
    if language == "en":
        return ENGLISH
    messages = {**read_catalog("messages", language), **read_catalog("messages_cli", language)}
    return Translator(language, messages)


def read_catalog(name: Catalog, language: Language) -> Mapping[str, str]:
    """Return a message catalog: translations by their English texts."""
    messages: Mapping[str, str] = _read(name, language)
    return messages


def read_templates(language: Language) -> Mapping[Table, Mapping[str, str]]:
    """Return the templates of a language: for call titles, whole texts, and parts of texts."""
    tables: Mapping[Table, Mapping[str, str]] = _read("message_templates", language)
    return tables


def join_sentences(title: str, description: str) -> str:
    """Return a title and its description as one line."""
    if not description:
        return title
    if title.endswith((".", "!", "?", ":")):
        return f"{title} {description}"
    if title.endswith(("。", "！", "？", "：")):
        return f"{title}{description}"
    colon = "：" if "\u4e00" <= title[-1:] <= "\u9fff" else ": "
    return f"{title}{colon}{description}"


def _read(name: str, language: Language) -> Any:  # parsed TOML, which a test checks
    import tomllib  # noqa: PLC0415 - not in English
    from pathlib import Path  # noqa: PLC0415 - `importlib.resources` would take 8 ms of the start

    return tomllib.loads(Path(__file__).with_name(f"{name}_{language}.toml").read_text("utf-8"))
