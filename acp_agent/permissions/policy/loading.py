"""Where rules come from: the user's configuration, and files that a project brings along.

A project's rules may only tighten: its rules that ask and refuse hold, its rules that allow are
left out unless the folder is trusted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from acp_agent.config.load import parse, read_text
from acp_agent.config.policy_types import PermissionsConfig, RuleConfig
from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.locations import find_repository
from acp_agent.permissions.policy.examples import check_examples
from acp_agent.permissions.policy.policy import Policy
from acp_agent.permissions.policy.rules import Effect, PolicyRule, RuleError, Source, read_rule

KEY = "permissions"
EFFECTS: tuple[Effect, ...] = ("deny", "ask", "allow")
PROJECT_FILE = ".acp-agent/config.toml"

_Stamp = tuple[int, int, int]


def rules_of(config: PermissionsConfig, source: Source) -> list[PolicyRule]:
    """Return the rules of a configuration, compiled and checked against their examples.

    Args:
        config: the table.
        source: the file; lines are added where they are needed.

    Raises:
        ConfigError: one cannot be used, or does not fit its examples; with its key.
    """
    found = []
    for effect in EFFECTS:
        for index, each in enumerate(getattr(config, effect)):
            key = (KEY, effect, index)
            table = each if isinstance(each, RuleConfig) else RuleConfig(rule=each)
            place = msgspec.structs.replace(source, key=key)
            try:
                rule = make_rule(effect, table, place)
                check_examples(rule, table.match, table.not_match)
            except RuleError as error:
                message = f"the rule {table.rule} cannot be used: {error}"
                raise ConfigError(message, key=key) from None
            found.append(rule)
    return found


def make_rule(effect: Effect, table: RuleConfig, source: Source) -> PolicyRule:
    """Return one rule.

    Raises:
        RuleError: it has no meaning here.
    """
    subject, pattern = read_rule(effect, table.rule)
    rule = PolicyRule(
        effect=effect,
        text=table.rule.strip(),
        subject=subject,
        pattern=pattern,
        source=source,
        justification=" ".join(table.justification.split()),
        modes=tuple(table.modes),
        agents=tuple(table.agents),
    )
    Policy([rule])  # compiles its pattern
    return rule


def user_rules(config: PermissionsConfig, file: Path) -> list[PolicyRule]:
    """Return the rules of the user's configuration, with their lines.

    Raises:
        ConfigError: see `rules_of`.
    """
    if not (config.allow or config.ask or config.deny):
        return []
    rules = rules_of(config, Source(file=str(file)))
    return list(_with_lines(rules, read_text(file)))


def _with_lines(rules: Sequence[PolicyRule], text: str) -> Iterator[PolicyRule]:
    from acp_agent.config.toml_errors import find_lines  # noqa: PLC0415 - most have no rules

    lines = find_lines(text, [rule.source.key for rule in rules])
    for rule, line in zip(rules, lines, strict=True):
        source = msgspec.structs.replace(rule.source, line=line)
        yield msgspec.structs.replace(rule, source=source)


class Policies:
    """The policies of all folders: the user's rules, and those that a project adds.

    Safe to use from several threads. A project's files are read again when they have changed.
    """

    def __init__(
        self,
        rules: Sequence[PolicyRule] = (),
        *,
        trusted: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Make the policies.

        Args:
            rules: the user's.
            trusted: whether the user trusts a folder, so that its rules may allow as well.
        """
        self._rules = tuple(rules)
        self._trusted = trusted
        self._user = Policy(self._rules)
        self._known: dict[str, tuple[tuple[_Stamp | None, ...], bool, Policy]] = {}

    def of(self, project: str) -> Policy:
        """Return the policy of a session in an absolute folder. Looks at some files."""
        files = project_files(project)
        stamps = tuple(_stamp(file) for file in files)
        if not any(stamps):
            return self._user
        trusted = self._trusted(project)
        known = self._known.get(project)
        if known is None or known[:2] != (stamps, trusted):
            policy = self._read([file for file, s in zip(files, stamps, strict=True) if s], trusted)
            known = self._known[project] = (stamps, trusted, policy)
        return known[2]

    def _read(self, files: Sequence[str], trusted: bool) -> Policy:
        rules, problems = list(self._rules), []
        for file in files:
            try:
                found = project_rules(Path(file))
            except ConfigError as error:
                problems.append(str(error))
                rules.append(_ask_about_all(file, str(error)))
                continue
            rules += [rule for rule in found if trusted or rule.effect != "allow"]
        return Policy(rules, problems)


def project_files(project: str) -> tuple[str, ...]:
    """Return the files that may have rules of a project: the repository's, and the folder's."""
    root = find_repository(Path(project))
    folders = dict.fromkeys([str(root), project] if root is not None else [project])
    return tuple(f"{folder}/{PROJECT_FILE}" for folder in folders)


def project_rules(file: Path) -> list[PolicyRule]:
    """Return the rules of a project's file.

    Raises:
        ConfigError: it cannot be read, or has a mistake.
    """
    from acp_agent.config.problems import find_problems  # noqa: PLC0415 - few projects have rules
    from acp_agent.config.toml_errors import find_lines  # noqa: PLC0415 - likewise

    text = read_text(file)
    table = parse(file, text).get(KEY, {})
    source = Source(file=str(file), project=True)
    problem = next(find_problems(table, PermissionsConfig), None)
    if problem is not None:
        (line,) = find_lines(text, [(KEY, *problem.path)])
        where = str(msgspec.structs.replace(source, line=line))
        raise ConfigError(f"{where}: {KEY}.{problem.key}: {problem.text}")
    try:
        rules = rules_of(msgspec.convert(table, PermissionsConfig), source)
    except ConfigError as error:
        (line,) = find_lines(text, [error.key])
        where = str(msgspec.structs.replace(source, line=line))
        raise ConfigError(f"{where}: {error}") from None
    return list(_with_lines(rules, text))


def _ask_about_all(file: str, problem: str) -> PolicyRule:
    """A rule in the place of those of a file that cannot be read, which may have refused."""
    source = Source(file=file, project=True)
    table = RuleConfig(
        rule="*", justification=f"the rules of this project cannot be read: {problem}"
    )
    return make_rule("ask", table, source)


def _stamp(file: str) -> _Stamp | None:
    try:
        status = os.stat(file)  # noqa: PTH116 - for every call
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
