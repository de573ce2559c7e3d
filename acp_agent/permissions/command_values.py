"""Values that programs run as command lines: `EDITOR='…' git commit`, `git -c core.pager='…'`."""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.permissions.rules import option_matches, shell_rules
from acp_agent.permissions.shell_syntax import Command
from acp_agent.permissions.words import Word


def command_values(command: Command) -> list[str]:
    """The texts given to `command` that it, or what it starts, may run; those that are certain.

    Variables set for it, values of options that take a command, and settings behind `-c` and the
    like. Which of them are run nobody knows, so they only tell the worst.
    """
    if not command.words:
        return []
    found = [each.value.text for each in command.assignments if each.value.static]
    name, *words = command.words
    own = shell_rules().languages.own_command_options.get(name.text.rpartition("/")[2], ())
    before = Word("")
    for word in words:
        if word.static:
            found += _values(before.text, word.text, own)
        before = word
    return [text.lstrip("!|") for text in found if any(each.isspace() for each in text.strip())]


def _values(before: str, text: str, own: Sequence[str]) -> list[str]:
    """What of `text`, which stands behind the word `before`, may be a command line."""
    languages = shell_rules().languages
    commands = (*languages.command_options, *own)
    settings = [text] if before in languages.setting_options else []
    settings += [text[2:] for option in languages.setting_options if text.startswith(option)]
    found = [text] if any(option_matches(before, option) for option in commands) else []
    found += [text[2:] for option in own if text.startswith(option)]
    for setting in settings:
        key, _, value = setting.partition("=")
        found += [] if any(map(str.isspace, key)) else [value]
    if text.startswith("--") and any(option_matches(text, option) for option in commands):
        found.append(text.partition("=")[2])
    return found
