"""Translate the permissions of Cursor's command line: `.cursor/cli.json` and `cli-config.json`.

There are lists `allow` and `deny`, and `deny` takes precedence, as here.
https://docs.cursor.com/en/cli/reference/permissions
"""

from __future__ import annotations

import re
from pathlib import Path

from acp_agent.cli.localization import translate
from acp_agent.cli.policy.imports.translation import Translation, read_settings, texts
from acp_agent.config.policy_types import RuleConfig
from acp_agent.permissions.policy.rules import Effect

_EFFECTS: tuple[Effect, ...] = ("deny", "allow")
_TOKEN = re.compile(r"(?P<type>\w+)\((?P<pattern>.*)\)", re.DOTALL)
_MCP_SEPARATOR = re.compile(r"\s*[:,]\s*")


def read_cursor(file: Path) -> Translation:
    """Translate the permissions of a configuration file. Raises InvalidInputError."""
    translation = Translation(file)
    permissions = read_settings(file).get("permissions", {})
    if not isinstance(permissions, dict):
        translation.skip_value("permissions", permissions, translate("it is not an object"))
        return translation
    for effect in _EFFECTS:
        for token in texts(permissions.get(effect)):
            translation.add(effect, RuleConfig(rule=_rule(effect, token)), source_text=token)
    for key, value in permissions.items():
        if key not in _EFFECTS:
            translation.skip_value(key, value, translate("not supported here"))
    return translation


def _rule(effect: Effect, token: str) -> str:
    """Return the rule for a token such as `Shell(git)`; an unknown token is returned as it is."""
    match = _TOKEN.fullmatch(token.strip())
    if match is None:
        return token
    pattern = match["pattern"].strip()
    everything = pattern in {"*", "**"}
    match match["type"]:
        case "Shell":
            program, _, arguments = pattern.partition(":")
            if everything or program in {"*", "**"}:
                return "Bash"
            return f"Bash({program} {arguments or '*'})"
        case "Read" | "Write" as kind:
            tool = "Edit" if kind == "Write" else kind
            return tool if everything else f"{tool}({_path(effect, pattern)})"
        case "WebFetch":
            return "WebFetch" if everything else f"WebFetch(domain:{pattern})"
        case "Mcp":
            server, *tool_names = _MCP_SEPARATOR.split(pattern, maxsplit=1)
            return f"mcp__{server}__{tool_names[0] if tool_names else '*'}"
    return token


def _path(effect: Effect, pattern: str) -> str:
    """Return a glob as our pattern: there, a name is in the workspace's top folder only.

    For rules that deny, a name here matches in every folder, which is stricter.
    """
    if pattern.startswith("/"):
        return f"/{pattern}"
    anchored = "/" in pattern or effect == "deny" or pattern.startswith("~")
    return pattern if anchored else f"/{pattern}"
