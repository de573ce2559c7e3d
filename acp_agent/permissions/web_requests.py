"""Judge web requests: pages, searches, and requests that may change something.

A remembered grant or an allow rule covers reading. A request that may change something needs a
question each time; only in full mode do they define which hosts may receive data, as for pages.
"""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.permissions.access import Allow, Ask, FetchAccess, Grant, Refuse, Verdict
from acp_agent.permissions.choices import fetch_choices, once_choices
from acp_agent.permissions.hosts import is_documentation, url_host
from acp_agent.permissions.mode_refusals import READ_ONLY_REFUSALS
from acp_agent.permissions.policy.rules import PolicyRule
from acp_agent.permissions.policy.verdicts import RuleSet, never_refusal


def judge_request(access: FetchAccess, rules: RuleSet, grants: Sequence[Grant]) -> Verdict:
    """Judge a request.

    Args:
        rules: the rules that apply in the session's folder.
        grants: the user's remembered grants about hosts there.
    """
    mode, project = rules.situation.mode, rules.situation.folders.project
    host = url_host(access.url)
    rule = rules.host(host, search=access.search)
    strict = rules.strict(rule)
    if isinstance(strict, Refuse):
        return strict
    grants = [grant for grant in grants if grant.pattern == host]
    refused = next((grant for grant in grants if not grant.allow), None)
    if refused is not None:
        return never_refusal(f"requests to {host}", refused)
    if access.changes and mode in READ_ONLY_REFUSALS:
        return READ_ONLY_REFUSALS[mode]
    if strict is not None:
        return strict
    granted = grants[0] if host and grants else None
    if access.changes:
        return _judge_change(access, rules, rule, granted)
    if mode == "full" and (access.user_named or access.search or is_documentation(access.url)):
        return Allow(by="mode")
    if rule is not None:
        return rules.allow(rule)
    if granted is not None:
        why = f"requests to {host} are always allowed"
        return Allow(by="grant", why=why, rule=granted.label)
    choices = fetch_choices(rules.texts, project, host) if host else once_choices(rules.texts)
    return Ask(choices=choices, warning=rules.unnamed([access.url]) if mode == "full" else "")


def _judge_change(
    access: FetchAccess, rules: RuleSet, rule: PolicyRule | None, granted: Grant | None
) -> Verdict:
    """Judge a request that may change something, after no rule or grant refused it."""
    is_full = rules.situation.mode == "full"
    if is_full and (access.user_named or rule is not None or granted is not None):
        return Allow(by="mode")
    host = rules.texts.quote.format(url_host(access.url) or access.url)
    warning = rules.texts.request_warning.format(host=host)
    if is_full:
        warning = f"{warning} {rules.unnamed([access.url])}"
    return Ask(choices=once_choices(rules.texts), warning=warning)
