"""Check a rule against its examples: calls that it must match, and calls that it must not match."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from acp_agent.permissions.classify import classify
from acp_agent.permissions.hosts import url_host
from acp_agent.permissions.paths import CommandContext
from acp_agent.permissions.policy.path_patterns import Folders
from acp_agent.permissions.policy.policy import Policy, Situation
from acp_agent.permissions.policy.rules import PolicyRule, RuleError

_PROJECT = "/project"  # the folder that relative paths of examples start from


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
        folders=Folders(_PROJECT, home),
    )
    match rule.subject:
        case "shell" | "any":
            context = CommandContext(cwd=_PROJECT, roots=(_PROJECT,), home=home)
            line = policy.command(
                classify(example, context), context, situation, may_edit=lambda _: False
            )
            return rule in {line.deny, line.ask, line.allow}
        case "edit" | "read":
            path = os.path.expanduser(example)  # noqa: PTH111 - a text
            path = os.path.normpath(os.path.join(_PROJECT, path))  # noqa: PTH118 - likewise
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
