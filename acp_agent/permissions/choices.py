"""The buttons of a permission question: their labels, and the grants that each one remembers."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.permissions.access import Choice, Grant, McpAccess
from acp_agent.permissions.command_scope import Scope
from acp_agent.platform.data_tables import read_table

Language = Literal["en", "zh"]


class Texts(Struct, frozen=True, forbid_unknown_fields=True):
    """The texts of the gate in one language."""

    allow_once: str
    reject_once: str
    commands: str
    exact_commands: str
    mixed_commands: str
    confined: str
    never_commands: str
    edits: str
    never_edits: str
    project_edits: str
    never_project_edits: str
    fetch: str
    never_fetch: str
    tool: str
    never_tool: str
    changed_tool: str
    warning: str
    outside_warning: str
    hosts_warning: str
    unnamed_warning: str
    request_warning: str
    invisible_warning: str
    runs_by_itself: str
    rule_asks: str
    rule_reason: str
    separator: str
    last_separator: str
    quote: str


@cache
def gate_texts(language: Language) -> Texts:
    """Return the texts of gate_texts.toml in a language."""
    return read_table(__package__, "gate_texts.toml", dict[str, Texts])[language]


def once_choices(texts: Texts) -> tuple[Choice, ...]:
    """Return the two buttons of a question whose answer is not remembered."""
    return _buttons(texts)


def command_choices(
    texts: Texts, project: str, *, allow: Sequence[Scope], refuse: Sequence[str]
) -> tuple[Choice, ...]:
    """Return the buttons for commands: "always" covers `allow`, "never" covers `refuse`.

    If either is empty, its button is left out.
    """
    allowed = tuple(
        Grant(
            project=project,
            kind="exact_command" if scope.exact else "command",
            pattern=shlex.join(scope.words),
        )
        for scope in allow
    )
    refused = tuple(
        Grant(project=project, kind="command", pattern=pattern, allow=False) for pattern in refuse
    )
    return _buttons(
        texts,
        always=_always_label(texts, allow) if allow else "",
        allowed=allowed,
        never=texts.never_commands.format(names=_join_names(texts, refuse)),
        refused=refused,
    )


def _always_label(texts: Texts, allow: Sequence[Scope]) -> str:
    prefixes = [shlex.join(scope.words) for scope in allow if not scope.exact]
    exact = [shlex.join(scope.words) for scope in allow if scope.exact]
    if not exact:
        return texts.commands.format(names=_join_names(texts, prefixes))
    label = texts.mixed_commands if prefixes else texts.exact_commands
    return label.format(names=_join_names(texts, prefixes), exact=_join_names(texts, exact))


def _join_names(texts: Texts, patterns: Sequence[str]) -> str:
    names = [texts.quote.format(pattern) for pattern in patterns]
    if len(names) < 2:
        return "".join(names)
    return texts.last_separator.join([texts.separator.join(names[:-1]), names[-1]])


def add_confined_choice(
    texts: Texts, project: str, choices: tuple[Choice, ...]
) -> tuple[Choice, ...]:
    """Return the buttons plus one that allows all sandboxed commands that can be undone."""
    grant = Grant(project=project, kind="confined", pattern="")
    confined_choice = Choice(
        id="allow_confined", label=texts.confined, kind="allow_always", grants=(grant,)
    )
    position = next(i for i, choice in enumerate(choices) if choice.kind.startswith("reject"))
    return (*choices[:position], confined_choice, *choices[position:])


def edit_choices(texts: Texts, project: str, paths: Sequence[str]) -> tuple[Choice, ...]:
    """Return the buttons for changes of files; the grant covers their common folder."""
    folders = [str(Path(path).parent) for path in paths]
    folder = os.path.commonpath(folders) if folders else project
    path = Path(folder)
    grant = Grant(project=project, kind="edit", pattern=folder)
    if path == Path(project):
        return _always_and_never(texts, texts.project_edits, texts.never_project_edits, grant)
    inside = path.is_relative_to(project)
    folder_text = path.relative_to(project).as_posix() if inside else folder.rstrip("/")
    always = texts.edits.format(folder=f"{folder_text}/")
    return _always_and_never(
        texts, always, texts.never_edits.format(folder=f"{folder_text}/"), grant
    )


def fetch_choices(texts: Texts, project: str, host: str) -> tuple[Choice, ...]:
    """Return the buttons for a request to `host`."""
    grant = Grant(project=project, kind="fetch", pattern=host)
    always, never = texts.fetch.format(host=host), texts.never_fetch.format(host=host)
    return _always_and_never(texts, always, never, grant)


def mcp_choices(texts: Texts, project: str, access: McpAccess) -> tuple[Choice, ...]:
    """Return the buttons for a call of an MCP server's tool.

    "Always" covers the tool with its current definition, "never" the tool in any definition.
    """
    names = {"tool": texts.quote.format(access.tool), "server": texts.quote.format(access.server)}
    return _buttons(
        texts,
        always=texts.tool.format(**names),
        allowed=(Grant(project=project, kind="mcp", pattern=definition_pattern(access)),),
        never=texts.never_tool.format(**names),
        refused=(Grant(project=project, kind="mcp", pattern=tool_pattern(access), allow=False),),
    )


def _always_and_never(texts: Texts, always: str, never: str, grant: Grant) -> tuple[Choice, ...]:
    """Return all four buttons; "never" refuses what "always" would allow."""
    refused = replace(grant, allow=False)
    return _buttons(texts, always=always, allowed=(grant,), never=never, refused=(refused,))


def _buttons(
    texts: Texts,
    *,
    always: str = "",
    allowed: tuple[Grant, ...] = (),
    never: str = "",
    refused: tuple[Grant, ...] = (),
) -> tuple[Choice, ...]:
    """Return the buttons in order; those without grants to remember are left out."""
    choices = [Choice(id="allow_once", label=texts.allow_once, kind="allow_once")]
    if allowed:
        choices.append(Choice(id="allow_always", label=always, kind="allow_always", grants=allowed))
    choices.append(Choice(id="reject_once", label=texts.reject_once, kind="reject_once"))
    if refused:
        choices.append(
            Choice(id="reject_always", label=never, kind="reject_always", grants=refused)
        )
    return tuple(choices)


@cache
def reason_texts(language: Language) -> Mapping[str, str]:
    """Return the translations of the reasons; empty for English."""
    if language == "en":
        return {}
    return read_table(__package__, "reason_texts.toml", dict[str, dict[str, str]])[language]


def translate_reason(language: Language, reason: str) -> str:
    """Return the translation of a reason, or the reason itself if there is none."""
    texts = reason_texts(language)
    if reason in texts:
        return texts[reason]
    for template, text in texts.items():
        prefix, placeholder, suffix = template.partition("{}")
        if placeholder and reason.startswith(prefix) and reason.endswith(suffix):
            return text.format(reason[len(prefix) : len(reason) - len(suffix)])
    return reason


_DIGITS = 32  # hexadecimal digits of a digest


def definition_pattern(access: McpAccess) -> str:
    """Return the pattern that matches a tool with its current definition."""
    return f"{tool_pattern(access)} {_digest(access.definition)}"


def tool_pattern(access: McpAccess) -> str:
    """Return the pattern that matches a tool with any definition."""
    return f"{_sanitize_name(access.server)} {_sanitize_name(access.tool)} {_tool_digest(access)}"


def names_tool(pattern: str, access: McpAccess) -> bool:
    """Return whether a pattern refers to this tool, with any definition."""
    return pattern.split(" ")[2:3] == [_tool_digest(access)]


def matches_tool(pattern: str, access: McpAccess) -> bool:
    """Return whether a pattern refers to this tool, and to its definition if it includes one."""
    return pattern.split(" ")[2:] in (
        [_tool_digest(access)],
        [_tool_digest(access), _digest(access.definition)],
    )


def _tool_digest(access: McpAccess) -> str:
    return _digest(access.identity, access.tool)


def _sanitize_name(name: str) -> str:
    """Return a name shortened, with blanks and unprintable characters replaced."""
    return "".join(c if c.isprintable() and c != " " else "_" for c in name)[:60]


def _digest(*fields: str) -> str:
    text = "\0".join(fields).encode("utf-8", "replace")
    return hashlib.sha256(text).hexdigest()[:_DIGITS]
