"""Rules that hooks add to a session (`updatedPermissions`), and the rules that they are offered.

They never widen the policy. A rule that allows counts only if it comes from a hook that may answer
questions for the user, and only where such an answer counts: in place of a question without a
warning that no rule requires. All rules end with the session; none is saved in a file.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple, assert_never

from msgspec import Struct

from acp_agent.content import JsonObject
from acp_agent.hooks.types import Hook, HookAnswer
from acp_agent.permissions.access import Access, Choice, Grant
from acp_agent.permissions.policy.rules import Effect, RuleError, read_rule
from acp_agent.platform.decoding import convert

_MAX_RULES = 100  # rules of one session


class _RuleValue(Struct, rename="camel"):
    tool_name: str
    rule_content: str = ""

    @property
    def text(self) -> str:
        return f"{self.tool_name}({self.rule_content})" if self.rule_content else self.tool_name


class _Update(Struct, rename="camel"):
    type: str
    rules: list[_RuleValue] = []
    behavior: Effect = "deny"


class AddedRule(NamedTuple):
    """A rule of the session and the hook that added it."""

    effect: Effect
    text: str
    hook: Hook


Decide = Callable[[Sequence[AddedRule], Access], Awaitable[AddedRule | None]]


class PermissionRules:
    """The rules that hooks added in a session."""

    def __init__(self) -> None:
        self._rules: list[AddedRule] = []

    async def answer(self, decide: Decide, access: Access) -> HookAnswer | None:
        """Return the answer of the rules about a call; None if none decides.

        Args:
            decide: returns the rule that decides about the call.
        """
        rule = await decide(self._rules, access) if self._rules else None
        if rule is None:
            return None
        return HookAnswer(
            permission=rule.effect,
            blocked=rule.effect == "deny",
            reason=f"the rule {rule.text} of this session",
            by=rule.hook,
        )

    def apply(self, answer: HookAnswer) -> list[str]:
        """Apply the changes in an answer; return the reason for each that is not applied."""
        failures: list[str] = []
        for value in answer.permissions:
            try:
                failures += self._apply(value, answer.by)
            except ValueError as error:
                failures.append(str(error))
        return failures

    def _apply(self, value: JsonObject, hook: Hook | None) -> Iterator[str]:
        """Apply one change; raises ValueError if it has another form."""
        update = convert(value, _Update)
        if update.type not in {"addRules", "replaceRules", "removeRules"}:
            yield f"{update.type}: only rules can be changed by a hook"
            return
        if hook is None or (update.behavior == "allow" and not hook.may_allow):
            yield "a rule that allows must come from a hook of yours"
            return
        texts = {rule.text for rule in update.rules}
        if update.type != "addRules":
            self._rules = [
                rule
                for rule in self._rules
                if rule.effect != update.behavior
                or (update.type == "removeRules" and rule.text not in texts)
                or (rule.hook.may_allow and not hook.may_allow)  # it stays as strict as the user's
            ]
        if update.type == "removeRules":
            return
        for rule in update.rules:
            try:
                read_rule(update.behavior, rule.text)
            except RuleError as error:
                yield f"{rule.text}: {error}"
                continue
            added = AddedRule(update.behavior, rule.text, hook)
            if added not in self._rules and len(self._rules) < _MAX_RULES:
                self._rules.append(added)


def suggestions(choices: Sequence[Choice]) -> list[JsonObject]:
    """Return the rules that the buttons of a question would remember, as hooks are offered them."""
    return [
        {
            "type": "addRules",
            "rules": rules,
            "behavior": "allow" if choice.kind == "allow_always" else "deny",
            "destination": "session",
        }
        for choice in choices
        if (rules := [rule for grant in choice.grants if (rule := _rule_value(grant))])
    ]


def _rule_value(grant: Grant) -> JsonObject | None:
    """Return the rule that covers what a grant covers, as closely as a rule can."""
    match grant.kind:
        case "command":
            return {"toolName": "Bash", "ruleContent": f"{grant.pattern}:*"}
        case "confined":
            return None
        case "mcp":
            return {"toolName": grant.text}
        case "exact_command" | "edit" | "fetch":
            tool, _, content = grant.text.partition("(")
            return {"toolName": tool, "ruleContent": content.removesuffix(")")}
        case _:
            assert_never(grant.kind)
