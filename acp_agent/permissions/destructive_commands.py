"""Decide whether a command is destructive by its program, its options and its subcommand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from acp_agent.permissions.inner_texts import option_programs
from acp_agent.permissions.rules import Rule, has_option, operands, read_only_rules, shell_rules
from acp_agent.permissions.shell.syntax import Command

_DELETES = "deletes data"
_MAX_SUBCOMMANDS = 3  # leading words that may be a subcommand
_SUBCOMMAND = re.compile(r"[A-Za-z]\w*(?:[:.-]\w+)*", re.ASCII)
_SEPARATOR = re.compile(r"[ :._-]")


def rule_reason(name: str, texts: Sequence[str]) -> str:
    """Return why a rule counts a use of the program `name` as destructive; "" if none does."""
    for rule in shell_rules().rules:
        if name in rule.programs and list(texts) != ["--version"] and _applies(rule, name, texts):
            return rule.why
    return _git_setting_reason(texts) if name == "git" else ""


def subcommand_reason(command: Command, name: str) -> str:
    """Return why a command for which no rule applies is destructive; "" if it is not.

    Many programs name what they do: `rails db:drop`, `flyctl apps destroy`, `make deploy`.
    """
    if name == "git" or name in shell_rules().writers.all | shell_rules().writers.last:
        return ""
    rules = shell_rules().subcommands
    texts = [word.text for word in command.words[1:]]
    if rules.options.intersection(texts):
        return _DELETES
    leading = list(takewhile(_SUBCOMMAND.fullmatch, texts[:_MAX_SUBCOMMANDS]))
    if texts[:1] == ["manage.py"]:
        leading = texts[1:2]
    if not rules.harmless.isdisjoint(_SEPARATOR.split(" ".join(leading))):
        return ""
    for index, text in enumerate(leading):
        words = _SEPARATOR.split(text)
        if index > 1:
            words = [text]
        elif "." in text or ":" in text:
            words = words[-1:]  # neither `delete-users.py` nor `drop:build` deletes anything
        if not rules.deleting.isdisjoint((words[0], words[-1])):
            return _DELETES
        if words[-1] in rules.publishing:
            return "publishes to everyone"
    return _DELETES if re.search(rules.phrases, " ".join(leading)) else ""


def option_reason(command: Command, name: str) -> str:
    """Return why an option makes a program that only reads run one of a folder: `sort`, `rg`."""
    reader = read_only_rules().commands.get(name)
    if reader is None or reader.operands in {"words", "text", "format"}:
        return ""
    if any("/" in text for text in option_programs(command)):
        return "runs a program that an option names"
    return ""


def _git_setting_reason(texts: Sequence[str]) -> str:
    rules = shell_rules().git_settings
    words = operands(texts, shell_rules().globals["git"])
    if words[:1] == ["config"]:
        words = [word for word in words[1:] if word != "set"]
        if len(words) > 1 and re.fullmatch(rules.names, words[0]):
            hooks = words[0].lower() == "core.hookspath"
            if hooks or re.search(rules.values, words[1]):
                return rules.why.format(words[0])
    return ""


def _applies(rule: Rule, name: str, texts: Sequence[str]) -> bool:
    if rule.subcommand:
        leading = operands(texts, shell_rules().globals.get(name, ()))
        if tuple(leading[: len(rule.subcommand)]) != rule.subcommand:
            return False
    if rule.unless and (has_option(texts, rule.unless) or set(rule.unless) & {*texts}):
        return False
    if not (rule.options or rule.words or rule.word_prefixes):
        return True
    return (
        bool(rule.options and has_option(texts, rule.options))
        or bool(rule.words.intersection(texts))
        or any(text.startswith(prefix) for text in texts for prefix in rule.word_prefixes)
    )
