"""Translate the policies of Gemini CLI: `.gemini/policies/*.toml`.

In Gemini, the rule with the highest priority decides, and the first of several with the same one.
https://geminicli.com/docs/reference/policy-engine
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from acp_agent.cli.localization import translate
from acp_agent.cli.policy.imports.opencode import OrderedRule, add_ordered
from acp_agent.cli.policy.imports.translation import Translation, read_toml, shorten_value, texts
from acp_agent.config.policy_types import ModeName
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
_CONDITIONS = ("argsPattern", "commandRegex", "toolAnnotations", "interactive")
_Group = tuple[tuple[str, ...], tuple[ModeName, ...]]


def read_gemini(file: Path) -> Translation:
    """Translate a policy file. Raises InvalidInputError if it cannot be read."""
    translation, document = Translation(file), read_toml(file)
    rules = [
        rule_table for rule_table in _list(document.get("rule")) if isinstance(rule_table, dict)
    ]
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


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()
