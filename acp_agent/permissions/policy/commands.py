"""Apply the rules to a command line; each of its commands is checked separately.

A rule that refuses or asks applies if any command of the line matches, even when it is wrapped,
spelled differently or reordered. A rule that allows applies to a command that does only what the
rule describes; a line runs by rules only if that is true of each of its commands.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.permissions.classify import Classified, Finding, classify, worst_tier
from acp_agent.permissions.command_scope import runs_in_other_folder
from acp_agent.permissions.inner_texts import command_values, inner_texts
from acp_agent.permissions.paths import CommandContext
from acp_agent.permissions.policy.command_patterns import (
    CommandPattern,
    compile_command,
    may_equal,
    spellings,
)
from acp_agent.permissions.policy.hidden_actions import find_hidden_action
from acp_agent.permissions.policy.rules import Effect, PolicyRule, Source
from acp_agent.permissions.read_only import is_harmless_assignment, is_installed
from acp_agent.permissions.rules import option_matches, read_only_rules, shell_rules
from acp_agent.permissions.shell.syntax import Command
from acp_agent.permissions.shell.words import NONEMPTY, UNKNOWN, Word


class CommandRule:
    """A rule about commands, compiled for matching."""

    def __init__(self, rule: PolicyRule) -> None:
        """Compile a rule; raises RuleError if its pattern is invalid."""
        self.rule = rule
        self.pattern: CommandPattern | None = (
            compile_command(rule.pattern) if rule.pattern else None
        )

    @cached_property
    def is_destructive(self) -> bool:
        """Return whether the rule itself names a destructive command: `git push --force *`."""
        if self.pattern is None or not self.pattern.literal:
            return False
        nowhere = CommandContext(cwd="/nowhere", roots=("/nowhere",), home="/nobody")
        return classify(self.pattern.literal, nowhere).tier == "destructive"

    def refuses(self, variants: Iterable[tuple[str, ...]]) -> bool:
        """Return whether a command with these spellings matches."""
        pattern = self.pattern
        return pattern is None or any(
            pattern.matches(words) or pattern.matches_reordered(words) for words in variants
        )

    def may_refuse(self, variants: Iterable[tuple[str, ...]]) -> bool:
        """Return whether a command that is only partly known may match."""
        pattern = self.pattern
        return pattern is not None and any(pattern.may_match(words) for words in variants)


class CommandMatch(Struct, frozen=True, kw_only=True):
    """The result of the rules for one command of a line.

    `rule` decides about the command; None if no rule does. In that case `note` may explain why a
    matching rule does not apply.
    """

    finding: Finding
    rule: PolicyRule | None = None
    note: str = ""

    @property
    def covered(self) -> bool:
        """Return whether the command needs no question."""
        allowed = self.rule is not None and self.rule.effect == "allow"
        return allowed or self.finding.tier == "read_only"


class LineMatch(Struct, frozen=True, kw_only=True):
    """The result of the rules for a line: for each command, and the rules that refuse or ask."""

    commands: tuple[CommandMatch, ...]
    deny: PolicyRule | None = None
    ask: PolicyRule | None = None

    @property
    def allow(self) -> PolicyRule | None:
        """Return the first rule that allows a command, if all commands are allowed or only read."""
        if self.deny or self.ask or not all(match.covered for match in self.commands):
            return None
        return next((match.rule for match in self.commands if match.rule is not None), None)

    def without_allowed(self, line: Classified) -> Classified:
        """Return the line without the commands that rules allow, to check the rest against grants.

        The tier is recomputed from the remaining commands.
        """
        allowed = [
            match.finding for match in self.commands if match.rule is not None and match.covered
        ]
        if not allowed:
            return line
        findings = tuple(
            remaining
            for remaining in line.findings
            if all(remaining is not finding for finding in allowed)
        )
        return replace(
            line, findings=findings, tier=worst_tier([remaining.tier for remaining in findings])
        )


class CommandRules:
    """The rules about commands that apply in a mode for an agent."""

    def __init__(self, rules: Sequence[CommandRule]) -> None:
        self._rules: dict[Effect, dict[str, list[CommandRule]]] = {}
        for rule in rules:
            program = rule.pattern.program if rule.pattern is not None else ""
            by_program = self._rules.setdefault(rule.rule.effect, {})
            by_program.setdefault(program, []).append(rule)
        strict = [self._rules.get(effect, {}) for effect in ("deny", "ask")]
        self._strict_programs = {p.lower() for by_program in strict for p in by_program}

    def match(
        self, line: Classified, context: CommandContext, *, may_edit: Callable[[str], bool]
    ) -> LineMatch:
        """Return what the rules say about a line.

        Args:
            line: the classified line.
            context: where it would run.
            may_edit: returns whether the file at an absolute path may be written without a
                question.
        """
        deny: PolicyRule | None = None
        ask: PolicyRule | None = None
        matches: list[CommandMatch] = []
        for finding in line.findings:
            variants = spellings(finding.parsed) if finding.parsed is not None else []
            variants += self._embedded_commands(finding, context)
            deny_rule, ask_rule = (self._strict(effect, variants) for effect in ("deny", "ask"))
            if ask_rule is None and any(UNKNOWN in word for words in variants for word in words):
                uncertain = (
                    *self._possible_rules("deny", variants),
                    *self._possible_rules("ask", variants),
                )
                ask_rule = next(
                    (rule.rule for rule in uncertain if rule.may_refuse(variants)), None
                )
            deny, ask = deny or deny_rule, ask or ask_rule
            if deny_rule or ask_rule:
                matches.append(CommandMatch(finding=finding, rule=deny_rule or ask_rule))
            elif _is_plain_wrapper(finding):
                continue
            elif not finding.within or finding.tier == "destructive":
                matches.append(self._allowed(finding, line.plain, context, may_edit))
        return LineMatch(commands=tuple(matches), deny=deny, ask=ask)

    def _embedded_commands(
        self, finding: Finding, context: CommandContext
    ) -> list[tuple[str, ...]]:
        """Return the commands in options, settings and variables, for strict rules: `PAGER=x`."""
        if finding.parsed is None or not self._rules.keys() & {"deny", "ask"}:
            return []
        values = command_values(finding.parsed, include_single_words=True)[:_MAX_VALUES]
        values += islice(inner_texts(finding.parsed), _MAX_VALUES)
        commands = [
            command
            for text in values
            if self._may_name_program(text)
            for command in (
                [Command(words=(Word(text),))]
                if _PLAIN_WORD.fullmatch(text)
                else [nested.parsed for nested in classify(text, context).findings]
            )
            if command is not None
        ]
        return [variant for command in commands for variant in spellings(command)]

    def _may_name_program(self, text: str) -> bool:
        """Return whether a command line may run a program that strict rules name."""
        lowered = text.lower()
        return not _PLAIN_LINE.fullmatch(text) or any(p in lowered for p in self._strict_programs)

    def _strict(self, effect: Effect, variants: Sequence[tuple[str, ...]]) -> PolicyRule | None:
        """Return the first rule with this effect that a command matches."""
        programs = dict.fromkeys(("", *(words[0] for words in variants)))
        by_program = self._rules.get(effect, {})
        candidates = (rule for program in programs for rule in by_program.get(program, ()))
        return next((rule.rule for rule in candidates if rule.refuses(variants)), None)

    def _possible_rules(
        self, effect: Effect, variants: Sequence[tuple[str, ...]]
    ) -> Iterator[CommandRule]:
        """Yield the rules with this effect for programs that the first words may turn out to be."""
        names = {words[0] for words in variants if words}
        for program, rules in self._rules.get(effect, {}).items():
            if any(may_equal(name, program) for name in names):
                yield from rules

    def _allowed(
        self,
        finding: Finding,
        plain: bool,
        context: CommandContext,
        may_edit: Callable[[str], bool],
    ) -> CommandMatch:
        if finding.tier == "read_only":
            return CommandMatch(finding=finding)
        note = ""
        for rule in self._candidates(finding):
            why = _uncovered_reason(rule, finding, plain, context, may_edit)
            if not why:
                return CommandMatch(finding=finding, rule=rule.rule)
            note = note or f"{rule.rule.text} matches, but the command {why}"
        return CommandMatch(finding=finding, note=note)

    def _candidates(self, finding: Finding) -> Iterator[CommandRule]:
        """Yield the rules that allow the words of a command."""
        command = finding.parsed
        words = () if command is None else _words_without_folder(command)
        by_program = self._rules.get("allow", {})
        for rule in (*by_program.get(words[0] if words else "", ()), *by_program.get("", ())):
            if rule.pattern is None or (words and rule.pattern.matches(words)):
                yield rule


def _is_plain_wrapper(finding: Finding) -> bool:
    """Return whether a command only wraps another one that rules are checked against: `nohup x`.

    `timeout` and similar programs are not among the findings at all.
    """
    words = finding.words
    return finding.leaf is None and words[:1] == ("nohup",) and words[1][:1] not in {"-", ""}


def _words_without_folder(command: Command) -> tuple[str, ...]:
    """Return the words of a command, its program without a system folder."""
    texts = tuple(word.text for word in command.words)
    if not texts:
        return ()
    folder, _, name = texts[0].rpartition("/")
    return (name, *texts[1:]) if folder in read_only_rules().program_folders else texts


def _uncovered_reason(
    allowing: CommandRule,
    finding: Finding,
    plain: bool,
    context: CommandContext,
    may_edit: Callable[[str], bool],
) -> str:
    """Return why a matching rule that allows does not cover a command; "" if it does."""
    command, pattern = finding.parsed, allowing.pattern
    if finding.tier == "destructive" and not allowing.is_destructive:
        return f"{finding.reason}, which the rule does not name"
    if command is None or pattern is None:
        return ""
    words = (*command.words, *(redirect.target for redirect in command.redirects))
    if not plain or not all(_is_certain(word.text, word.static) for word in words):
        return "has parts that only the run shows"
    if any(word.pattern and word.text[:1] in "-*?[" for word in command.words):
        return "has a pattern that may match an option"
    variable = next(
        (each.name for each in command.assignments if not is_harmless_assignment(each)), ""
    )
    if variable:
        return f"sets {variable}, which may change what it does"
    output_file = next((f for f in _output_files(command, finding.folders) if not may_edit(f)), "")
    if output_file:
        return f"writes {output_file}"
    option = _running_option(command)
    hidden = option if option not in pattern.words else ""
    hidden = hidden or find_hidden_action(command.words, pattern.words)
    if hidden:
        return f"has {hidden}, which may run or write something and which the rule does not name"
    if not pattern.program and not is_installed(command.words[0], context, finding.folders):
        return "is a program of the project"
    if runs_in_other_folder(command.words[0].text, context, _git_folders(command, finding.folders)):
        return "runs in another repository"
    return ""


def _git_folders(command: Command, folders: Sequence[str]) -> Sequence[str]:
    """Return the folders that a git command runs in, with its `-C` options applied."""
    words = [word.text for word in command.words]
    if words[0].rpartition("/")[2] != "git":
        return folders
    for option, value in pairwise(words):
        if option == "-C":
            folders = [os.path.join(folder, value) for folder in folders]  # noqa: PTH118 - text that need not be a path
    return folders


def _is_certain(text: str, static: bool) -> bool:
    return static and UNKNOWN not in text and NONEMPTY not in text


def _output_files(command: Command, folders: Sequence[str]) -> Iterator[str]:
    """Yield the files that a command's redirections write, apart from harmless ones."""
    harmless = read_only_rules().harmless_redirects
    for redirect in command.redirects:
        target = redirect.target
        if target.text in harmless or (redirect.operator in {">&", "<&"} and target.text in "012-"):
            continue
        if redirect.writes:
            for folder in folders:
                yield os.path.realpath(os.path.join(folder, target.text))  # noqa: PTH118 - text that need not be a path


