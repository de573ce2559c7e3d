"""The catalogs of what the program says are complete, and have nothing that is not said."""

from __future__ import annotations

import string
from collections.abc import Iterator

import pytest

from acp_agent.agent.turn import GO_ON, STOP, STOPPED
from acp_agent.cli.completion.grammar import grammar
from acp_agent.cli.doctor import SECTIONS
from acp_agent.cli.editors.catalog import editors
from acp_agent.cli.main import COMMANDS as CLI_COMMANDS
from acp_agent.cli.tour import PROMPT as TOUR_PROMPT
from acp_agent.config.localization import ENGLISH, Catalog, read_catalog, translator_for
from acp_agent.config.types import Config
from acp_agent.extensions.definitions.locations import bundled_skills
from acp_agent.models.base import ModelInfo
from acp_agent.server.initialize import auth_methods
from acp_agent.server.notices import CUT_CALL, INTERRUPTED_TEXT, INTERRUPTED_TITLE
from acp_agent.session.commands.agents import STATES
from acp_agent.session.commands.command import COMMANDS
from acp_agent.session.commands.find import LATER
from acp_agent.session.commands.rewind import TURN_RUNS
from acp_agent.session.folder_trust import ALWAYS, FOR_NOW, KINDS, NEVER
from acp_agent.session.prompts import COMPACTION_REQUESTED
from acp_agent.session.settings import (
    Option,
    agent_option,
    mode_option,
    model_option,
    thought_option,
)
from tests.config.source_texts import explained, keyed, sources, unsaid

# What argparse says by itself, and the end of its headings.
ARGPARSE = {"options", "positional arguments", "show this help message and exit"}
THINKER = ModelInfo(
    provider="p", id="m", thought_levels=("off", "minimal", "low", "medium", "high", "xhigh", "max")
)


def session_texts() -> set[str]:
    """Every text that is said by a key outside of the command line."""
    texts = {text for text in data_texts() if text}
    for name, tree in sources():
        if not name.startswith("cli/"):
            texts |= keyed(tree)
    return texts


def command_line_texts() -> set[str]:
    """Every text that the command line says by a key."""
    texts = {*CLI_COMMANDS.values(), *SECTIONS, *ARGPARSE, TOUR_PROMPT}
    texts |= {editor.next for editor in editors().values()}
    texts |= {option["about"] for option in grammar()["options"] if option.get("about")}
    for _, tree in sources("cli/"):
        texts |= keyed(tree) | explained(tree)
    return texts


def data_texts() -> Iterator[str]:
    """The texts that are said of data: the commands and the options."""
    for command in COMMANDS:
        yield command.description
        yield command.hint or ""
    for skill in bundled_skills(Config()):
        yield skill.description
        yield skill.hint or ""
    thought = thought_option(THINKER, None)
    assert thought is not None
    for option in (
        mode_option("ask"),
        thought,
        model_option(THINKER, []),
        agent_option("default", []),
    ):
        yield from _option_texts(option)
    everything = {"auth": {"terminal": True}, "elicitation": {"url": {}}}
    for method in auth_methods({"clientCapabilities": everything}, 1):
        yield from (method["name"], method["description"])
    yield from (COMPACTION_REQUESTED, TURN_RUNS, GO_ON, STOP, STOPPED)
    yield from (LATER, ALWAYS, FOR_NOW, NEVER, *KINDS.values(), *STATES.values())
    yield from (INTERRUPTED_TITLE, INTERRUPTED_TEXT, CUT_CALL)


def _option_texts(option: Option) -> Iterator[str]:
    yield option.name
    yield option.description
    for value in option.values if option.id != "model" else ():
        yield value.name
        yield value.description or ""


def placeholders(text: str) -> list[str]:
    return sorted(field for _, field, _, _ in string.Formatter().parse(text) if field is not None)


def test_the_chinese_catalog_has_exactly_the_texts_that_are_shown() -> None:
    sessions, command_line = (
        set(read_catalog("messages", "zh")),
        set(read_catalog("messages_cli", "zh")),
    )
    in_sessions, in_commands = session_texts(), command_line_texts()
    assert in_sessions - sessions == set()
    assert in_commands - sessions - command_line == set()
    assert (sessions | command_line) - in_sessions - in_commands == set()
    assert sessions & command_line == set()


@pytest.mark.parametrize("name", ["messages", "messages_cli"])
def test_a_translation_has_the_placeholders_of_its_text(
    name: Catalog,
) -> None:
    for text, translation in read_catalog(name, "zh").items():
        assert placeholders(translation) == placeholders(text), text
        assert translation.strip()


def test_a_text_without_a_translation_is_shown_in_english() -> None:
    assert (
        translator_for("zh")("Nobody said {this} before", this="thing")
        == "Nobody said thing before"
    )
    assert translator_for("en") is ENGLISH


def test_no_source_shows_a_text_without_translating_it() -> None:
    assert set(unsaid()) == set()
