"""What the rules say about a command line: each of its commands is looked at alone.

A rule that refuses or asks counts where any command of the line matches, however it is wrapped,
spelled or ordered. A rule that allows counts for a command that does what the rule's words say and
nothing else; a line runs by rules where that holds for each of its commands.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.permissions.classify import (
    Classified,
    Finding,
    classify,
    worst_tier,
)
from acp_agent.permissions.command_scope import is_elsewhere
from acp_agent.permissions.inner_texts import command_values, inner_texts
from acp_agent.permissions.paths import CommandContext
from acp_agent.permissions.policy.command_patterns import (
    CommandPattern,
    compile_command,
    spellings,
)
from acp_agent.permissions.policy.hidden_actions import hidden_action
from acp_agent.permissions.policy.rules import Effect, PolicyRule, Source
from acp_agent.permissions.read_only import is_harmless, is_installed
from acp_agent.permissions.rules import option_matches, read_only_rules, shell_rules
from acp_agent.permissions.shell.syntax import Command
from acp_agent.permissions.shell.words import NONEMPTY, UNKNOWN


class CommandRule:
    """A rule about commands, ready to be compared."""

    def __init__(self, rule: PolicyRule) -> None:
        """Compile a rule; RuleError where its pattern has no meaning."""
        self.rule = rule
        self.pattern: CommandPattern | None = (
            compile_command(rule.pattern) if rule.pattern else None
        )

    @cached_property
    def destroys(self) -> bool:
        """Whether what the rule names itself destroys something: `rm *`, `git push --force *`."""
        if self.pattern is None or not self.pattern.literal:
            return False
        nowhere = CommandContext(cwd="/nowhere", roots=("/nowhere",), home="/nobody")
        return classify(self.pattern.literal, nowhere).tier == "destructive"

    def refuses(self, ways: Iterable[tuple[str, ...]]) -> bool:
        """Whether a command matches, by the ways in which it may be spelled."""
        pattern = self.pattern
        return pattern is None or any(
            pattern.matches(words) or pattern.matches_reordered(words) for words in ways
        )

    def may_refuse(self, ways: Iterable[tuple[str, ...]]) -> bool:
        """Whether a command may match that is only known in part before it runs."""
        pattern = self.pattern
        return pattern is not None and any(pattern.may_match(words) for words in ways)


class Part(Struct, frozen=True, kw_only=True):
    """What the rules say about one command of a line.

    `rule` decides about it, None where none does; then `note` may say why one that matches does
    not count.
    """

    finding: Finding
    rule: PolicyRule | None = None
    note: str = ""

    @property
    def covered(self) -> bool:
        """Whether the command needs no question."""
        allowed = self.rule is not None and self.rule.effect == "allow"
        return allowed or self.finding.tier == "read_only"


class LineMatch(Struct, frozen=True, kw_only=True):
    """What the rules say about a line: the one that refuses or asks, and about each command."""

    parts: tuple[Part, ...]
    deny: PolicyRule | None = None
    ask: PolicyRule | None = None

    @property
    def allow(self) -> PolicyRule | None:
        """The first rule that allows a command, where each is allowed or only reads."""
        if self.deny or self.ask or not all(part.covered for part in self.parts):
            return None
        return next((part.rule for part in self.parts if part.rule is not None), None)

    def without_allowed(self, line: Classified) -> Classified:
        """Return the line without the commands that rules allow, for what remembered answers say.

        A command that destroys something is left in: no remembered answer is about it.
        """
        allowed = [part.finding for part in self.parts if part.rule is not None and part.covered]
        if not allowed:
            return line
        findings = tuple(one for one in line.findings if all(one is not each for each in allowed))
        return replace(line, findings=findings, tier=worst_tier([one.tier for one in findings]))


class CommandRules:
    """The rules about commands that hold in a mode for an agent."""

    def __init__(self, rules: Sequence[CommandRule]) -> None:
        self._rules: dict[Effect, dict[str, list[CommandRule]]] = {}
        for each in rules:
            program = each.pattern.program if each.pattern is not None else ""
            by_program = self._rules.setdefault(each.rule.effect, {})
            by_program.setdefault(program, []).append(each)

    def match(
        self, line: Classified, context: CommandContext, *, may_edit: Callable[[str], bool]
    ) -> LineMatch:
        """Return what the rules say about a line.

        Args:
            line: the line.
            context: where it would run.
            may_edit: whether a file, by its absolute path, may be written without a question.
        """
        deny: PolicyRule | None = None
        ask: PolicyRule | None = None
        parts: list[Part] = []
        for finding in line.findings:
            ways = spellings(finding.parsed) if finding.parsed is not None else []
            ways += self._told_to_run(finding, context)
            refused, asked = (self._strict(effect, ways) for effect in ("deny", "ask"))
            if asked is None and any(UNKNOWN in word for words in ways for word in words):
                uncertain = (*self._about("deny", ways), *self._about("ask", ways))
                asked = next((each.rule for each in uncertain if each.may_refuse(ways)), None)
            deny, ask = deny or refused, ask or asked
            if refused or asked:
                parts.append(Part(finding=finding, rule=refused or asked))
            elif _is_stripped(finding):
                continue
            elif not finding.within or finding.tier == "destructive":
                parts.append(self._allowed(finding, line.plain, context, may_edit))
        return LineMatch(parts=tuple(parts), deny=deny, ask=ask)

    def _told_to_run(self, finding: Finding, context: CommandContext) -> list[tuple[str, ...]]:
        """The commands in options, settings and variables, for rules that refuse: `PAGER=x`."""
        if finding.parsed is None or not self._rules.keys() & {"deny", "ask"}:
            return []
        values = command_values(finding.parsed, every=True)[:_MOST_VALUES]
        values += islice(inner_texts(finding.parsed), _MOST_VALUES)
        inner = [one for text in values for one in classify(text, context).findings]
        return [way for one in inner if one.parsed is not None for way in spellings(one.parsed)]

    def _strict(self, effect: Effect, ways: Sequence[tuple[str, ...]]) -> PolicyRule | None:
        """Return the first rule with an effect that a command matches."""
        programs = dict.fromkeys(("", *(words[0] for words in ways)))
        by_program = self._rules.get(effect, {})
        candidates = (each for program in programs for each in by_program.get(program, ()))
        return next((each.rule for each in candidates if each.refuses(ways)), None)

    def _about(self, effect: Effect, ways: Sequence[tuple[str, ...]]) -> Iterator[CommandRule]:
        """Yield the rules with an effect about programs that the first words may come to."""
        names = {words[0] for words in ways if words}
        open_ended = any(UNKNOWN in name or NONEMPTY in name for name in names)
        for program, rules in self._rules.get(effect, {}).items():
            if open_ended or program in names:
                yield from rules

    def _allowed(
        self,
        finding: Finding,
        plain: bool,
        context: CommandContext,
        may_edit: Callable[[str], bool],
    ) -> Part:
        if finding.tier == "read_only":
            return Part(finding=finding)
        note = ""
        for each in self._candidates(finding):
            why = _why_not(each, finding, plain, context, may_edit)
            if not why:
                return Part(finding=finding, rule=each.rule)
            note = note or f"{each.rule.text} matches, but the command {why}"
        return Part(finding=finding, note=note)

    def _candidates(self, finding: Finding) -> Iterator[CommandRule]:
        """The rules that allow what the words of a command say."""
        command = finding.parsed
        words = () if command is None else _as_named(command)
        by_program = self._rules.get("allow", {})
        for each in (*by_program.get(words[0] if words else "", ()), *by_program.get("", ())):
            if each.pattern is None or (words and each.pattern.matches(words)):
                yield each


def _is_stripped(finding: Finding) -> bool:
    """Whether a command only runs another one, about which the rules are: `nohup npm test`.

    `timeout` and its kind are not among the findings at all.
    """
    words = finding.words
    return finding.leaf is None and words[:1] == ("nohup",) and words[1][:1] not in {"-", ""}


def _as_named(command: Command) -> tuple[str, ...]:
    """The words of a command; its program without a folder of the system's."""
    texts = tuple(word.text for word in command.words)
    if not texts:
        return ()
    folder, _, name = texts[0].rpartition("/")
    return (name, *texts[1:]) if folder in read_only_rules().program_folders else texts


