"""`acp-agent policy test`: show the decision about a call, and the rule behind it."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from acp_agent.cli.localization import language, translate, translate_rendered
from acp_agent.cli.output import FAILED, say, say_json, say_table
from acp_agent.errors import InvalidInputError
from acp_agent.permissions.access import (
    Access,
    Allow,
    Ask,
    CommandAccess,
    FetchAccess,
    McpAccess,
    Mode,
    NoAccess,
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
from acp_agent.permissions.policy.rules import Subject, tool_subject

_FORM = re.compile(r"(?P<tool>[A-Za-z_]+)\((?P<argument>.*)\)", re.DOTALL)
_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
_PREFIXES = ("/", "~", "./", "../")


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
    rows = [
        [command["command"], command["tier"], command["reason"], command["rule"] or command["note"]]
        for command in commands
    ]
    say_table(("COMMAND", "TIER", "BUILT IN", "RULE"), rows)


class Call(Struct, frozen=True):
    """A call to test, in the form of a rule, and what it would access."""

    text: str
    access: Access


def read_calls(text: str, folder: Path) -> list[Call]:
    """Return the calls that a text stands for.

    A path stands for reading and editing it, and for running it if it is a program.

    Args:
        text: a command line, a path, an http address, `mcp__server__tool`, or one of these in the
            form of a rule: `Edit(src/a.py)`.
        folder: the session's folder, absolute and resolved.

    Raises:
        InvalidInputError: no rule can be about the named tool.
    """
    form = _FORM.fullmatch(text)
    subject = tool_subject(form["tool"]) if form is not None else tool_subject(text)
    if form is not None and subject is not None:
        return [_call(subject, form["argument"], folder)]
    if subject == "web_search":
        return [_call(subject, "", folder)]
    if text.startswith("mcp__"):
        return [_call("mcp", text, folder)]
    if _ADDRESS.fullmatch(text):
        return [_call("web_fetch", text, folder)]
    return [_call(meaning, text, folder) for meaning in _meanings(text, folder)]


def _meanings(text: str, folder: Path) -> Iterator[Subject]:
    """Yield the meanings of a text that is not a rule; a word that looks like a path is a path."""
    path = folder / _expand(text) if "\0" not in text else folder
    one_word = not any(map(str.isspace, text))
    exists = os.path.lexists(path)
    if exists or (one_word and ("/" in text or text.startswith(_PREFIXES))):
        yield "read"
        yield "edit"
        if one_word and os.access(path, os.X_OK) and path.is_file():
            yield "shell"
    else:
        yield "shell"


def _expand(path: str) -> str:
    return os.path.expanduser(path)  # noqa: PTH111 - pathlib's may raise


def _call(subject: Subject, argument: str, folder: Path) -> Call:
    match subject:
        case "shell":
            return Call(f"Bash({argument})", CommandAccess(argument, str(folder), (str(folder),)))
        case "read" | "edit":
            path = os.path.normpath(folder / _expand(argument))
            paths = (os.path.realpath(path),)
            if subject == "read":
                return Call(f"Read({argument})", ReadAccess(paths, (path,)))
            return Call(f"Edit({argument})", WriteAccess(paths, (path,)))
        case "web_fetch":
            host = argument.removeprefix("domain:")
            url = host if "://" in host else f"https://{host}"
            return Call(f"WebFetch({argument})", FetchAccess(url))
        case "web_search":
            return Call("WebSearch", FetchAccess("", search=True))
        case "mcp":
            server, _, tool = argument.removeprefix("mcp__").partition("__")
            if not server or not tool:
                raise InvalidInputError("write the tool like mcp__server__tool", field="call")
            return Call(argument, McpAccess(server=server, tool=tool, identity="", definition=""))
        case "agent" | "skill":
            return Call(f"{subject.capitalize()}({argument})", NoAccess(subject, argument))
        case "any" | "background":
            raise AssertionError("no tool touches anything")
