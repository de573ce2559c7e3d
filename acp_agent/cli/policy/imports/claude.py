"""Translate the permissions in Claude's settings.

These are in `.claude/settings.json` and `settings.local.json`.
Claude's rules have the same form as ours. https://code.claude.com/docs/en/permissions
"""

from __future__ import annotations

from pathlib import Path

from acp_agent.cli.localization import translate
from acp_agent.cli.policy.imports.translation import Translation, read_settings, shown, texts
from acp_agent.config.policy_types import RuleConfig
from acp_agent.permissions.policy.rules import Effect

_EFFECTS: tuple[Effect, ...] = ("deny", "ask", "allow")


def read_claude(file: Path) -> Translation:
    """Translate the permissions of a settings file.

    Raises:
        InvalidInputError: it cannot be read.
    """
    found = Translation(file)
    permissions = read_settings(file).get("permissions")
    if permissions is None:
        return found
    if not isinstance(permissions, dict):
        found.skip(f"permissions: {shown(permissions)}", translate("it is not an object"))
        return found
    for effect in _EFFECTS:
        rules = permissions.get(effect, [])
        for rule in texts(rules):
            found.add(effect, RuleConfig(rule=rule))
        others = rules if not isinstance(rules, list) else [r for r in rules if type(r) is not str]
        if others:
            found.skip(f"{effect}: {shown(others)}", translate("a rule must be text"))
    for key, value in permissions.items():
        if key not in _EFFECTS:
            found.skip(f"{key}: {shown(value)}", _elsewhere(key))
    return found


def _elsewhere(key: str) -> str:
    """Return the replacement of a setting."""
    match key:
        case "defaultMode":
            return translate("set `mode` in the configuration instead")
        case "additionalDirectories":
            return translate("the editor sets the folders of a session")
    return translate("not supported here")
