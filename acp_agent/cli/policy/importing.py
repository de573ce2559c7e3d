"""`acp-agent policy import`: import the permissions of other agents."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import tomlkit
from msgspec import Struct
from msgspec.structs import asdict
from tomlkit.items import Array, Table

from acp_agent.cli.editors import config_file
from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import FAILED, complain, confirm, say, say_json
from acp_agent.cli.policy.imports.sources import (
    PermissionFile,
    applied_files,
    find_files,
    find_files_at,
    read_permissions,
)
from acp_agent.cli.policy.imports.translation import Translation
from acp_agent.config.load import parse, read_text
from acp_agent.config.paths import Paths
from acp_agent.config.policy_types import RuleConfig
from acp_agent.errors import InvalidInputError
from acp_agent.permissions.policy.loading import KEY, PROJECT_FILE
from acp_agent.permissions.policy.rules import Effect

_EFFECTS: tuple[Effect, ...] = ("deny", "ask", "allow")
Rules = Sequence[tuple[Effect, RuleConfig]]


class Addition(Struct, frozen=True):
    """The new rules for a configuration file."""

    file: Path
    rules: Rules

    def as_toml(self) -> str:
        """Return the new rules as TOML."""
        document = tomlkit.document()
        add_rules(document, self.rules)
        return document.as_string().strip()


def import_rules(options: argparse.Namespace, paths: Paths, folder: Path, home: Path) -> int:
    """Show the rules translated from other agents' permissions, and save them after confirmation.

    Raises:
        InvalidInputError, ConfigError: a file cannot be read or written.
    """
    from os import environ  # noqa: PLC0415 - of this action only

    sources = [source for path in options.path for source in find_files_at(path, folder)]
    if not options.path:
        sources = find_files(folder, home, environ)
    translations, mistakes = _translate(sources)
    for mistake in mistakes:
        complain(translate_rendered(mistake))
    targets = _targets(paths, folder)
    additions = _additions(translations, targets)
    if options.json:
        say_json(_as_json([translation for _, translation in translations], additions))
    else:
        _show([translation for _, translation in translations], additions, targets)
        for file in applied_files(folder) if not options.path else ():
            say(translate("{file} applies without an import: acp-agent policy list", file=file))
    question = translate("Save these rules? [y/N] ")
    if additions and (
        options.save if options.json else confirm(question, "--save", given=options.save)
    ):
        for addition in additions:
            save(addition)
            if not options.json:
                say(translate("Saved to {file}.", file=addition.file))
    return FAILED if mistakes else 0


def rules_to_import(paths: Paths, folder: Path, home: Path, environ: Mapping[str, str]) -> int:
    """Return how many rules an import would add. Files with mistakes do not count.

    Raises:
        ConfigError: a file of rules cannot be read.
    """
    translations, _ = _translate(find_files(folder, home, environ))
    additions = _additions(translations, _targets(paths, folder))
    return sum(len(addition.rules) for addition in additions)


def _targets(paths: Paths, folder: Path) -> dict[bool, Path]:
    """Return the configuration files for rules of the user (False) and of the project (True)."""
    return {False: paths.config_file, True: folder / PROJECT_FILE}


def _translate(
    files: Iterable[PermissionFile],
) -> tuple[list[tuple[bool, Translation]], list[str]]:
    """Return the translation of each file, with whether it is the project's; and the errors."""
    translations, mistakes = [], []
    for each in files:
        try:
            translations.append((each.project, read_permissions(each.file)))
        except InvalidInputError as error:
            mistakes.append(str(error))
    return translations, mistakes


def _additions(
    translations: Sequence[tuple[bool, Translation]], targets: Mapping[bool, Path]
) -> list[Addition]:
    """Return what is new for each configuration file."""
    additions = [
        _addition(file, [each for is_project, each in translations if is_project == project])
        for project, file in targets.items()
    ]
    return [addition for addition in additions if addition.rules]


def _addition(file: Path, translations: Iterable[Translation]) -> Addition:
    """Return the rules that a configuration file does not have yet."""
    text = read_text(file)
    table = parse(file, text).get(KEY, {}) if text else {}
    existing = {(effect, str(rule)) for effect in _EFFECTS for rule in table.get(effect, ())}
    rules: list[tuple[Effect, RuleConfig]] = []
    for translation in translations:
        for rule in translation.rules:
            if rule not in rules and (rule[0], str(_rule_value(rule[1]))) not in existing:
                rules.append(rule)
    return Addition(file, rules)


def _rule_value(rule: RuleConfig) -> str | dict[str, object]:
    """Return the rule as written in a configuration: its text, or a table if it has more fields."""
    values = {key: value for key, value in asdict(rule).items() if value}
    return rule.rule if len(values) == 1 else values


def add_rules(document: tomlkit.TOMLDocument, rules: Rules) -> None:
    """Append rules to those of a configuration."""
    table = document.get(KEY)
    if not isinstance(table, Table):
        table = tomlkit.table()
        document.add(KEY, table)
    for effect in _EFFECTS:
        new = [_rule_value(rule) for rule_effect, rule in rules if rule_effect == effect]
        if not new:
            continue
        array = table.get(effect)
        if not isinstance(array, Array):
            array = tomlkit.array()
            table.add(effect, array)
            array = table[effect]
        for value in new:
            if isinstance(value, dict):
                inline = tomlkit.inline_table()
                inline.update(value)
                array.append(inline)
            else:
                array.append(value)
        array.multiline(multiline=True)


def save(addition: Addition) -> None:
    """Write new rules to a configuration file, and back up its previous version next to it.

    Raises:
        InvalidInputError: it cannot be written.
        ConfigError: it is not TOML.
    """
    text = read_text(addition.file)
    parse(addition.file, text)
    try:
        file = config_file.read(addition.file)
        document = tomlkit.parse(text)
        add_rules(document, addition.rules)
        config_file.write(file, document.as_string().encode(), keep=True)
    except InvalidInputError as error:
        raise InvalidInputError(f"{addition.file}: {error}", field="file") from None


def _show(
    read: Sequence[Translation], additions: Sequence[Addition], targets: Mapping[bool, Path]
) -> None:
    if not read:
        say(translate("No permissions of another agent were found."))
        return
    for addition in additions:
        say(translate("New rules for {file}:", file=addition.file))
        say()
        say(addition.as_toml())
        say()
        if addition.file == targets[True] and any(each == "allow" for each, _ in addition.rules):
            say(
                translate(
                    "A project's `allow` rules apply once you trust its folder: acp-agent trust"
                )
            )
            say()
    if not additions:
        say(translate("No new rules."))
    for translation in read:
        if translation.untranslated:
            say(translate("Not translated from {file}:", file=translation.file))
            for each in translation.untranslated:
                say(f"  {each.what}: {translate_rendered(each.why)}")


def _as_json(read: Sequence[Translation], additions: Sequence[Addition]) -> dict[str, object]:
    return {
        "files": [
            {
                "file": str(each.file),
                "rules": [{"effect": effect, **asdict(rule)} for effect, rule in each.rules],
                "untranslated": [asdict(setting) for setting in each.untranslated],
            }
            for each in read
        ],
        "new": [
            {"file": str(each.file), "toml": each.as_toml(), "rules": len(each.rules)}
            for each in additions
        ],
    }
