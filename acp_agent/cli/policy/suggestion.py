"""`acp-agent policy suggest`: rules that would have avoided questions."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from acp_agent import events
from acp_agent.cli.localization import translate
from acp_agent.cli.output import say, say_json, say_table
from acp_agent.cli.session_lookup import open_store
from acp_agent.config.policy_types import RuleConfig
from acp_agent.content import JsonObject
from acp_agent.permissions.access import (
    Access,
    Allow,
    Ask,
    CommandAccess,
    FetchAccess,
    McpAccess,
    WriteAccess,
)
from acp_agent.permissions.classify import classify
from acp_agent.permissions.command_grants import offer_for_line
from acp_agent.permissions.gate import PolicyGate
from acp_agent.permissions.grants import GrantStore
from acp_agent.permissions.hosts import url_host
from acp_agent.permissions.opening import UserPermissions
from acp_agent.permissions.paths import CommandContext
from acp_agent.permissions.policy.command_patterns import quote_word
from acp_agent.permissions.policy.loading import Policies, make_rule
from acp_agent.permissions.policy.rules import PolicyRule, RuleError, Source, tool_name
from acp_agent.session.store.event_codec import readable_events
from acp_agent.session.store.records import StoredEvent
from acp_agent.session.store.store import Store

_PAGE = 200  # sessions
_DAY = 86_400_000  # ms
_MIN_AVOIDED = 2  # questions that a rule must avoid
_MAX_SUGGESTIONS = 10  # rules that are suggested
_NO_GRANTS = Path("/nonexistent/grants.json")


class Question(Struct, frozen=True):
    """A question that the user answered in a session of the folder `cwd`."""

    cwd: str
    access: Access
    allowed: bool


async def read_questions(store: Store, *, cwd: str | None, days: int) -> AsyncIterator[Question]:
    """Yield the questions of sessions, the latest session first.

    Args:
        cwd: only sessions of this folder; None for all.
        days: only sessions that were used in the last `days` days.
    """
    since = time.time() * 1000 - days * _DAY
    cursor: str | None = None
    while True:
        page = await store.list(cwd=cwd, cursor=cursor, limit=_PAGE, archived="include")
        for record in page.sessions:
            if record.updated_at < since:
                return
            for question in questions(await store.read_all(record.id), record.cwd):
                yield question
        cursor = page.next_cursor
        if cursor is None:
            return


def questions(stored: Sequence[StoredEvent], cwd: str) -> Iterator[Question]:
    """Yield the questions of one session that the user answered."""
    calls: dict[str, events.ToolCalled] = {}
    questioned: set[str] = set()
    for stored_event in readable_events(stored):
        event = events.unwrap_child_event(stored_event.event)
        match event:
            case events.ToolCalled(call=call):
                calls[call] = event
            case events.PermissionAsked(call=call):
                questioned.add(call)
            case events.PermissionDecided(call=call, by="user") if call in questioned:
                access = _access(calls[call], cwd) if call in calls else None
                if access is not None and event.why != "dismissed":
                    yield Question(cwd, access, event.allowed)


def _access(call: events.ToolCalled, cwd: str) -> Access | None:
    """Return what a call would have accessed; None if its arguments do not show it."""
    arguments = _arguments(call.arguments)
    if call.kind in {"edit", "delete", "move"}:
        paths = tuple(location.path for location in call.locations)
        return WriteAccess(paths) if paths else None
    match call.name, arguments:
        case "shell", {"command": str(command)}:
            return CommandAccess(command, cwd, (cwd,))
        case "web_fetch", {"url": str(url)}:
            return FetchAccess(url)
        case "http_request", {"url": str(url)} if arguments.get("method", "GET") in {"GET", "HEAD"}:
            return FetchAccess(url)
    if call.name.startswith("mcp__"):
        server, _, tool = call.name.removeprefix("mcp__").partition("__")
        return McpAccess(server=server, tool=tool, identity="", definition="")
    return None


def _arguments(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class Suggestion(Struct, frozen=True):
    """A rule, and how many questions it would have avoided beyond those of earlier rules."""

    rule: str
    avoided: int


def suggest(options: argparse.Namespace, permissions: UserPermissions, folder: Path) -> int:
    """Print the rules that would have avoided the most questions."""
    questions = asyncio.run(_questions(None if options.all else str(folder), options.days))
    suggestions = find_suggestions(questions, permissions)
    if options.json:
        rules = [
            {"rule": suggestion.rule, "avoided": suggestion.avoided} for suggestion in suggestions
        ]
        say_json({"questions": len(questions), "suggestions": rules})
    elif not questions:
        say(translate("No questions were answered in the last {days} days.", days=options.days))
    elif not suggestions:
        say(
            translate(
                "No rule would have avoided two or more questions ({count} answered).",
                count=len(questions),
            )
        )
    else:
        say_table(
            ("RULE", "QUESTIONS AVOIDED"),
            [
                [suggestion.rule, f"{suggestion.avoided} / {len(questions)}"]
                for suggestion in suggestions
            ],
            numbers=1,
        )
        say()
        say(translate("Add the rules you want to `allow` in [permissions] of your configuration."))
    return 0


async def _questions(cwd: str | None, days: int) -> list[Question]:
    async with open_store() as store:
        if store is None:
            return []
        return [question async for question in read_questions(store, cwd=cwd, days=days)]


def find_suggestions(
    questions: Sequence[Question], permissions: UserPermissions
) -> list[Suggestion]:
    """Return rules, each with the number of questions that it avoids beyond earlier ones.

    Rules never allow destructive calls, calls that the user refused, or calls that are no longer
    asked about.
    """
    is_still_asked = _still_asked(permissions.gate)
    unanswered = [each for each in questions if each.allowed and is_still_asked(each)]
    needs = [[set(texts) for texts in _candidates(question)] for question in unanswered]
    rules = {text: rule for text in _texts(needs) if (rule := _rule(text)) is not None}
    refused = {(each.access, each.cwd) for each in questions if not each.allowed}
    usable = {
        text
        for text, rule in rules.items()
        if not any(_allows([rule], access, cwd) for access, cwd in refused)
    }
    suggestions: list[Suggestion] = []
    for text in _greedy([sets for sets in needs if sets], usable):
        chosen = [rules[each.rule] for each in suggestions] + [rules[text]]
        remaining = [each for each in unanswered if not _allows(chosen, each.access, each.cwd)]
        if len(unanswered) - len(remaining) >= _MIN_AVOIDED:
            suggestions.append(Suggestion(text, len(unanswered) - len(remaining)))
        unanswered = remaining
    return suggestions


def _texts(needs: Sequence[Sequence[set[str]]]) -> set[str]:
    return {text for sets in needs for texts in sets for text in texts}


def _allows(rules: Sequence[PolicyRule], access: Access, cwd: str) -> bool:
    """Return whether the rules alone would allow a call."""
    gate = PolicyGate(GrantStore(_NO_GRANTS), policies=Policies(rules))
    verdict = gate.judge(access, mode="ask", project=cwd)
    return isinstance(verdict, Allow) and bool(verdict.rule)


def _greedy(needs: Sequence[Sequence[set[str]]], usable: set[str]) -> Iterator[str]:
    """Yield the rule that avoids the most questions, then the next; prefer narrower ones."""
    chosen: set[str] = set()
    remaining = list(needs)
    for _ in range(_MAX_SUGGESTIONS):
        counts: Counter[str] = Counter()
        for sets in remaining:
            missing = [alternatives & usable for alternatives in sets if not alternatives & chosen]
            if missing:
                counts.update(set.intersection(*missing))
        best = max(counts, key=lambda text: (counts[text], len(text)), default="")
        if not best or counts[best] < _MIN_AVOIDED:
            return
        chosen.add(best)
        yield best
        remaining = [
            sets for sets in remaining if not all(alternatives & chosen for alternatives in sets)
        ]


def _still_asked(gate: PolicyGate) -> Callable[[Question], bool]:
    """Return a function that tells whether a question would still be asked, without a warning."""

    @cache
    def judge(access: Access, cwd: str) -> bool:
        verdict = gate.judge(access, mode="ask", project=cwd)
        return isinstance(verdict, Ask) and not verdict.warning and not verdict.rule

    return lambda question: judge(question.access, question.cwd)


def _rule(text: str) -> PolicyRule | None:
    try:
        return make_rule("allow", RuleConfig(rule=text), Source(file=""))
    except RuleError:
        return None


def _candidates(question: Question) -> Iterator[list[str]]:
    """Yield, for each part of a question, the rules that would allow it."""
    match question.access:
        case CommandAccess(command=command):
            folder, home = os.path.realpath(question.cwd), os.path.realpath(Path.home())
            context = CommandContext(cwd=folder, roots=(folder,), home=home)
            offer = offer_for_line(classify(command, context), context)
            if len(offer.refuse) != len(offer.allow):
                return
            for scope, refused_pattern in zip(offer.allow, offer.refuse, strict=True):
                exact = " ".join(quote_word(word) for word in scope.words)
                broad = " ".join(quote_word(word) for word in shlex.split(refused_pattern))
                yield (
                    [f"Bash({exact})"] if scope.exact else [f"Bash({exact} *)", f"Bash({broad} *)"]
                )
        case WriteAccess(paths=paths):
            for path in paths:
                inside = os.path.relpath(path, question.cwd)
                folders = Path(inside).parts[:-1]
                if inside.startswith("..") or not folders:
                    return
                yield [
                    f"Edit(/{'/'.join(folders[:count])}/**)" for count in range(1, len(folders) + 1)
                ]
        case FetchAccess(url=url):
            yield [f"WebFetch(domain:{url_host(url)})"]
        case McpAccess(server=server, tool=tool):
            yield [f"mcp__{tool_name(server, tool)}"]
