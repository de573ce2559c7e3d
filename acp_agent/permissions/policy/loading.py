"""Load rules from the user's configuration and from files of a project.

A project's rules may only tighten: its ask and deny rules apply, its allow rules are ignored unless
the user trusts the current content of the file. A project's `.claude/settings.json` is treated like
a file of ours, because its rules have the same form (https://code.claude.com/docs/en/permissions).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from acp_agent.config.load import SIZE_LIMIT, decode, parse, read_text
from acp_agent.config.policy_types import PermissionsConfig, RuleConfig
from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.locations import (
    find_repository,
    project_top,
    worktree_owner,
)
from acp_agent.permissions.classify import classify
from acp_agent.permissions.hosts import url_host
from acp_agent.permissions.paths import CommandContext
from acp_agent.permissions.policy.path_patterns import Folders
from acp_agent.permissions.policy.policy import Policy, Situation
from acp_agent.permissions.policy.rules import (
    Effect,
    PolicyRule,
    RuleError,
    Source,
    read_rule,
    tool_subject,
)
from acp_agent.platform.decoding import convert, decode_json
from acp_agent.platform.trusted_files import (
    RefusedFileError,
    file_stamp,
    read_trusted,
    trusted_owners,
)
from acp_agent.trust.store import Item, Trusts, folder_name, text_item

KEY = "permissions"
EFFECTS: tuple[Effect, ...] = ("deny", "ask", "allow")
PROJECT_FILE = ".acp-agent/config.toml"
_EXAMPLE_PROJECT = "/project"  # the folder that relative paths of examples start from
_SETTINGS = (".claude/settings.json", ".claude/settings.local.json")

_Stamps = tuple[tuple[int, int, int] | None, ...]


def compile_rules(config: PermissionsConfig, source: Source) -> list[PolicyRule]:
    """Return the rules of a configuration, compiled and checked against their examples.

    Args:
        source: the file; line numbers are added later.

    Raises:
        ConfigError: a rule is invalid or does not match its examples; the error has its key.
    """
    rules = []
    for effect in EFFECTS:
        for index, entry in enumerate(getattr(config, effect)):
            key = (KEY, effect, index)
            table = entry if isinstance(entry, RuleConfig) else RuleConfig(rule=entry)
            rule_source = msgspec.structs.replace(source, key=key)
            try:
                rule = make_rule(effect, table, rule_source)
                check_examples(rule, table.match, table.not_match)
            except RuleError as error:
                message = f"the rule {table.rule} cannot be used: {error}"
                raise ConfigError(message, key=key) from None
            rules.append(rule)
    return rules


def check_examples(rule: PolicyRule, match: Sequence[str], not_match: Sequence[str]) -> None:
    """Check that a rule matches the examples of `match` and none of `not_match`.

    An example is a command line, a path, an address or a host, or `mcp__server__tool`.

    Raises:
        RuleError: an example contradicts the rule.
    """
    for example in match:
        if not _is_about(rule, example):
            raise RuleError(f"its example {example!r} in `match` does not match")
    for example in not_match:
        if _is_about(rule, example):
            raise RuleError(f"its example {example!r} in `not_match` matches")


def _is_about(rule: PolicyRule, example: str) -> bool:
    policy = Policy([rule])
    home = os.path.realpath(Path.home())
    situation = Situation(
        mode=rule.modes[0] if rule.modes else "ask",
        agent=rule.agents[0] if rule.agents else "",
        folders=Folders(_EXAMPLE_PROJECT, home),
    )
    match rule.subject:
        case "shell" | "any":
            context = CommandContext(cwd=_EXAMPLE_PROJECT, roots=(_EXAMPLE_PROJECT,), home=home)
            line = policy.command(
                classify(example, context), context, situation, may_edit=lambda _: False
            )
            return rule in {line.deny, line.ask, line.allow}
        case "edit" | "read":
            path = os.path.expanduser(example)  # noqa: PTH111 - a text
            path = os.path.normpath(os.path.join(_EXAMPLE_PROJECT, path))  # noqa: PTH118 - likewise
            return policy.files(rule.subject, [[path]], situation) is not None
        case "web_fetch":
            host = url_host(example if "://" in example else f"https://{example}")
            return policy.host(host, situation) is not None
        case "web_search" | "background":
            return True
        case "agent" | "skill":
            return policy.named(rule.subject, example, situation) is not None
        case "mcp":
            server, _, tool = example.removeprefix("mcp__").partition("__")
            return policy.tool(server, tool, situation) is not None


def make_rule(effect: Effect, table: RuleConfig, source: Source) -> PolicyRule:
    """Return one rule. Raises RuleError if the rule is invalid."""
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
    Policy([rule])  # compiles the pattern, to check it
    return rule


def user_rules(config: PermissionsConfig, file: Path) -> list[PolicyRule]:
    """Return the rules of the user's configuration, with their lines. Raises ConfigError."""
    if not (config.allow or config.ask or config.deny):
        return []
    rules = compile_rules(config, Source(file=str(file)))
    return list(_with_lines(rules, read_text(file)))


