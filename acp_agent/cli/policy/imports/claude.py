"""Translate the permissions in Claude's settings.

These are in `.claude/settings.json`, `settings.local.json` and an administrator's
`managed-settings.json`.
Claude's rules have the same form as ours. https://code.claude.com/docs/en/permissions
"""

from __future__ import annotations

from pathlib import Path

from acp_agent.cli.localization import translate
from acp_agent.cli.policy.imports.translation import Translation, read_settings, texts
from acp_agent.config.policy_types import RuleConfig
from acp_agent.permissions.policy.rules import Effect

_EFFECTS: tuple[Effect, ...] = ("deny", "ask", "allow")
# Settings outside `permissions` that decide what may run.
_OTHER_SETTINGS = (
    "sandbox", "autoMode", "disableAutoMode", "allowManagedPermissionRulesOnly",
    "skipDangerousModePermissionPrompt", "disableSkillShellExecution", "allowedHttpHookUrls",
    "enableAllProjectMcpServers", "enabledMcpjsonServers", "disabledMcpjsonServers",
    "allowedMcpServers", "deniedMcpServers", "allowManagedMcpServersOnly",
)  # fmt: skip


def read_claude(file: Path) -> Translation:
    """Translate the permissions of a settings file. Raises InvalidInputError."""
    translation = Translation(file)
    settings = read_settings(file)
    for key in _OTHER_SETTINGS:
        if key in settings:
            translation.skip_value(key, settings[key], _describe_replacement(key))
    permissions = settings.get("permissions", {})
    if not isinstance(permissions, dict):
        translation.skip_value("permissions", permissions, translate("it is not an object"))
        return translation
    for effect in _EFFECTS:
        rules = permissions.get(effect, [])
        for rule in texts(rules):
            translation.add(effect, RuleConfig(rule=rule))
        invalid = [r for r in rules if type(r) is not str] if isinstance(rules, list) else rules
        if invalid:
            translation.skip_value(effect, invalid, translate("a rule must be text"))
    for key, value in permissions.items():
        if key not in _EFFECTS:
            translation.skip_value(key, value, _describe_replacement(key))
    return translation


def _describe_replacement(key: str) -> str:
    """Return the replacement of a setting."""
    match key:
        case "sandbox":
            return translate("see `[sandbox]` in the configuration")
        case "defaultMode":
            return translate("set `mode` in the configuration instead")
        case "additionalDirectories":
            return translate("the editor sets the folders of a session")
    return translate("not supported here")
