"""Turn the rule that decides about a call into the gate's verdict."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.permissions.access import (
    CONFINED_WHY,
    Allow,
    Ask,
    CommandAccess,
    Grant,
    McpAccess,
    NoAccess,
    Refuse,
)
from acp_agent.permissions.choices import Texts, add_confined_choice, once_choices
from acp_agent.permissions.classify import Classified
from acp_agent.permissions.hosts import url_host
from acp_agent.permissions.paths import CommandContext
from acp_agent.permissions.policy.commands import LineMatch
from acp_agent.permissions.policy.policy import Policy, Situation
from acp_agent.permissions.policy.rules import PolicyRule, Subject


class RuleSet(Struct, frozen=True):
    """The rules of a folder in a situation, with the texts of the gate."""

    policy: Policy
    situation: Situation
    texts: Texts

    def files(
        self, subject: Subject, paths: Sequence[str], names: Sequence[str]
    ) -> PolicyRule | None:
        """Return the rule about files, by their paths and the names used in the request."""
        if not self.policy:
            return None
        project = self.situation.folders.project
        requested_paths = [os.path.normpath(os.path.join(project, name)) for name in names]  # noqa: PTH118 - as it is called
        if len(requested_paths) == len(paths):
            return self.policy.files(
                subject, list(zip(paths, requested_paths, strict=True)), self.situation
            )
        files = [(path,) for path in (*paths, *requested_paths)]
        return self.policy.files(subject, files, self.situation)

    def refused_reads(self, paths: Sequence[str]) -> dict[str, str]:
        """Return the files that rules refuse or ask about reading, with the reasons."""
        if not self.policy:
            return {}
        decisions = ((path, self.policy.files("read", [[path]], self.situation)) for path in paths)
        return {
            path: f"the rule `{rule.text}` in {rule.source} is about it"
            for path, rule in decisions
            if rule is not None and rule.effect != "allow"
        }

    def line(
        self, line: Classified, context: CommandContext, *, may_edit: Callable[[str], bool]
    ) -> LineMatch:
        """Return what the rules say about a command line; see `Policy.command`."""
        if not self.policy:
            return LineMatch(commands=())
        return self.policy.command(line, context, self.situation, may_edit=may_edit)

    def host(self, host: str, *, search: bool) -> PolicyRule | None:
        """Return the rule about a request to a host, or about a search."""
        if search:
            return self.policy.search(self.situation)
        return self.policy.host(host, self.situation)

    def named(self, access: NoAccess) -> Allow | Ask | Refuse:
        """Return the verdict about an agent or a skill, which only a rule refuses or asks about."""
        rule = self.policy.named(access.subject, access.name, self.situation)
        return self.strict(rule) or Allow(by="rule", rule=rule.label if rule is not None else "")

    def in_background(
        self, access: CommandAccess, verdict: Allow | Ask | Refuse
    ) -> Allow | Ask | Refuse:
        """Apply the rules about background commands to the verdict about a command."""
        if not access.background or isinstance(verdict, Refuse):
            return verdict
        strict = self.strict(self.policy.named("background", "", self.situation))
        if strict is not None and (isinstance(strict, Refuse) or isinstance(verdict, Allow)):
            return strict
        return verdict

    def tool(self, access: McpAccess) -> PolicyRule | None:
        """Return the rule about a tool of an MCP server, or about an agent that is a program."""
        rule = None
        if access.is_agent:
            rule = self.policy.named("agent", access.server, self.situation)
        return rule or self.policy.tool(access.server, access.tool, self.situation)

    def strict(self, rule: PolicyRule | None) -> Refuse | Ask | None:
        """Return the verdict of a rule that refuses or asks; None for any other rule."""
        if rule is None or rule.effect == "allow":
            return None
        if rule.effect == "deny":
            why = f"the rule `{rule.text}` in {rule.source} refuses this"
            if rule.justification:
                why = f"the rule `{rule.text}` in {rule.source} refuses this: {rule.justification}"
            advice = "do not try it in another form; go on without it, or ask the user"
            return Refuse(by="rule", why=why, advice=advice, rule=rule.label)
        text = self.texts.rule_reason if rule.justification else self.texts.rule_asks
        warning = text.format(
            rule=self.texts.quote.format(rule.text), source=rule.source, reason=rule.justification
        )
        return Ask(choices=once_choices(self.texts), warning=warning, rule=rule.label)

    def warn_beyond_sandbox(self, access: CommandAccess) -> str:
        """Return a warning about what a command asks for beyond the sandbox; "" for nothing."""
        if access.outside:
            return self.texts.outside_warning
        if access.hosts:
            hosts = self.texts.separator.join(map(self.texts.quote.format, access.hosts))
            return self.texts.hosts_warning.format(hosts=hosts)
        return ""

    def unnamed(self, urls: Sequence[str]) -> str:
        """Return a warning about addresses whose hosts the user did not name."""
        hosts = dict.fromkeys(url_host(url) or url for url in urls)
        host_list = self.texts.separator.join(map(self.texts.quote.format, hosts))
        return self.texts.unnamed_warning.format(hosts=host_list)

    def confined(
        self, access: CommandAccess, question: Ask, grants: Sequence[Grant]
    ) -> Allow | Ask:
        """Allow a confined command that can be undone if configured or granted; else offer it.

        Args:
            grants: those that allow such commands.
        """
        if access.auto_allowed:
            return Allow(by="rule", why=CONFINED_WHY)
        if grants:
            why = "commands in the sandbox are always allowed in this project"
            return Allow(by="grant", why=why, rule=grants[0].label)
        project = self.situation.folders.project
        return replace(question, choices=add_confined_choice(self.texts, project, question.choices))

    def ask_beyond_sandbox(self, warning: str, question: Ask | None, danger: str) -> Ask:
        """Return the question about a command that asks for more; its answer is not remembered.

        Args:
            question: that of a rule about the command, whose warning replaces `danger`.
            danger: the warning about a destructive command, or "".
        """
        second, rule = (danger, "") if question is None else (question.warning, question.rule)
        warning = f"{warning} {second}" if second else warning
        return Ask(choices=once_choices(self.texts), warning=warning, rule=rule)

    def allow(self, rule: PolicyRule) -> Allow:
        """Return the verdict of a rule that allows."""
        return Allow(by="rule", why=f"the rule `{rule.text}` allows this", rule=rule.label)


def never_refusal(subject: str, grant: Grant) -> Refuse:
    """Return the refusal of something that the user never allows, with texts for model and user."""
    model, user = f"the user never allows {subject}", f"you never allow {subject}"
    return Refuse(by="grant", why=model, user_reason=user, rule=grant.label)
