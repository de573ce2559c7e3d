"""The policy: compiles and indexes rules, and finds the rule that decides about a call.

Deny rules take precedence over ask rules, and those over allow rules; how specific a rule is does
not matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate as translate_glob
from typing import Literal

from msgspec import Struct

from acp_agent.permissions.access import Mode
from acp_agent.permissions.classify import Classified
from acp_agent.permissions.hosts import url_host
from acp_agent.permissions.paths import CommandContext
from acp_agent.permissions.policy.command_files import mentioned_files
from acp_agent.permissions.policy.commands import CommandRule, CommandRules, LineMatch, find_urls
from acp_agent.permissions.policy.path_patterns import Folders, PathPattern, compile_path
from acp_agent.permissions.policy.rules import Effect, PolicyRule, Subject, tool_name

_ORDER: tuple[Effect, ...] = ("deny", "ask", "allow")


class Situation(Struct, frozen=True, kw_only=True):
    """The conditions of a rule besides the call itself: the mode, the agent and the folders.

    `agent` is the name of the agent that makes the call; "" is the session's main agent.
    """

    mode: Mode
    folders: Folders
    agent: str = ""


class _FileRule(Struct, frozen=True):
    rule: PolicyRule
    pattern: PathPattern | None

    def matches(self, names: Sequence[str], folders: Folders) -> bool:
        """Return whether a file matches by its names; one may be a link to the other."""
        if self.pattern is None:
            return True
        tolerant = self.rule.effect != "allow"
        each = (self.pattern.matches(name, folders, tolerant=tolerant) for name in names)
        return any(each) if tolerant else all(each)


class _NameRule(Struct, frozen=True):
    """A rule about a host or a tool of an MCP server."""

    rule: PolicyRule
    regex: re.Pattern[str] | None


class Policy:
    """All rules that apply in a folder."""

    def __init__(self, rules: Iterable[PolicyRule] = (), problems: Sequence[str] = ()) -> None:
        """Compile rules.

        Args:
            problems: the errors in rule files that could not be used.

        Raises:
            RuleError: the pattern of a rule is invalid.
        """
        self.rules = tuple(rules)
        self.problems = tuple(problems)
        self._commands: list[CommandRule] = []
        self._files: dict[Subject, list[_FileRule]] = {"edit": [], "read": []}
        named: tuple[Subject, ...] = ("web_fetch", "web_search", "mcp", "agent", "skill")
        self._names: dict[Subject, list[_NameRule]] = {
            subject: [] for subject in (*named, "background")
        }
        for rule in self.rules:
            self._add(rule)
        self._command_rules: dict[tuple[Mode, str], CommandRules] = {}

    def __bool__(self) -> bool:
        """Return whether there is any rule."""
        return bool(self.rules)

    def command(
        self,
        line: Classified,
        context: CommandContext,
        situation: Situation,
        *,
        may_edit: Callable[[str], bool],
    ) -> LineMatch:
        """Return what the rules say about a command line.

        Ask and deny rules about files and hosts also apply to those that the words name.

        Args:
            context: where it would run.
            situation: the mode, the agent and the folders.
            may_edit: returns whether the file at an absolute path may be written without a
                question.
        """
        key = (situation.mode, situation.agent)
        rules = self._command_rules.get(key)
        if rules is None:
            applicable = [
                command_rule for command_rule in self._commands if command_rule.rule.applies(*key)
            ]
            rules = self._command_rules.setdefault(key, CommandRules(applicable))

        match = rules.match(line, context, may_edit=may_edit)
        for rule in self._mentioned_rules(line, context, situation):
            if rule.effect == "deny" and match.deny is None:
                match = LineMatch(commands=match.commands, deny=rule, ask=match.ask)
            elif rule.effect == "ask" and match.ask is None:
                match = LineMatch(commands=match.commands, deny=match.deny, ask=rule)
        return match

    def _mentioned_rules(
        self, line: Classified, context: CommandContext, situation: Situation
    ) -> list[PolicyRule]:
        """Return the ask and deny rules about files and hosts that the words of a line name."""
        rules: list[PolicyRule | None] = []
        for subject in ("read", "edit"):
            strict = [
                file_rule
                for file_rule in self._files[subject]
                if file_rule.rule.effect != "allow" and file_rule.pattern is not None
            ]
            if strict:
                paths = dict.fromkeys(mentioned_files(line, context, writes=subject == "edit"))
                rules.append(self._first(strict, [[path] for path in paths], situation))
        if self._names["web_fetch"]:
            hosts = map(url_host, find_urls(line))
            rules += [self.host(host, situation, by_command=True) for host in hosts]
        return [rule for rule in rules if rule is not None]

    def files(
        self, subject: Subject, files: Sequence[Sequence[str]], situation: Situation
    ) -> PolicyRule | None:
        """Return the rule that decides about reading or editing files, or None.

        Args:
            subject: "read" or "edit".
            files: the absolute paths of each file: resolved, and as requested.
            situation: the mode, the agent and the folders.
        """
        return self._first(self._files[subject], files, situation)

    def _first(
        self, rules: Sequence[_FileRule], files: Sequence[Sequence[str]], situation: Situation
    ) -> PolicyRule | None:
        applicable = [
            candidate
            for candidate in rules
            if candidate.rule.applies(situation.mode, situation.agent)
        ]
        folders = situation.folders
        for effect in ("deny", "ask"):
            for candidate in applicable:
                if candidate.rule.effect == effect and any(
                    candidate.matches(names, folders) for names in files
                ):
                    return candidate.rule
        allowing = [candidate for candidate in applicable if candidate.rule.effect == "allow"]
        deciding = [next((a for a in allowing if a.matches(f, folders)), None) for f in files]
        first = deciding[0] if deciding and all(deciding) else None
        return None if first is None else first.rule

    def host(
        self, host: str, situation: Situation, *, by_command: bool = False
    ) -> PolicyRule | None:
        """Return the rule that decides about a request to a host, or None.

        Args:
            host: in ASCII, with its port unless that is the scheme's default.
            situation: the mode, the agent and the folders.
            by_command: the host is named by a command; then only ask and deny rules with a host
                apply, because rules without one are about the tool.
        """
        rules = self._names["web_fetch"]
        if by_command:
            rules = [r for r in rules if r.regex is not None and r.rule.effect != "allow"]
        bare = re.sub(r":\d+$", "", host)
        return _decide(rules, situation, allow=host, refuse=bare)

    def search(self, situation: Situation) -> PolicyRule | None:
        """Return the rule that decides about a web search, or None."""
        return _decide(self._names["web_search"], situation, allow="", refuse="")

    def named(
        self, subject: Literal["", "agent", "skill", "background"], name: str, situation: Situation
    ) -> PolicyRule | None:
        """Return the rule about an agent, a skill or all background commands, or None."""
        if subject == "":
            return None
        return _decide(self._names[subject], situation, allow=name, refuse=name)

    def tool(self, server: str, tool: str, situation: Situation) -> PolicyRule | None:
        """Return the rule that decides about a tool of an MCP server, or None."""
        name = tool_name(server, tool)
        return _decide(self._names["mcp"], situation, allow=name, refuse=name)

    def _add(self, rule: PolicyRule) -> None:
        subject = rule.subject
        if subject in {"shell", "any"}:
            self._commands.append(CommandRule(rule))
        for indexed_subject, files in self._files.items():
            if subject in {indexed_subject, "any"}:
                anywhere = rule.effect != "allow"
                path = compile_path(rule.pattern, anywhere=anywhere) if rule.pattern else None
                files.append(_FileRule(rule, path))
        for indexed_subject, names in self._names.items():
            anything = subject == "any" and indexed_subject != "background"
            if subject == indexed_subject or anything:
                names.append(_NameRule(rule, _name_pattern(indexed_subject, rule.pattern)))


def _decide(
    rules: Sequence[_NameRule], situation: Situation, *, allow: str, refuse: str
) -> PolicyRule | None:
    for effect in _ORDER:
        name = allow if effect == "allow" else refuse
        for candidate in rules:
            rule = candidate.rule
            if rule.effect != effect or not rule.applies(situation.mode, situation.agent):
                continue
            if candidate.regex is None or candidate.regex.fullmatch(name):
                return rule
    return None


def _name_pattern(subject: Subject, pattern: str) -> re.Pattern[str] | None:
    if not pattern:
        return None
    if subject in {"agent", "skill"}:  # others write the same names with capital letters
        return re.compile(translate_glob(pattern), re.IGNORECASE)
    if subject == "mcp":
        return re.compile(translate_glob(pattern))
    labels = [
        # A leading `*` matches any subdomain; elsewhere it matches within one label.
        ".+" if part == "*" and not at else re.escape(part).replace(r"\*", "[^.]*")
        for at, part in enumerate(url_host(f"https://{pattern}").split("."))
    ]
    return re.compile(r"\.".join(labels))
