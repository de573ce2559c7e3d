"""The rules that hooks add to a session."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from acp_agent.hooks.permission_rules import AddedRule, PermissionRules
from acp_agent.hooks.types import Hook, HookAnswer
from acp_agent.permissions.access import Access, NoAccess

USER = Hook(event="PermissionRequest", command="mine", by_user=True)
PROJECT = Hook(event="PermissionRequest", command="theirs")
DENY = {
    "type": "addRules",
    "behavior": "deny",
    "rules": [{"toolName": "Bash", "ruleContent": "rm:*"}],
}


async def rules_after(*answers: HookAnswer) -> list[str]:
    """Return the rules of a session after these answers."""
    rules, remaining = PermissionRules(), list[str]()

    async def decide(added: Sequence[AddedRule], _: Access) -> AddedRule | None:
        remaining.extend(rule.text for rule in added)
        return None

    for answer in answers:
        assert rules.apply(answer) == []
    await rules.answer(decide, NoAccess())
    return remaining


@pytest.mark.parametrize(
    "change", [DENY | {"type": "removeRules"}, DENY | {"type": "replaceRules", "rules": []}]
)
async def test_a_hook_of_the_project_removes_no_rule_of_the_users_hook(
    change: dict[str, object],
) -> None:
    added = HookAnswer(by=USER, permissions=(DENY,))
    assert await rules_after(added, HookAnswer(by=PROJECT, permissions=(change,))) == ["Bash(rm:*)"]
    assert await rules_after(added, HookAnswer(by=USER, permissions=(change,))) == []
    own = HookAnswer(by=PROJECT, permissions=(DENY,))
    assert await rules_after(own, HookAnswer(by=PROJECT, permissions=(change,))) == []
