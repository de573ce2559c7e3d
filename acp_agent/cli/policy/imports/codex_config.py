"""Translate the permissions in codex's config.toml: a permission profile, and approvals of tools.

Codex's other settings about approvals and its sandbox have no rules as counterparts; each is named
with what to set instead. https://developers.openai.com/codex/permissions
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from acp_agent.cli.localization import translate
from acp_agent.cli.policy.imports.translation import Translation, read_toml, shorten_value, texts
from acp_agent.config.policy_types import RuleConfig
from acp_agent.content import as_object
from acp_agent.permissions.policy.rules import Effect, tool_name

_APPROVALS: Mapping[object, Effect] = {"approve": "allow", "prompt": "ask"}
_DOMAINS: Mapping[object, Effect] = {"allow": "allow", "deny": "deny"}
_DENIED = frozenset({"deny", "none"})
_PROFILE_KEYS = frozenset({"description", "extends", "filesystem"})
_MODES = ("approval_policy", "approvals_reviewer", "auto_review")
_SANDBOX = ("sandbox_mode", "sandbox_workspace_write", "shell_environment_policy")
_MAX_BASES = 20  # profiles that extend each other


def read_codex_config(file: Path) -> Translation:
    """Translate a configuration file. Raises InvalidInputError if it cannot be read."""
    translation, document = Translation(file), read_toml(file)
    for key in _MODES:
        if key in document:
            _skip(
                translation,
                key,
                document[key],
                translate("set `mode` in the configuration instead"),
            )
    for key in _SANDBOX:
        if key in document:
            _skip(
                translation, key, document[key], translate("see `[sandbox]` in the configuration")
            )
    _profiles(document, translation)
    for server, settings in as_object(document.get("mcp_servers")).items():
        _server(server, as_object(settings), translation)
    for key in ("apps", "plugins", "profiles"):
        if key in document:
            _skip(translation, key, document[key], translate("not supported here"))
    return translation


def _profiles(document: Mapping[str, object], translation: Translation) -> None:
    """Translate the profile that `default_permissions` selects, and name the others."""
    profiles = as_object(document.get("permissions"))
    name = document.get("default_permissions")
    used: list[str] = []
    while isinstance(name, str) and name in profiles and len(used) < _MAX_BASES:
        used.append(name)
        name = as_object(profiles[name]).get("extends")
    if isinstance(name, str) and name.startswith(":"):
        _skip(
            translation,
            "default_permissions",
            name,
            translate("see `[sandbox]` in the configuration"),
        )
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
            _skip(
                translation,
                f"permissions.{name}.filesystem.{path}",
                access,
                translate("see `[sandbox]` in the configuration"),
            )
    network = as_object(profile.get("network"))
    for host, decision in as_object(network.get("domains")).items():
        effect = _DOMAINS.get(decision)
        if effect is None:
            translation.skip(
                f"{host}: {shorten_value(decision)}", translate("unknown host or decision")
            )
        else:
            host_name = f"*.{host[3:]}" if host.startswith("**.") else host
            translation.add(
                effect, RuleConfig(rule=f"WebFetch(domain:{host_name})"), source_text=host
            )
    other_settings = {key: value for key, value in profile.items() if key not in _PROFILE_KEYS}
    other_settings["network"] = {key: value for key, value in network.items() if key != "domains"}
    for key, value in other_settings.items():
        if value != {}:
            _skip(
                translation,
                f"permissions.{name}.{key}",
                value,
                translate("see `[sandbox]` in the configuration"),
            )


def _paths(filesystem: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield the paths of a profile as our patterns; `:workspace_roots` has its own table."""
    for path, access in filesystem.items():
        if isinstance(access, dict):
            inside = path in {":workspace_roots", ":project_roots"}
            for inner, inner_access in access.items():
                yield (
                    f"{'' if inside else _absolute(path)}/{inner.removeprefix('./')}",
                    inner_access,
                )
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
        _skip(
            translation,
            f"mcp_servers.{server}.enabled_tools",
            settings["enabled_tools"],
            translate("name the tools where you add the server"),
        )


def _skip(translation: Translation, key: str, value: object, reason: str) -> None:
    translation.skip(f"{key}: {shorten_value(value)}", reason)
