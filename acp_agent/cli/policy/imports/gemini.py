"""Translate the policies and settings of Gemini CLI: `.gemini/policies/*.toml`, `settings.json`.

In a policy, the rule with the highest priority decides, and the first of several with the same one.
https://geminicli.com/docs/reference/policy-engine, https://geminicli.com/docs/reference/configuration
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from acp_agent.cli.localization import translate
from acp_agent.cli.policy.imports.opencode import OrderedRule, add_ordered
from acp_agent.cli.policy.imports.translation import (
    Translation,
    read_settings,
    read_toml,
    shorten_value,
    texts,
)
from acp_agent.config.policy_types import ModeName
from acp_agent.content import as_object
from acp_agent.permissions.policy.rules import Effect

_EFFECTS: Mapping[object, Effect] = {"allow": "allow", "deny": "deny", "ask_user": "ask"}
_MODES: Mapping[str, ModeName] = {
    "default": "ask",
    "autoEdit": "accept-edits",
    "plan": "plan",
    "yolo": "full",
}
_TOOLS = {
    "run_shell_command": "bash", "write_file": "edit", "replace": "edit", "read_file": "read",
    "read_many_files": "read", "web_fetch": "webfetch", "google_web_search": "websearch", "*": "*",
    "glob": "glob", "grep_search": "grep", "search_file_content": "grep", "list_directory": "list",
    "write_todos": "todowrite", "activate_skill": "skill", "ask_user": "question",
    "enter_plan_mode": "plan_enter", "exit_plan_mode": "plan_exit",
}  # fmt: skip
_SHELL_NAMES = ("run_shell_command", "ShellTool")
# A list in the settings, its name in older versions, and what it means; the last match decides.
_TOOL_LISTS: Sequence[tuple[str, str, Effect]] = (
    ("allowed", "allowedTools", "allow"),
    ("confirmationRequired", "", "ask"),
    ("exclude", "excludeTools", "deny"),
)
_SERVER_LISTS: Sequence[tuple[str, str, Effect]] = (
    ("allowed", "allowMCPServers", "allow"),
    ("excluded", "excludeMCPServers", "deny"),
)
_CONDITIONS = ("argsPattern", "commandRegex", "toolAnnotations", "interactive")
_Group = tuple[tuple[str, ...], tuple[ModeName, ...]]


def read_gemini(file: Path) -> Translation:
    """Translate a policy file. Raises InvalidInputError if it cannot be read."""
    translation, document = Translation(file), read_toml(file)
    tables = document.get("rule")
    rules = [rule for rule in tables if isinstance(rule, dict)] if isinstance(tables, list) else []
    rules.sort(key=_priority, reverse=True)
    servers = sorted({str(rule["mcpName"]) for rule in rules if "mcpName" in rule})
    groups: dict[_Group, list[OrderedRule]] = {}
    for rule in reversed(rules):  # in the result, the last matching rule decides
        agents = tuple(_strings(rule.get("subagent")))
        modes = tuple(_MODES[mode] for mode in texts(rule.get("modes")) if mode in _MODES)
        groups.setdefault((agents, modes), []).extend(_convert_rule(rule, translation))
    for (agent_names, mode_names), ordered in groups.items():
        add_ordered(translation, ordered, servers, agents=agent_names, modes=mode_names)
    if "safety_checker" in document:
        translation.skip("safety_checker", translate("use a hook to check calls with a program"))
    return translation


def read_gemini_settings(file: Path) -> Translation:
    """Translate a `settings.json`. Raises InvalidInputError if it cannot be read."""
    translation, settings = Translation(file), read_settings(file)
    tools, servers = as_object(settings.get("tools")), as_object(settings.get("mcp"))
    definitions = as_object(settings.get("mcpServers"))
    rules = [
        OrderedRule(f"{name}_*", "*", "allow")
        for name, server in definitions.items()
        if as_object(server).get("trust") is True
    ]
    names = [*definitions]
    for key, old_key, effect in _SERVER_LISTS:
        listed = texts(servers.get(key, settings.get(old_key)))
        names += listed
        rules += [OrderedRule(f"{name}_*", "*", effect) for name in listed]
    for key, old_key, effect in _TOOL_LISTS:
        for entry in texts(tools.get(key, settings.get(old_key))):
            name, _, command = entry.partition("(")
            is_shell = name in _SHELL_NAMES
            pattern = f"{command.removesuffix(')')} *" if is_shell and command else "*"
            tool = "bash" if is_shell else next(_tools({"toolName": name}))
            rules.append(OrderedRule(tool, pattern, effect))
    add_ordered(translation, rules, sorted(set(names)))
    if core := tools.get("core", settings.get("coreTools")):
        translation.skip(
            shorten_value({"core": core}), translate("refuse the other tools with deny rules")
        )
    return translation


def _convert_rule(rule: Mapping[str, object], translation: Translation) -> Iterator[OrderedRule]:
    effect = _EFFECTS.get(rule.get("decision"))
    if effect is None:
        translation.skip(
            shorten_value(rule), translate("its decision is not allow, deny or ask_user")
        )
        return
    if any(key in rule for key in _CONDITIONS):
        translation.skip(shorten_value(rule), translate("its condition is not supported here"))
        return
    message = rule.get("denyMessage", rule.get("deny_message"))
    justification = message if isinstance(message, str) else ""
    for tool in _tools(rule):
        for prefix in _strings(rule.get("commandPrefix")) or ["*"]:
            pattern = prefix if prefix == "*" else f"{prefix.strip()} *"
            yield OrderedRule(tool, pattern, effect, justification)


def _tools(rule: Mapping[str, object]) -> Iterator[str]:
    """Yield the tools of a rule; those of MCP servers as `server_tool`."""
    server = rule.get("mcpName")
    for name in _strings(rule.get("toolName")) or ["*"]:
        if server is not None:
            yield f"{server}_{name}"
        elif name.startswith("mcp_"):
            yield name.removeprefix("mcp_")
        else:
            yield _TOOLS.get(name, name)


def _priority(rule: Mapping[str, object]) -> float:
    value = rule.get("priority", 0)
    return value if isinstance(value, int | float) else 0


def _strings(value: object) -> Sequence[str]:
    return [value] if isinstance(value, str) else texts(value)