def _why_not(
    allowing: CommandRule,
    finding: Finding,
    plain: bool,
    context: CommandContext,
    may_edit: Callable[[str], bool],
) -> str:
    """Return why a rule that allows what a command's words say does not cover it; "" if it does."""
    command, pattern = finding.parsed, allowing.pattern
    if finding.tier == "destructive" and not allowing.destroys:
        return f"{finding.reason}, which the rule does not name"
    if command is None or pattern is None:
        return ""
    words = (*command.words, *(redirect.target for redirect in command.redirects))
    if not plain or not all(_is_certain(word.text, word.static) for word in words):
        return "has parts that only the run shows"
    if any(word.pattern and word.text[:1] in "-*?[" for word in command.words):
        return "has a pattern that may match an option"
    variable = next((each.name for each in command.assignments if not is_harmless(each)), "")
    if variable:
        return f"sets {variable}, which may change what it does"
    written = next((f for f in _written(command, finding.folders) if not may_edit(f)), "")
    if written:
        return f"writes {written}"
    option = _running_option(command)
    hidden = option if option not in pattern.words else ""
    hidden = hidden or hidden_action(command.words, pattern.words)
    if hidden:
        return f"has {hidden}, which may run or write something and which the rule does not name"
    if not pattern.program and not is_installed(command.words[0], context, finding.folders):
        return "is a program of the project"
    if is_elsewhere(command.words[0].text, context, _git_folders(command, finding.folders)):
        return "runs in another repository"
    return ""


