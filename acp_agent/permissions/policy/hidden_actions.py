"""Find options and scripts that make a reading program run or write something.

`Bash(rg *)` covers searching: it does not cover `rg --pre x`, which runs x for each file, and
`Bash(sed *)` covers no script that runs or writes something.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from acp_agent.permissions.arguments import parse_arguments
from acp_agent.permissions.printing_programs import sed_only_prints
from acp_agent.permissions.rules import Reader, read_only_rules, shell_rules
from acp_agent.permissions.shell.words import Word

_UNCHECKED = frozenset({"test", "words"})  # operands of readers that have no options to check


def find_hidden_action(words: Sequence[Word], rule_words: Sequence[str]) -> str:
    """Return the word that may make a reading program do something else; "" if there is none.

    Args:
        words: the command's words; all are certain.
        rule_words: the words of the rule; the user knows what they do.
    """
    name = words[0].text.rpartition("/")[2]
    text = shell_rules().languages.acting_texts.get(name)
    if text is not None:
        return _first_match(words[1:], text, rule_words)
    reader, remaining = _reader(name, words[1:], rule_words)
    if reader is None or reader.requires or reader.operands in _UNCHECKED:
        return ""
    remaining = [word for word in remaining if word.text not in rule_words or word.text[:1] != "-"]
    arguments = parse_arguments(remaining, reader, patterns=True)
    if arguments is None:
        return _unknown_option(remaining, reader)
    if reader.operands != "script":
        return ""
    pattern_values = [
        option.value for option in arguments.options if option.name in reader.pattern_options
    ]
    scripts = [word.text for word in pattern_values or arguments.operands[:1] if word is not None]
    return next(
        (script for script in scripts if script not in rule_words and not sed_only_prints(script)),
        "",
    )


def _reader(
    name: str, words: Sequence[Word], rule_words: Sequence[str]
) -> tuple[Reader | None, Sequence[Word]]:
    """Return the table of the program, or of git's subcommand in the rule, and the other words."""
    commands = read_only_rules().commands
    if name != "git":
        return commands.get(name), words
    subcommand_words = [word for word in rule_words[1:3] if word.isidentifier()]
    for length in range(len(subcommand_words), 0, -1):
        texts = [word.text for word in words[:length]]
        if texts == subcommand_words[:length] and (
            reader := commands.get(f"git {' '.join(texts)}")
        ):
            return reader, words[length:]
    return None, words


def _first_match(words: Sequence[Word], pattern: str, rule_words: Collection[str]) -> str:
    return next(
        (w.text for w in words if w.text not in rule_words and re.search(pattern, w.text)), ""
    )


def _unknown_option(words: Sequence[Word], reader: Reader) -> str:
    options = [word for word in words if word.text[:1] == "-" and len(word.text) > 1]
    value = Word("x")
    for word in options:
        if all(parse_arguments([word, *[value] * count], reader) is None for count in range(3)):
            return word.text.partition("=")[0]
    return options[0].text if options else words[0].text
