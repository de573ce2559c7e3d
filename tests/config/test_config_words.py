"""The catalogs of what the program says are complete, and have nothing that is not said."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import acp_agent
from acp_agent.config.words import ENGLISH, catalog, words_in
from acp_agent.models.base import ModelInfo
from acp_agent.session.commands import COMMANDS
from acp_agent.session.options import Option, mode_option, model_option, thought_option
from acp_agent.session.prompter import WISH_HEARD

PACKAGE = Path(acp_agent.__file__).parent
THINKER = ModelInfo(
    provider="p", id="m", thought_levels=("off", "minimal", "low", "medium", "high", "xhigh", "max")
)


def written_texts() -> set[str]:
    """Every text that is said by a call of `words` in the sources."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and node.args and _is_words(node.func):
                text = node.args[0]
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    found.add(text.value)
    return found


def _is_words(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name == "words"


def data_texts() -> Iterator[str]:
    """The texts that are said of data: the commands and the options."""
    for command in COMMANDS:
        yield command.description
        yield command.hint or ""
    thought = thought_option(THINKER, None)
    assert thought is not None
    for option in (mode_option("ask"), thought, model_option(THINKER, [])):
        yield from _option_texts(option)
    yield WISH_HEARD


def _option_texts(option: Option) -> Iterator[str]:
    yield option.name
    yield option.description
    for value in option.values if option.id != "model" else ():
        yield value.name
        yield value.description or ""


def placeholders(text: str) -> list[str]:
    return sorted(field for _, field, _, _ in string.Formatter().parse(text) if field is not None)


def test_the_chinese_catalog_has_every_text_that_is_said_and_no_other() -> None:
    said = written_texts() | set(data_texts()) - {""}
    kept = set(catalog("zh"))
    assert said - kept == set()
    assert kept - said == set()


def test_a_translation_has_the_placeholders_of_its_text() -> None:
    for text, translation in catalog("zh").items():
        assert placeholders(translation) == placeholders(text), text
        assert translation.strip()


def test_a_text_that_has_no_translation_is_said_in_english() -> None:
    assert words_in("zh")("Nobody said {this} before", this="thing") == "Nobody said thing before"
    assert words_in("en") is ENGLISH
