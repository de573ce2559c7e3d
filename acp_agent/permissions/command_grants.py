"""Match command lines against remembered grants, and determine what to offer to remember."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable

from msgspec import Struct

from acp_agent.permissions.access import Grant
from acp_agent.permissions.classify import Classified, Finding
from acp_agent.permissions.command_scope import Offer, Scope, offer_for_command
from acp_agent.permissions.paths import CommandContext
from acp_agent.permissions.read_only import has_harmless_context
from acp_agent.permissions.rules import operands, read_only_rules, shell_rules

_OFFER_LIMIT = 3  # commands that one button may cover


class LineOffer(Struct, frozen=True, kw_only=True):
    """What "always" and "never" would cover for a line; empty if it cannot be offered."""

    allow: tuple[Scope, ...] = ()
    refuse: tuple[str, ...] = ()


def offer_for_line(classified: Classified, context: CommandContext) -> LineOffer:
    """Return what can be remembered about a line."""
    if not _may_be_remembered(classified):
        return LineOffer()
    offers = [_offer(finding, context) for finding in _findings_to_cover(classified)]
    allow = dict.fromkeys(scope for offer in offers for scope in offer.allow[:1])
    refuse = dict.fromkeys(shlex.join(offer.refuse) for offer in offers)
    return LineOffer(
        allow=tuple(allow)
        if all(offer.allow for offer in offers) and len(allow) <= _OFFER_LIMIT
        else (),
        refuse=tuple(refuse)
        if all(offer.refuse for offer in offers) and len(refuse) <= _OFFER_LIMIT
        else (),
    )


def find_covering_scopes(
    classified: Classified, context: CommandContext, remembered: Collection[Scope]
) -> tuple[Scope, ...] | None:
    """Return the remembered scopes that cover the line's commands; None unless each is covered.

    Commands that only read need none.
    """
    if not _may_be_remembered(classified):
        return None
    scopes = [
        next((scope for scope in _offer(finding, context).allow if scope in remembered), None)
        for finding in _findings_to_cover(classified)
    ]
    covering_scopes = [scope for scope in scopes if scope is not None]
    return tuple(dict.fromkeys(covering_scopes)) if len(covering_scopes) == len(scopes) else None


def find_refusing_grant(classified: Classified, never: Iterable[Grant]) -> Grant | None:
    """Return the first remembered "never" that matches any command of the line."""
    for grant in never:
        words = pattern_words(grant.pattern)
        for finding in classified.findings:
            texts = finding.words
            if not words or not texts:
                continue
            name = texts[0].rpartition("/")[2]
            # Options before a subcommand do not hide it: `git -C x push`.
            leading = (name, *operands(texts[1:], shell_rules().globals.get(name, ())))
            if words in (
                spelling[: len(words)] for spelling in (texts, (name, *texts[1:]), leading)
            ):
                return grant
    return None


def pattern_words(pattern: str) -> tuple[str, ...]:
    """Return the words of a grant's pattern; empty if the pattern is damaged."""
    try:
        return tuple(shlex.split(pattern))
    except ValueError:
        return ()


def _may_be_remembered(classified: Classified) -> bool:
    return classified.plain and classified.tier == "standard"


def _findings_to_cover(classified: Classified) -> list[Finding]:
    return [f for f in classified.findings if f.tier != "read_only" and not f.within]


def _offer(finding: Finding, context: CommandContext) -> Offer:
    """Return what can be remembered about a command; nothing if its input is redirected."""
    command = finding.leaf
    if command is None or command.stdin is not None or command.piped:
        return Offer()
    harmless = read_only_rules().harmless_redirects
    if any(r.operator == "<" and r.target.text not in harmless for r in command.redirects):
        return Offer()
    if not has_harmless_context(command, context, finding.folders):
        return Offer()
    return offer_for_command(command, context, finding.folders)