def _with_lines(rules: Sequence[PolicyRule], text: str) -> Iterator[PolicyRule]:
    from acp_agent.config.toml_errors import find_lines  # noqa: PLC0415 - most have no rules

    lines = find_lines(text, [rule.source.key for rule in rules])
    for rule, line in zip(rules, lines, strict=True):
        source = msgspec.structs.replace(rule.source, line=line)
        yield msgspec.structs.replace(rule, source=source)


class Policies:
    """The policies of all folders: the user's rules plus those of each project.

    Safe to use from several threads. A project's files are read again when they have changed.
    """

    def __init__(
        self, rules: Sequence[PolicyRule] = (), *, trusts: Trusts = lambda _: False
    ) -> None:
        """Make the policies.

        Args:
            trusts: returns whether the user trusts a project's file, so that its allow rules apply.
        """
        self._rules = tuple(rules)
        self._trusts = trusts
        self._user = Policy(self._rules)
        self._loaded: dict[str, tuple[_Stamps, tuple[ProjectRules, ...]]] = {}
        self._policies: dict[str, tuple[_Stamps, tuple[bool, ...], Policy]] = {}

    def for_project(self, project: str) -> Policy:
        """Return the policy of a session in an absolute folder. Checks some files on disk."""
        project = worktree_owner(project)
        files = project_files(project)
        stamps = tuple(map(file_stamp, files))
        if not any(stamps):
            return self._user
        read = self._loaded.get(project)
        if read is None or read[0] != stamps:
            read = self._loaded[project] = stamps, project_rules(project)
        trusted = tuple(self._trusts(rules.item) for rules in read[1])
        cached = self._policies.get(project)
        if cached is None or cached[:2] != (stamps, trusted):
            policy = self._policy(read[1], trusted)
            cached = self._policies[project] = (stamps, trusted, policy)
        return cached[2]

    def _policy(self, files: Sequence[ProjectRules], trusted: Sequence[bool]) -> Policy:
        rules = list(self._rules)
        for file, is_trusted in zip(files, trusted, strict=True):
            rules += [rule for rule in file.rules if is_trusted or rule.effect != "allow"]
        return Policy(rules, [file.problem for file in files if file.problem])


class ProjectRules(Struct, frozen=True, kw_only=True):
    """The rules of a project's file.

    Attributes:
        rules: the rules; for an invalid file, one rule that asks about everything.
        problem: the error in the file; "" if there is none.
    """

    item: Item
    rules: tuple[PolicyRule, ...]
    problem: str = ""


def project_files(project: str) -> tuple[str, ...]:
    """Return the files that may contain a project's rules, in its repository and its folder."""
    root = find_repository(Path(project))
    folders = dict.fromkeys([str(root), project] if root is not None else [project])
    return tuple(f"{folder}/{name}" for folder in folders for name in (PROJECT_FILE, *_SETTINGS))


