"""docs/commands.md has every slash command, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from acp_agent.session.commands.command import COMMANDS
from acp_agent.session.commands.prompting import MAX_ROUNDS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "commands.md").read_text("utf-8")
NOT_COMMANDS = {
    "acp",
    "greet",
    "message",
    "name",
    "openai",
    "responses",
}  # a form, an example, parts of addresses
OTHERS = {"flow:NAME", "skill:NAME", "SERVER:PROMPT"}  # those of skills and servers, by their form


def test_every_slash_command_is_explained() -> None:
    rows = re.findall(r"^\| `/(\S+?)[ `]", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted({command.name for command in COMMANDS} | OTHERS)


def test_the_highest_number_of_rounds_of_a_loop_is_shown() -> None:
    assert f"(the most is {MAX_ROUNDS})" in PAGE


def test_a_slash_command_that_a_page_mentions_exists() -> None:
    rows = re.findall(r"^\| (`/.*?) \|", (DOCS / "chat.md").read_text("utf-8"), re.MULTILINE)
    in_chat = set(re.findall(r"`/([a-z]+)", " ".join(rows)))
    assert {"help", "quit"} <= in_chat
    known = {command.name for command in COMMANDS} | in_chat
    for page in sorted([*DOCS.glob("*.md"), DOCS.parent / "README.md"]):
        named = set(re.findall(r"`/([a-z]+)(?:`| [^`]*`)", page.read_text("utf-8")))
        assert named <= known | NOT_COMMANDS, page.name