def _git_folders(command: Command, folders: Sequence[str]) -> Sequence[str]:
    """The folders that a command runs in, behind the `-C` of git."""
    words = [word.text for word in command.words]
    if words[0].rpartition("/")[2] != "git":
        return folders
    for option, value in pairwise(words):
        if option == "-C":
            folders = [os.path.join(folder, value) for folder in folders]  # noqa: PTH118 - text that need not be a path
    return folders


def _is_certain(text: str, static: bool) -> bool:
    return static and UNKNOWN not in text and NONEMPTY not in text


def _written(command: Command, folders: Sequence[str]) -> Iterator[str]:
    """The files that a command is redirected to, and from unless it reads below a folder."""
    harmless = read_only_rules().harmless_redirects
    for redirect in command.redirects:
        target = redirect.target
        if target.text in harmless or (redirect.operator in {">&", "<&"} and target.text in "012-"):
            continue
        if redirect.writes:
            for folder in folders:
                yield os.path.realpath(os.path.join(folder, target.text))  # noqa: PTH118 - text that need not be a path


def _running_option(command: Command) -> str:
    """The option of a command whose value is run, or names settings that may be; "" for none."""
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
_LONGEST_WORD = 4_000
_MOST_VALUES = 8  # of a command, that may be commands themselves
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"`<>|()]+", re.IGNORECASE)
# `host.example/x`, `me@host.example:x`, and behind an option: hosts for curl, ssh and git.
_HOST = re.compile(r"(?:-[\w-]*=?)?(?:[\w.+-]+@)?([\w-]+(?:\.[\w-]+)+)\.?(?:[:/?#].*)?", re.DOTALL)


def hosts_in(line: Classified) -> Iterator[str]:
    """The addresses that the words of a line name or may name."""
    for finding in line.findings:
        for each in finding.words:
            word = each[:_LONGEST_WORD]
            yield from _ADDRESS.findall(word)
            host = _HOST.fullmatch(word)
            if host is not None:
                yield f"https://{host[1]}"


def all_match(command: str, patterns: Sequence[str], context: CommandContext) -> bool:
    """Return whether each command of a line does what one of these patterns of `Bash(…)` says.

    Raises:
        RuleError: a pattern has no meaning.
    """
    source = Source(file="")
    rules = [
        CommandRule(
            PolicyRule(effect="allow", subject="shell", pattern=one, text=one, source=source)
        )
        for one in patterns
    ]
    line = classify(command, context)
    parts = CommandRules(rules).match(line, context, may_edit=lambda _path: True).parts
    return bool(parts) and all(part.rule is not None for part in parts)