def _running_option(command: Command) -> str:
    """Return the option of a command whose value is run or names settings that may run; else ""."""
    languages = shell_rules().languages
    name = command.words[0].text.rpartition("/")[2]
    options = (*languages.command_options, *languages.own_command_options.get(name, ()))
    for word in command.words[1:]:
        if word.text[:1] != "-":
            continue
        if any(option_matches(word.text, option) for option in options):
            return word.text.partition("=")[0]
        if name == "git" and word.text.partition("=")[0] in _GIT_SETTINGS:
            return word.text.partition("=")[0]
    return ""


_GIT_SETTINGS = frozenset({"-c", "--config-env", "--exec-path", "--git-dir", "--work-tree"})
_MAX_WORD_LENGTH = 4_000
_PLAIN_WORD = re.compile(r"[\w./:@%+,-]+", re.ASCII)  # a command of one word for every shell
_PLAIN_LINE = re.compile(r"[\w./:@%+,= ;&|<>()-]+", re.ASCII)  # without quotes and expansions
_MAX_VALUES = 8  # values of a command that may be commands themselves
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"`<>|()]+", re.IGNORECASE)
# Hosts for curl, ssh and git: `host.example/x`, `me@host.example:x`, also attached to an option.
_HOST = re.compile(r"(?:-[\w-]*=?)?(?:[\w.+-]+@)?([\w-]+(?:\.[\w-]+)+)\.?(?:[:/?#].*)?", re.DOTALL)


def find_urls(line: Classified) -> Iterator[str]:
    """Yield the addresses that the words of a line contain or may contain."""
    for finding in line.findings:
        for each in finding.words:
            word = each[:_MAX_WORD_LENGTH]
            yield from _ADDRESS.findall(word)
            host = _HOST.fullmatch(word)
            if host is not None:
                yield f"https://{host[1]}"


def patterns_cover_line(command: str, patterns: Sequence[str], context: CommandContext) -> bool:
    """Return whether one of these `Bash(…)` patterns covers each command of a line.

    Raises:
        RuleError: a pattern is invalid.
    """
    source = Source(file="")
    rules = [
        CommandRule(
            PolicyRule(
                effect="allow", subject="shell", pattern=pattern, text=pattern, source=source
            )
        )
        for pattern in patterns
    ]
    line = classify(command, context)
    commands = CommandRules(rules).match(line, context, may_edit=lambda _path: True).commands
    return bool(commands) and all(match.rule is not None for match in commands)
