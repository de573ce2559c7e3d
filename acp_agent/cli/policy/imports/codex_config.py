"""Translate the permissions in codex's config.toml: a permission profile, and approvals of tools.

Codex's other settings about approvals and its sandbox have no rules as counterparts; each is named
with what to set instead. https://developers.openai.com/codex/permissions
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from acp_agent.cli.localization import translate
from acp_agent.cli.policy.imports.translation import Translation, read_toml, texts
from acp_agent.config.policy_types import RuleConfig
from acp_agent.content import as_object
from acp_agent.permissions.policy.rules import Effect, tool_name

_APPROVALS: Mapping[object, Effect] = {"approve": "allow", "prompt": "ask"}
_DOMAINS: Mapping[object, Effect] = {"allow": "allow", "deny": "deny"}
_DENIED = frozenset({"deny", "none"})
_PROFILE_KEYS = frozenset({"description", "extends", "filesystem"})
_MODES = ("approval_policy", "approvals_reviewer", "auto_review")
_SANDBOX = ("sandbox_mode", "sandbox_workspace_write", "shell_environment_policy")
_OTHERS = ("apps", "plugins", "profiles")
_MAX_BASES = 20  # profiles that extend each other


def read_codex_config(file: Path) -> Translation:
    """Translate a configuration file. Raises InvalidInputError if it cannot be read."""
    translation, document = Translation(file), read_toml(file)
    for keys, reason in (
        (_MODES, translate("set `mode` in the configuration instead")),
        (_SANDBOX, _see_sandbox()),
        (_OTHERS, translate("not supported here")),
    ):
        for key in keys:
            if key in document:
                translation.skip_value(key, document[key], reason)
    _profiles(document, translation)
    for server, settings in as_object(document.get("mcp_servers")).items():
        _server(server, as_object(settings), translation)
    return translation


def _see_sandbox() -> str:
    return translate("see `[sandbox]` in the configuration")


def _profiles(document: Mapping[str, object], translation: Translation) -> None:
    """Translate the profile that `default_permissions` selects, and name the others."""
    profiles = as_object(document.get("permissions"))
    name = document.get("default_permissions")
    used: list[str] = []
    while isinstance(name, str) and name in profiles and len(used) < _MAX_BASES:
        used.append(name)
        name = as_object(profiles[name]).get("extends")
    if isinstance(name, str) and name.startswith(":"):
        translation.skip_value("default_permissions", name, _see_sandbox())
    for profile in used:
        _profile(profile, as_object(profiles[profile]), translation)
    for profile in profiles:
        if profile not in used:
            translation.skip(f"permissions.{profile}", translate("this profile is not selected"))


def _profile(name: str, profile: Mapping[str, object], translation: Translation) -> None:
    for path, access in _paths(as_object(profile.get("filesystem"))):
        if access in _DENIED:
            for tool in ("Read", "Edit"):
                translation.add("deny", RuleConfig(rule=f"{tool}({path})"))
        else:
            key = f"permissions.{name}.filesystem.{path}"
            translation.skip_value(key, access, _see_sandbox())
    network = as_object(profile.get("network"))
    for host, decision in as_object(network.get("domains")).items():
        effect = _DOMAINS.get(decision)
        if effect is None:
            translation.skip_value(host, decision, translate("unknown host or decision"))
        else:
            host_name = f"*.{host[3:]}" if host.startswith("**.") else host
            translation.add(
                effect, RuleConfig(rule=f"WebFetch(domain:{host_name})"), source_text=host
            )
    other_settings = {key: value for key, value in profile.items() if key not in _PROFILE_KEYS}
    other_settings["network"] = {key: value for key, value in network.items() if key != "domains"}
    for key, value in other_settings.items():
        if value != {}:
            translation.skip_value(f"permissions.{name}.{key}", value, _see_sandbox())


def _paths(filesystem: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield the paths of a profile as our patterns; `:workspace_roots` has its own table."""
    for path, access in filesystem.items():
        if isinstance(access, dict):
            inside = path in {":workspace_roots", ":project_roots"}
            parent = "" if inside else _absolute(path)
            for inner, inner_access in access.items():
                yield f"{parent}/{inner.removeprefix('./')}", inner_access
        else:
            yield _absolute(path), access


def _absolute(path: str) -> str:
    return f"/{path}" if path.startswith("/") else path


def _server(server: str, settings: Mapping[str, object], translation: Translation) -> None:
    """Translate the approvals of the tools of an MCP server."""
    default = settings.get("default_tools_approval_mode")
    if default in _APPROVALS:
        translation.add(_APPROVALS[default], RuleConfig(rule=f"mcp__{tool_name(server, '')}*"))
    for tool in texts(settings.get("disabled_tools")):
        translation.add("deny", RuleConfig(rule=f"mcp__{tool_name(server, tool)}"))
    for tool, tool_settings in as_object(settings.get("tools")).items():
        approval = as_object(tool_settings).get("approval_mode")
        if approval in _APPROVALS:
            translation.add(
                _APPROVALS[approval], RuleConfig(rule=f"mcp__{tool_name(server, tool)}")
            )
    if "enabled_tools" in settings:
        key, reason = "enabled_tools", translate("name the tools where you add the server")
        translation.skip_value(f"mcp_servers.{server}.{key}", settings[key], reason)
