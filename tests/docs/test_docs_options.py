"""A page about a command has every option of it, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codegen.completion_grammar import find_parser

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(
    ("command", "page"),
    [
        ("chat", "chat.md"),
        ("run", "run.md"),
        ("serve", "remote.md"),
        ("setup", "editors.md"),
        ("usage", "budgets.md"),
        ("view", "view.md"),
        ("watch", "workflows.md"),
    ],
)
def test_every_option_of_a_command_is_on_its_page(command: str, page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    options = {
        word
        for action in find_parser(command)._actions
        for word in action.option_strings
        if word.startswith("--") and word != "--help"
    }
    assert {word for word in options if not re.search(rf"{word}(?![a-z-])", text)} == set()
