"""The rules of the policy: what a rule says, and how its text is read.

A rule names a tool and what of its use it is about: `Bash(npm run test:*)`, `Edit(src/**)`,
`Read(~/.zshrc)`, `WebFetch(domain:example.com)`, `mcp__server__tool`, or a whole tool: `Bash`.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from msgspec import Struct

from acp_agent.permissions.access import Mode

Effect = Literal["allow", "ask", "deny"]
Subject = Literal["shell", "edit", "read", "web_fetch", "web_search", "mcp", "any"]

MODES: tuple[Mode, ...] = get_args(Mode)
MAIN_AGENT = "main"  # the session's own agent in a rule's `agents`

# The tools that rules may name, ours and those of other agents, by what a call of them touches.
_SUBJECTS: dict[str, Subject] = {
    **dict.fromkeys(("Bash", "shell"), "shell"),
    **dict.fromkeys(("Edit", "Write", "MultiEdit", "NotebookEdit"), "edit"),
    **dict.fromkeys(("edit", "write", "apply_patch"), "edit"),
    **dict.fromkeys(("Read", "Grep", "Glob", "LS", "NotebookRead"), "read"),
    **dict.fromkeys(("read", "grep", "glob", "list", "code"), "read"),
    **dict.fromkeys(("WebFetch", "web_fetch"), "web_fetch"),
    **dict.fromkeys(("WebSearch", "web_search"), "web_search"),
}
_RULE = re.compile(r"(?P<tool>[A-Za-z*][\w.*-]*)\s*(?:\((?P<pattern>.*)\))?", re.DOTALL)
_DOMAIN = re.compile(r"domain:(?P<host>[^\s/?#@]+)")
_PARAMETER = re.compile(r"[a-z_]+\s*:\s*(?:true|false)")
_LONGEST = 1_000  # characters of a rule
_MCP = "mcp__"


class RuleError(Exception):
    """A rule cannot be used; the message says why and what to write instead."""


class Source(Struct, frozen=True, kw_only=True):
    """Where a rule was written: the file, the line from 1 if it is known, and the table's key.

    `project` is true for a file that a project brings along.
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
        effect: what it does.
        text: the rule as it was written.
        subject: what the calls touch that it is about.
        pattern: which of them; empty for all.
        source: where it was written.
        justification: why, for the user and the model; empty where nobody said.
        modes: the modes that it holds in; empty for all.
        agents: the agents that it holds for; empty for all.
    """

    effect: Effect
    text: str
    subject: Subject
    pattern: str
    source: Source
    justification: str = ""
    modes: tuple[Mode, ...] = ()
    agents: tuple[str, ...] = ()

    def holds(self, mode: Mode, agent: str) -> bool:
        """Whether the rule holds in a mode, for an agent by its name; "" is the session's own."""
        return (not self.modes or mode in self.modes) and (
            not self.agents or (agent or MAIN_AGENT) in self.agents
        )

    @property
    def label(self) -> str:
        """The rule with its effect and its place, for the journal."""
        return f"{self.effect} {self.text} ({self.source})"


def read_rule(effect: Effect, text: str) -> tuple[Subject, str]:
    """Return what a rule is about, and its pattern.

    Raises:
        RuleError: it has no meaning here.
    """
    found = _RULE.fullmatch(text.strip())
    if found is None or len(text) > _LONGEST:
        raise RuleError("it has the wrong form; write it like Bash(npm run test:*) or Edit(src/**)")
    tool, pattern = found["tool"], found["pattern"]
    if tool.startswith(_MCP):
        if pattern is not None:
            raise RuleError("a rule about an MCP server's tool has nothing in brackets")
        return "mcp", _mcp_pattern(effect, tool)
    pattern = (pattern or "").strip()
    if tool == "*":
        if effect == "allow" or pattern not in {"", "*"}:
            raise RuleError("`*` for all tools is for ask and deny, and has no brackets")
        return "any", ""
    subject = subject_of(tool)
    if subject is None:
        known = ", ".join(sorted(name for name in _SUBJECTS if name[0].isupper()))
        raise RuleError(
            f"no rule can be about the tool {tool!r}; known: {known}, mcp__server__tool"
        )
    if pattern in {"", "*"}:
        return subject, ""
    return subject, _checked(subject, pattern)


def subject_of(tool: str) -> Subject | None:
    """Return what a call of a tool touches, by our name of it or other agents'; None: not known."""
    return _SUBJECTS.get(tool)


def _checked(subject: Subject, pattern: str) -> str:
    if subject == "web_search":
        raise RuleError("a rule about searching the web has nothing in brackets")
    if subject == "web_fetch":
        domain = _DOMAIN.fullmatch(pattern)
        if domain is None:
            raise RuleError("write the host like WebFetch(domain:example.com)")
        return "" if domain["host"] == "*" else domain["host"]
    if _PARAMETER.fullmatch(pattern):
        raise RuleError("rules about single parameters of a tool are not known here")
    if subject in {"edit", "read"} and pattern.startswith("!"):
        raise RuleError("a rule has no exceptions; write a rule for each path that it is about")
    return pattern


def _mcp_pattern(effect: Effect, tool: str) -> str:
    server, mark, name = tool.removeprefix(_MCP).partition("__")
    if not server or (mark and not name):
        raise RuleError("write it like mcp__server, mcp__server__* or mcp__server__tool")
    if effect == "allow" and "*" in server:
        raise RuleError("a rule that allows names the server of the tools")
    return f"{server}__{name or '*'}"


_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def tool_name(server: str, tool: str) -> str:
    """Return the name by which a rule knows a tool of an MCP server, without `mcp__`.

    Characters that a rule cannot have become `_`, as in the names that models are given.
    """
    return f"{_OTHER.sub('_', server)}__{_OTHER.sub('_', tool)}"
