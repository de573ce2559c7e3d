"""`acp-agent policy test`: show the decision about a call, and the rule behind it."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path

from acp_agent.cli.localization import language, translate, translate_rendered
from acp_agent.cli.output import FAILED, say, say_json, say_table
from acp_agent.cli.policy.calls import Call, read_calls
from acp_agent.permissions.access import (
    Allow,
    Ask,
    CommandAccess,
    Mode,
    ReadAccess,
    Refuse,
    Verdict,
    WriteAccess,
)
from acp_agent.permissions.choices import translate_reason
from acp_agent.permissions.classify import Finding
from acp_agent.permissions.opening import UserPermissions
from acp_agent.permissions.paths import is_below
from acp_agent.permissions.policy.commands import LineMatch


def test_call(options: argparse.Namespace, permissions: UserPermissions, folder: Path) -> int:
    """Explain the decision about a call; return 1 if `--expect` names another outcome."""
    words: list[str] = options.call
    text = words[0] if len(words) == 1 else shlex.join(words)
    explanations = [
        _explain(call, options, permissions, folder) for call in read_calls(text, folder)
    ]
    if options.json:
        say_json(explanations)
    else:
        for number, explanation in enumerate(explanations):
            if number:
                say()
            _print(explanation)
    if options.expect and any(
        explanation["decision"] != options.expect for explanation in explanations
    ):
        return FAILED
    return 0


def outcome(verdict: Verdict) -> str:
    """Return the rule effect that has the same outcome."""
    return {Allow: "allow", Ask: "ask", Refuse: "deny"}[type(verdict)]


def _explain(
    call: Call, options: argparse.Namespace, permissions: UserPermissions, folder: Path
) -> dict[str, object]:
    verdict = _outside(call, folder) or permissions.gate.judge(
        call.access, mode=options.mode, project=str(folder), agent=options.agent
    )
    explanation: dict[str, object] = {
        "call": call.text,
        "mode": options.mode,
        "folder": os.fsencode(folder).decode("utf-8", "replace"),
        "decision": outcome(verdict),
        "by": verdict.by if not isinstance(verdict, Ask) else "rule" if verdict.rule else "mode",
        "rule": verdict.rule,
        "why": _explain_verdict(verdict, options.mode),
        "tier": verdict.tier,
        "commands": [],
    }
    if isinstance(call.access, CommandAccess):
        classified, match = permissions.gate.examine(
            call.access, mode=options.mode, project=str(folder), agent=options.agent
        )
        explanation["commands"] = [_command(finding, match) for finding in classified.findings]
    return explanation


def _outside(call: Call, folder: Path) -> Refuse | None:
    """Return a refusal if the file is outside the reach of the file tools."""
    access = call.access
    if not isinstance(access, ReadAccess | WriteAccess) or is_below(access.paths[0], [str(folder)]):
        return None
    return Refuse(by="rule", why="the file tools reach nothing outside the session's folders")


def _explain_verdict(verdict: Verdict, mode: Mode) -> str:
    if isinstance(verdict, Ask) and not verdict.warning:
        return translate(
            "{mode} mode asks, since no rule or remembered answer allows it", mode=mode
        )
    if isinstance(verdict, Ask):
        return verdict.warning
    text = verdict.user_reason if isinstance(verdict, Refuse) else ""
    reason = text or verdict.why
    return translate_rendered(reason) if reason else translate("{mode} mode allows this", mode=mode)


def _command(finding: Finding, match: LineMatch) -> dict[str, object]:
    part = next((part for part in match.commands if part.finding is finding), None)
    return {
        "command": finding.command,
        "tier": finding.tier,
        "reason": translate_reason(language(), finding.reason),
        "rule": part.rule.label if part is not None and part.rule is not None else "",
        "note": part.note if part is not None else "",
    }


def _print(explanation: dict[str, object]) -> None:
    outcomes = {
        "allow": translate("Allowed: {call}", call=explanation["call"]),
        "ask": translate("Asked about: {call}", call=explanation["call"]),
        "deny": translate("Refused: {call}", call=explanation["call"]),
    }
    say(outcomes[str(explanation["decision"])])
    if explanation["rule"]:
        say("  " + translate("rule: {rule}", rule=explanation["rule"]))
    say("  " + translate("why: {why}", why=explanation["why"]))
    commands = explanation["commands"]
    if not isinstance(commands, list) or not commands:
        return
    say()
    headings = [translate("COMMAND"), translate("TIER"), translate("BUILT IN"), translate("RULE")]
    rows = [
        [command["command"], command["tier"], command["reason"], command["rule"] or command["note"]]
        for command in commands
    ]
    say_table(headings, rows)
