"""The rules of the policy and the parser of their texts.

A rule names a tool and optionally a pattern for its use: `Bash(npm run test:*)`, `Edit(src/**)`,
`Read(~/.zshrc)`, `WebFetch(domain:example.com)`, `mcp__server__tool`, `Agent(explore)`,
`Skill(review)`, or a whole tool: `Bash`.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from msgspec import Struct

from acp_agent.permissions.access import Mode

Effect = Literal["allow", "ask", "deny"]
Subject = Literal[
    "shell", "background", "edit", "read", "web_fetch", "web_search", "mcp", "agent", "skill", "any"
]

MODES: tuple[Mode, ...] = get_args(Mode)
MAIN_AGENT = "main"  # the name of the session's main agent in a rule's `agents`

# The tools that rules may name, those of acp-agent and of other agents, by what they access.
_SUBJECTS: dict[str, Subject] = {
    **dict.fromkeys(("Bash", "shell"), "shell"),
    **dict.fromkeys(("Edit", "Write", "MultiEdit", "NotebookEdit"), "edit"),
    **dict.fromkeys(("edit", "write", "apply_patch"), "edit"),
    **dict.fromkeys(("Read", "Grep", "Glob", "LS", "NotebookRead"), "read"),
    **dict.fromkeys(("read", "grep", "glob", "list", "code"), "read"),
    **dict.fromkeys(("WebFetch", "web_fetch"), "web_fetch"),
    **dict.fromkeys(("WebSearch", "web_search"), "web_search"),
    **dict.fromkeys(("Agent", "Task", "task"), "agent"),
    **dict.fromkeys(("Skill", "skill"), "skill"),
}
_RULE = re.compile(r"(?P<tool>[A-Za-z*][\w.*-]*)\s*(?:\((?P<pattern>.*)\))?", re.DOTALL)
_DOMAIN = re.compile(r"domain:(?P<host>[^\s/?#@]+)")
_ARGUMENTS = re.compile(r"(?::\*| \*)$")  # behind the name of a skill
_BACKGROUND = re.compile(r"run_in_background\s*:\s*true")
_PARAMETER = re.compile(r"[a-z_]+\s*:\s*(?:true|false)")
_MAX_LENGTH = 1_000  # characters of a rule
_MCP = "mcp__"
_PLUGIN_SERVER = re.compile(r"plugin_[^_*]+_.+")


class RuleError(Exception):
    """A rule is invalid; the message says why and what to write instead."""


class Source(Struct, frozen=True, kw_only=True):
    """Where a rule is defined: the file, the line (from 1) if known, and the key in the file.

    `project` is true for a file of a project.
    """

    file: str
    line: int | None = None
    key: tuple[str | int, ...] = ()
    project: bool = False

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


class PolicyRule(Struct, frozen=True, kw_only=True):
    """One rule.

    Attributes:
        effect: whether it allows, asks or denies.
        subject: the kind of access that it covers.
        pattern: the accesses of that kind that it covers; empty for all.
        source: where it is defined.
        justification: the reason, for the user and the model; empty if none is given.
    """

    effect: Effect
    text: str
    subject: Subject
    pattern: str
    source: Source
    justification: str = ""
    modes: tuple[Mode, ...] = ()
    agents: tuple[str, ...] = ()

    def applies(self, mode: Mode, agent: str) -> bool:
        """Return whether the rule applies in a mode to an agent; "" is the session's main agent."""
        return (not self.modes or mode in self.modes) and (
            not self.agents or (agent or MAIN_AGENT) in self.agents
        )

    @property
    def label(self) -> str:
        """Return the rule with its effect and its source, for the journal."""
        return f"{self.effect} {self.text} ({self.source})"


def read_rule(effect: Effect, text: str) -> tuple[Subject, str]:
    """Return the subject and the pattern of a rule. Raises RuleError if the rule is invalid."""
    match = _RULE.fullmatch(text.strip())
    if match is None or len(text) > _MAX_LENGTH:
        raise RuleError("it has the wrong form; write it like Bash(npm run test:*) or Edit(src/**)")
    tool, pattern = match["tool"], match["pattern"]
    if tool.startswith(_MCP):
        if pattern is not None:
            raise RuleError("a rule about an MCP server's tool has nothing in brackets")
        return "mcp", _mcp_pattern(effect, tool)
    pattern = (pattern or "").strip()
    if tool == "*":
        if effect == "allow" or pattern not in {"", "*"}:
            raise RuleError("`*` for all tools is for ask and deny, and has no brackets")
        return "any", ""
    subject = tool_subject(tool)
    if subject is None:
        tool_names = ", ".join(sorted(name for name in _SUBJECTS if name[0].isupper()))
        raise RuleError(
            f"no rule can be about the tool {tool!r}; known: {tool_names}, mcp__server__tool"
        )
    if pattern in {"", "*"}:
        return subject, ""
    if subject == "shell" and _BACKGROUND.fullmatch(pattern):
        if effect == "allow":
            raise RuleError("a rule that allows names the command, not how it runs")
        return "background", ""
    return subject, _validate_pattern(subject, pattern)


def tool_subject(tool: str) -> Subject | None:
    """Return what a tool of acp-agent or another agent accesses, or None for an unknown tool."""
    return _SUBJECTS.get(tool)


def _validate_pattern(subject: Subject, pattern: str) -> str:
    if subject == "web_search":
        raise RuleError("a rule about searching the web has nothing in brackets")
    if subject == "web_fetch":
        domain = _DOMAIN.fullmatch(pattern)
        if domain is None:
            raise RuleError("write the host like WebFetch(domain:example.com)")
        return "" if domain["host"] == "*" else domain["host"]
    if _PARAMETER.fullmatch(pattern):
        raise RuleError("rules about single parameters of a tool are not known here")
    if subject in {"agent", "skill"}:
        return _ARGUMENTS.sub("", pattern) if subject == "skill" else pattern
    if subject in {"edit", "read"} and pattern.startswith("!"):
        raise RuleError("a rule has no exceptions; write a rule for each path that it is about")
    return pattern


def _mcp_pattern(effect: Effect, tool: str) -> str:
    server, mark, name = tool.removeprefix(_MCP).partition("__")
    if _PLUGIN_SERVER.fullmatch(server):  # as other programs name a plugin's servers
        server = server.removeprefix("plugin_")
    if not server or (mark and not name):
        raise RuleError("write it like mcp__server, mcp__server__* or mcp__server__tool")
    if effect == "allow" and "*" in server:
        raise RuleError("a rule that allows names the server of the tools")
    return f"{server}__{name or '*'}"


_INVALID_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")


def tool_name(server: str, tool: str) -> str:
    """Return the name of an MCP server's tool in rules, without `mcp__`.

    Characters that a rule cannot contain become `_`, as in the tool names that models see.
    """
    return f"{_INVALID_CHARACTER.sub('_', server)}__{_INVALID_CHARACTER.sub('_', tool)}"