def project_rules(project: str) -> tuple[ProjectRules, ...]:
    """Return the rules in the files of a project. Reads the files."""
    files = [Path(file) for file in project_files(project) if os.path.lexists(file)]
    if not files:
        return ()
    top = Path(os.path.realpath(project_top(Path(project))))
    owners = trusted_owners(top, Path(project))
    loaded = []
    for file in files:
        raw, problem = b"", ""
        rules: tuple[PolicyRule, ...] = ()
        try:
            raw = read_trusted(file, top, owners, limit=SIZE_LIMIT + 1)
            rules = tuple(
                _settings_rules(file, raw) if file.suffix == ".json" else _project_rules(file, raw)
            )
        except (FileNotFoundError, NotADirectoryError):
            continue
        except RefusedFileError as error:
            problem = f"{file}: {error.why}"
        except OSError as error:
            problem = f"cannot read {file} ({error.strerror}); check who may read it"
        except ConfigError as error:
            problem = str(error)
        if problem:
            rules = (_ask_about_all(str(file), problem),)
        allowed = [rule.text for rule in rules if rule.effect == "allow"]
        item = text_item("rules", folder_name(top), file, raw, ", ".join(allowed))
        loaded.append(ProjectRules(item=item, rules=rules, problem=problem))
    return tuple(loaded)


def _project_rules(file: Path, raw: bytes) -> list[PolicyRule]:
    """Return the rules of a project's file. Raises ConfigError if the file is invalid."""
    from acp_agent.config.problems import find_problems  # noqa: PLC0415 - few projects have rules
    from acp_agent.config.toml_errors import find_lines  # noqa: PLC0415 - likewise

    text = decode(file, raw)
    table = parse(file, text).get(KEY, {})
    source = Source(file=str(file), project=True)
    problem = next(find_problems(table, PermissionsConfig), None)
    if problem is not None:
        (line,) = find_lines(text, [(KEY, *problem.path)])
        where = str(msgspec.structs.replace(source, line=line))
        raise ConfigError(f"{where}: {KEY}.{problem.key}: {problem.text}")
    try:
        permissions = convert(table, PermissionsConfig)
        rules = compile_rules(permissions, source)
    except ConfigError as error:
        (line,) = find_lines(text, [error.key])
        where = str(msgspec.structs.replace(source, line=line))
        raise ConfigError(f"{where}: {error}") from None
    return list(_with_lines(rules, text))


def _settings_rules(file: Path, raw: bytes) -> Iterator[PolicyRule]:
    """Return the rules of another agent's settings file, except those for tools unknown here.

    An ask or deny rule that is not valid here becomes one that asks about every use of its tool.

    Raises:
        ConfigError: the file is invalid.
    """
    if not raw.strip():
        return
    from acp_agent.config.json_files import explain_json, member_line  # noqa: PLC0415 - few have any

    try:
        permissions = decode_json(raw, _Settings).permissions
    except msgspec.ValidationError as error:
        raise ConfigError(f"{file}: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ConfigError(f"{file}: {explain_json(raw)}") from None
    text = raw.decode("utf-8", "replace")  # texts that are not read may be no UTF-8
    for effect in EFFECTS:
        for rule_text in getattr(permissions, effect):
            line = member_line(text, (KEY, effect), value=rule_text)
            source = Source(file=str(file), line=line, key=(KEY, effect), project=True)
            try:
                yield make_rule(effect, RuleConfig(rule=rule_text), source)
            except RuleError as error:
                tool = rule_text.partition("(")[0].strip()
                if effect != "allow" and tool_subject(tool) is not None:
                    why = f"its rule {rule_text} cannot be used: {error}"
                    yield make_rule("ask", RuleConfig(rule=tool, justification=why), source)


class _Permissions(Struct):
    deny: list[str] = []
    ask: list[str] = []
    allow: list[str] = []


class _Settings(Struct):
    permissions: _Permissions = msgspec.field(default_factory=_Permissions)


def _ask_about_all(file: str, problem: str) -> PolicyRule:
    """Return a rule that asks about everything; an unreadable file may contain deny rules."""
    source = Source(file=file, project=True)
    table = RuleConfig(
        rule="*", justification=f"the rules of this project cannot be read: {problem}"
    )
    return make_rule("ask", table, source)
