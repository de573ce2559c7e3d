"""`acp-agent policy list` and `policy revoke`: the rules and remembered answers of a folder."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import complain, say, say_json, say_table
from acp_agent.errors import InvalidInputError
from acp_agent.permissions.access import Grant
from acp_agent.permissions.opening import UserPermissions
from acp_agent.permissions.policy.loading import project_rules
from acp_agent.permissions.policy.rules import PolicyRule

_MIN_ID_LENGTH = 4  # characters of an answer's ID that are enough to name it


def list_rules(options: argparse.Namespace, permissions: UserPermissions, folder: Path) -> int:
    """List the rules that apply in a folder, and its remembered answers."""
    policy = permissions.policies.for_project(str(folder))
    inert = [
        rule
        for file in project_rules(str(folder))
        for rule in file.rules
        if rule not in policy.rules
    ]
    grants = (
        permissions.grants.all() if options.all else permissions.grants.for_project(str(folder))
    )
    problems = [*policy.problems, *filter(None, [permissions.grants.problem])]
    if options.json:
        say_json(
            {
                "rules": [_rule_json(rule) for rule in policy.rules],
                "inert": [_rule_json(rule) for rule in inert],
                "answers": [_grant_json(grant) for grant in grants],
                "problems": problems,
            }
        )
        return 0
    if policy.rules or inert:
        untrusted = translate("not applied: the folder is not trusted")
        rows = [_rule_row(rule) for rule in policy.rules]
        say_table(
            ("EFFECT", "RULE", "APPLIES IN", "FILE"),
            [*rows, *(_rule_row(rule, untrusted) for rule in inert)],
        )
    else:
        say(translate("No rules found. Add rules to [permissions] in your configuration."))
    say()
    if grants:
        say_table(
            ("ID", "EFFECT", "REMEMBERED ANSWER", "PROJECT"),
            [_grant_row(grant) for grant in grants],
        )
    else:
        say(translate("No remembered answers."))
    for problem in problems:
        complain(translate_rendered(problem))
    return 0


def revoke(options: argparse.Namespace, permissions: UserPermissions, folder: Path) -> int:
    """Delete remembered answers.

    Raises:
        InvalidInputError: an ID is unknown or ambiguous.
        StoreError: they could not be removed.
    """
    if options.all:
        grants: Sequence[Grant] = permissions.grants.for_project(str(folder))
    else:
        grants = [_find_grant(name, permissions.grants.all()) for name in options.id]
    for grant in permissions.grants.remove(grants):
        say(translate("Revoked {answer}.", answer=grant.label))
    if not grants:
        say(translate("No remembered answers."))
    return 0


def _find_grant(name: str, grants: Sequence[Grant]) -> Grant:
    matches = [
        grant
        for grant in grants
        if grant.id == name or (len(name) >= _MIN_ID_LENGTH and grant.id.startswith(name))
    ]
    if len(matches) != 1:
        raise InvalidInputError(
            f"no remembered answer has the ID {name!r}; list them with "
            "`acp-agent policy list --all`",
            field="id",
        )
    return matches[0]


def _rule_row(rule: PolicyRule, holds_in: str = "") -> list[str]:
    conditions = [*rule.modes, *(f"agent {agent}" for agent in rule.agents)]
    return [rule.effect, rule.text, holds_in or ", ".join(conditions), str(rule.source)]


def _rule_json(rule: PolicyRule) -> dict[str, object]:
    return {
        "effect": rule.effect,
        "rule": rule.text,
        "modes": rule.modes,
        "agents": rule.agents,
        "justification": rule.justification,
        "file": rule.source.file,
        "line": rule.source.line,
        "project": rule.source.project,
    }


def _grant_row(grant: Grant) -> list[str]:
    return [grant.id, "allow" if grant.allow else "deny", grant.text, grant.project]


def _grant_json(grant: Grant) -> dict[str, object]:
    return {
        "id": grant.id,
        "effect": "allow" if grant.allow else "deny",
        "kind": grant.kind,
        "covers": grant.text,
        "project": grant.project,
    }
